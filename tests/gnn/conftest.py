"""Tiny graphs for the tests of training."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from napsets.datasets import NodeDataset, dcsbm


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Keep torch to one thread: on graphs this small, several spend their time waiting for one another."""
    torch = pytest.importorskip("torch")
    training = pytest.importorskip("napsets.gnn.training")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "THREADS", 1)
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny() -> NodeDataset:
    """240 nodes in three blocks that features alone separate badly."""
    return dcsbm(240, 6, 3, num_features=12, homophily=0.85, signal=0.6, seed=1)
