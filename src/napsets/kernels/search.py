"""Running a search over many sources: which kernel, in which pieces, on which threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from napsets.kernels import shallow
from napsets.kernels.threads import Progress, available_threads, run
from napsets.quantile import ROUNDING

if TYPE_CHECKING:
    from napsets.thresholds import CalibrationIndex

__all__ = ["Job", "search"]

BATCH = 512


@dataclass(frozen=True)
class Job:
    """The sources, the splits and weights they are wanted for, and where the answers go."""

    index: CalibrationIndex
    sources: npt.NDArray[np.int64]
    pair_offsets: npt.NDArray[np.int64]
    pair_split: npt.NDArray[np.int64]
    masks: npt.NDArray[np.uint64]
    weights: npt.NDArray[np.float64]
    levels: npt.NDArray[np.float64]
    thresholds: npt.NDArray[np.float64]
    hop_counts: npt.NDArray[np.int64]

    @property
    def hops(self) -> int:
        """Depth of the search."""
        return int(self.weights.shape[1])


def search(job: Job, *, threads: int | None, progress: Progress | None, strategy: str | None = None) -> None:
    """Fill the job's thresholds and counts."""
    strategy = strategy or "dense"
    run(_pieces(job, strategy), threads=available_threads(threads), total=job.sources.size, progress=progress)


def _pieces(job: Job, strategy: str) -> Iterator[tuple[int, Callable[[], Any]]]:
    kernel = {"dense": shallow.dense_thresholds, "sparse": shallow.sparse_thresholds}[strategy]
    for first in range(0, job.sources.size, BATCH):
        last = min(first + BATCH, job.sources.size)
        yield last - first, partial(_shallow, kernel, job, first, last)


def _shallow(kernel: Callable[..., Any], job: Job, first: int, last: int) -> None:
    index = job.index
    offsets = job.pair_offsets[first : last + 1]
    pairs = slice(offsets[0], offsets[-1])
    kernel(
        index.numbers[job.sources[first:last]],
        index.starts,
        index.stops,
        index.columns,
        None,
        job.hops,
        job.masks,
        offsets - offsets[0],
        job.pair_split[pairs],
        job.weights,
        job.levels,
        ROUNDING,
        index.sorted_scores,
        job.thresholds[pairs],
        job.hop_counts[pairs],
    )
