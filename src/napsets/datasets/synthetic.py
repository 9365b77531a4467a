"""Graphs from a seed: the paper's two-block model, and a degree-corrected one of any size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import AnyArray, FloatArray, IntArray, sealed
from napsets.checks.values import check_count, check_finite, check_list, check_number, check_seed, check_share
from napsets.datasets.dataset import NodeDataset, random_split
from napsets.errors import InvalidInputError
from napsets.graph import Graph
from napsets.randomness import splitmix64, to_unit

_MOST_FEATURES = 10**6
#: Edges that are drawn at a time.
_EDGES_AT_A_TIME = 1 << 20


def sbm_graph(
    block_size: int, p_in: float, p_out: float, seed: int = 0, *, num_blocks: int = 2
) -> tuple[Graph, IntArray]:
    """Draw a stochastic block model: every pair is an edge with probability `p_in` inside a block, else `p_out`.

    Returns
    -------
    graph : Graph
    blocks : numpy.ndarray
        The block of each node; blocks are consecutive runs of `block_size` nodes.
    """
    size = check_count("block_size", block_size, minimum=1, maximum=2**31 - 1)
    blocks = check_count("num_blocks", num_blocks, minimum=1, maximum=10_000)
    p_in, p_out = check_share("p_in", p_in), check_share("p_out", p_out)
    rng = np.random.default_rng(check_seed(seed))
    sources, targets = [], []
    for a in range(blocks):
        for b in range(a, blocks):
            if a == b:
                u, v = _pair_of(_bernoulli_positions(size * (size - 1) // 2, p_in, rng))
            else:
                u, v = np.divmod(_bernoulli_positions(size * size, p_out, rng), size)
            sources.append(u + a * size)
            targets.append(v + b * size)
    edges = {"source": np.concatenate(sources), "target": np.concatenate(targets)}
    return Graph.from_table(edges, num_nodes=size * blocks), np.repeat(np.arange(blocks), size)


def sbm(
    block_size: int = 1000,
    p_in: float = 0.05,
    p_out: float = 0.01,
    *,
    num_classes: int = 4,
    num_features: int = 16,
    noise: Sequence[float] = (0.4, 1.2),
    sizes: Sequence[float] = (0.25, 0.1, 0.65),
    seed: int = 0,
) -> NodeDataset:
    """Return the paper's case study: two blocks whose (X, Y) have different distributions; only edges separate them.

    Labels are uniform in both blocks. Features are the label's centre plus Gaussian noise, whose scale depends on
    the block (`noise`), so that a classifier's scores are small in one block and large in the other. The block
    itself is in no feature; it is kept in ``dataset.blocks`` for evaluation.

    Parameters
    ----------
    block_size : int
        The paper's n: each block has this many nodes.
    p_in, p_out : float
        Probability of an edge inside a block and between blocks.
    num_classes, num_features : int
        Shape of labels and features.
    noise : sequence of float
        One scale a block; its length is the number of blocks.
    sizes, seed
        As in `random_split`; the seed draws everything else too.
    """
    scales = np.array([check_number("noise", scale, largest=1e30) for scale in check_list("noise", noise, "scales")])
    graph, blocks = sbm_graph(block_size, p_in, p_out, seed, num_blocks=scales.size)
    rng = np.random.default_rng([check_seed(seed), 1])
    num_classes = check_count("num_classes", num_classes, minimum=1, maximum=2**31 - 1)
    labels = rng.integers(0, num_classes, graph.num_nodes)
    features = _features(labels, num_classes, num_features, 1.0, rng, scales[blocks])
    settings = {"block_size": block_size, "p_in": p_in, "p_out": p_out, "noise": list(noise), "seed": seed}
    split = random_split(graph.num_nodes, sizes, seed)
    return NodeDataset(graph, features, labels, *split, name="sbm", blocks=blocks, settings=settings)


def dcsbm_graph(
    num_nodes: int,
    mean_degree: float,
    num_classes: int,
    *,
    homophily: float = 0.8,
    exponent: float = 2.5,
    seed: int = 0,
) -> tuple[Graph, IntArray]:
    """Draw a degree-corrected block model, in time and memory linear in the edges.

    Node weights follow a power law; each edge joins its source to a node of the same block with probability
    `homophily` and of another block otherwise, drawn by weight. Repeated pairs are merged, so that the mean degree
    falls a little short of `mean_degree`, the more so the denser the graph.

    Parameters
    ----------
    num_nodes : int
        Number of nodes.
    mean_degree : float
        Mean number of neighbours before repeated pairs are merged.
    num_classes : int
        Number of blocks, whose shares of the nodes are unequal (the largest has about four times the smallest).
    homophily : float
        Share of edges that stay inside a block.
    exponent : float
        Of the power law of degrees, above 2; the larger, the more equal.
    seed : int
        Draws everything.

    Returns
    -------
    graph : Graph
    blocks : numpy.ndarray
        The block of each node.
    """
    nodes = check_count("num_nodes", num_nodes, minimum=1, maximum=2**40)
    classes = check_count("num_classes", num_classes, minimum=1, maximum=nodes)
    homophily = check_share("homophily", homophily)
    exponent = check_number("exponent", exponent, largest=1e6)
    mean_degree = check_number("mean_degree", mean_degree, largest=2.0**40)
    if not exponent > 2:
        raise InvalidInputError(f"`exponent` must be above 2, or the mean degree is infinite; got {exponent}")
    if not mean_degree < nodes:
        raise InvalidInputError(f"`mean_degree` must be at least 0 and below `num_nodes`; got {mean_degree}")
    rng = np.random.default_rng(check_seed(seed))
    shares = 1.0 + 3.0 * np.arange(classes) / max(classes - 1, 1)
    blocks = rng.choice(classes, nodes, p=shares / shares.sum())
    blocks[: min(classes, nodes)] = np.arange(min(classes, nodes))  # no block is empty
    # Weights above √n would be joined to their whole block many times over; real hubs stop short of that too.
    weights = np.minimum((1.0 - rng.random(nodes)) ** (-1.0 / (exponent - 1.0)), np.sqrt(nodes))
    order = np.argsort(blocks, kind="stable").astype(np.int32 if nodes < 2**31 else np.int64)
    running = np.cumsum(weights[order])
    block_ends = running[np.cumsum(np.bincount(blocks, minlength=classes)) - 1]
    edges = round(nodes * mean_degree / 2)
    source, target = np.empty(edges, order.dtype), np.empty(edges, order.dtype)
    _draw_edges(running, order, block_ends, homophily, int(rng.integers(2**63)), source, target)
    return Graph.from_table({"source": source, "target": target}, num_nodes=nodes), blocks


def _draw_edges(
    running: FloatArray,
    order: AnyArray,
    block_ends: FloatArray,
    same: float,
    seed: int,
    source: AnyArray,
    target: AnyArray,
) -> None:
    """Fill `source` and `target`, each edge from the hash of its number.

    Nodes are in `order`, block by block; `running` holds the running sum of their weights, `block_ends` that sum
    at the end of each block. Sources are stratified, so each node starts its expected number of edges up to one;
    the target is in the source's block with probability `same`, and is drawn by weight there or outside.
    """
    total, edges, last = running[-1], source.size, running.size - 1
    starts = np.append(0.0, block_ends[:-1])
    for first in range(0, edges, _EDGES_AT_A_TIME):
        numbers = np.arange(first, min(first + _EDGES_AT_A_TIME, edges))
        words = splitmix64(np.uint64(seed) ^ splitmix64(numbers.astype(np.uint64)))
        at = np.minimum((numbers + to_unit(words)) * (total / edges), total * (1.0 - 1e-16))
        block = np.minimum(np.searchsorted(block_ends, at, side="right"), block_ends.size - 1)
        low, width = starts[block], block_ends[block] - starts[block]
        words = splitmix64(words)
        draw = to_unit(splitmix64(words))
        outside = draw * (total - width)
        outside += np.where(outside >= low, width, 0.0)
        goal = np.where((to_unit(words) < same) | (width >= total), low + draw * width, outside)
        for ends, values in ((source, at), (target, goal)):
            ends[numbers] = order[np.minimum(np.searchsorted(running, values, side="right"), last)]


def dcsbm(
    num_nodes: int = 10_000,
    mean_degree: float = 20.0,
    num_classes: int = 10,
    *,
    num_features: int = 64,
    homophily: float = 0.8,
    exponent: float = 2.5,
    signal: float = 0.3,
    sizes: Sequence[float] = (0.5, 0.25, 0.25),
    seed: int = 0,
) -> NodeDataset:
    """Return a degree-corrected block model with features, of any size.

    The label of a node is its block (see `dcsbm_graph`). Features are `signal` times the label's centre, a
    standard Gaussian vector, plus standard Gaussian noise; ``num_features=0`` makes none.
    """
    graph, blocks = dcsbm_graph(num_nodes, mean_degree, num_classes, homophily=homophily, exponent=exponent, seed=seed)
    rng = np.random.default_rng([seed, 1])
    features = _features(blocks, num_classes, num_features, check_finite("signal", signal), rng)
    settings = {
        "num_nodes": num_nodes,
        "mean_degree": mean_degree,
        "homophily": homophily,
        "exponent": exponent,
        "signal": signal,
        "seed": seed,
    }
    split = random_split(graph.num_nodes, sizes, seed)
    return NodeDataset(graph, features, blocks, *split, name="dcsbm", blocks=blocks, settings=settings)


def _features(
    labels: IntArray,
    num_classes: int,
    num_features: int,
    signal: float,
    rng: np.random.Generator,
    scale: npt.NDArray[np.float64] | None = None,
) -> npt.NDArray[np.float32]:
    """Class centres plus noise, made a slice of rows at a time so that only the result takes room."""
    num_features = check_count("num_features", num_features, maximum=_MOST_FEATURES)
    centres = (signal * rng.standard_normal((num_classes, num_features))).astype(np.float32)
    features = np.empty((labels.size, num_features), dtype=np.float32)
    for start in range(0, labels.size, 65_536):
        rows = features[start : start + 65_536]
        rng.standard_normal(out=rows, dtype=np.float32)
        if scale is not None:
            rows *= scale[start : start + 65_536, None].astype(np.float32)
        rows += centres[labels[start : start + 65_536]]
    return sealed(features)


def _bernoulli_positions(count: int, probability: float, rng: np.random.Generator) -> IntArray:
    """Positions among `count` at which independent coins fall heads: by the gaps between them, which are geometric."""
    if probability == 0 or count == 0:
        return np.empty(0, dtype=np.int64)
    drawn, last = [], -1
    while last < count:
        expected = (count - last) * probability
        gaps = rng.geometric(probability, int(expected + 4 * np.sqrt(expected) + 16))
        gaps = np.minimum(gaps, count + 1)  # a gap past the end need not be known exactly
        positions = last + np.cumsum(gaps)
        drawn.append(positions)
        last = int(positions[-1])
    positions = np.concatenate(drawn)
    return positions[positions < count]


def _pair_of(position: IntArray) -> tuple[IntArray, IntArray]:
    """Return the pair u > v that a position of the triangle's enumeration stands for: v + u(u−1)/2."""
    u = ((1.0 + np.sqrt(1.0 + 8.0 * position)) / 2.0).astype(np.int64)
    u -= u * (u - 1) // 2 > position  # the root's rounding errs by one at most
    u += u * (u + 1) // 2 <= position
    return u, position - u * (u - 1) // 2
