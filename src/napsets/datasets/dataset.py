"""NodeDataset: a graph with features, labels and a split; NodePredictions: a model's outputs for its nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from napsets.checks.arguments import (
    ArrayLike,
    IntArray,
    Sealed,
    as_array,
    as_column,
    check_index,
    check_integers,
    check_labels,
    check_probabilities,
    frozen,
    sealed,
)
from napsets.checks.frames import find_rows
from napsets.checks.values import (
    Record,
    Values,
    check_count,
    check_kind,
    check_list,
    check_names,
    check_number,
    check_seed,
    check_settings,
    shown,
)
from napsets.errors import InvalidInputError, imported, warn
from napsets.features import check_features
from napsets.graph import Graph, check_graph

if TYPE_CHECKING:
    import scipy.sparse
    from torch_geometric.data import Data

    Features: TypeAlias = npt.NDArray[np.float32] | scipy.sparse.csr_array

_MOST_CLASSES = 2**31 - 1

#: The parts of a split, in the order in which their nodes become visible to a model.
SPLIT_NAMES = ("train", "validation", "test")


@dataclass(frozen=True, eq=False, repr=False)
class NodeDataset(Sealed):
    """A graph with the features, labels and split of its nodes. Writeable arrays are copied.

    Parameters
    ----------
    graph : Graph
        The whole graph, on the nodes 0..n−1.
    features : array of shape (n, d), or SciPy sparse matrix of that shape
        One row per node; kept as float32, dense or as ``scipy.sparse.csr_array``.
    labels : array of shape (n,)
        Integers from 0; −1 where unknown, which is refused in `train` and `validation`.
    train, validation, test : index arrays or boolean masks
        Disjoint. Nodes may lie in none of them. A class that is missing in `train` gives a warning: no model can learn
        it.
    class_names : sequence of str, optional
        One name per class; without them the classes are as many as the labels show.
    name : str
        What results call this dataset.
    node_ids : array, optional
        The ids that the nodes had in the user's files, where those are not 0..n−1.
    blocks : array of shape (n,), optional
        For synthetic graphs, the block that each node was drawn in.
    settings : mapping
        How the dataset was made, for the record.
    targets : array of shape (n,), optional
        The number that the classes were cut from, where they were.
    times : array of shape (n,), optional
        When each node appeared, where that is known.

    Examples
    --------
    >>> graph = Graph.from_edge_index([[0, 1], [1, 2]], num_nodes=3)
    >>> NodeDataset(graph, [[0.0], [1.0], [0.5]], [0, 1, 1], train=[0, 1], validation=[], test=[2])
    NodeDataset('custom', 3 nodes, 4 stored edges, 1 features, 2 classes, split 2 / 0 / 1)
    """

    graph: Graph
    features: Features
    labels: IntArray
    train: IntArray
    validation: IntArray
    test: IntArray
    class_names: tuple[str, ...] | None = None
    name: str = "custom"
    node_ids: npt.NDArray[np.generic] | None = None
    blocks: IntArray | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    targets: npt.NDArray[np.float64] | None = None
    times: IntArray | None = None

    def __post_init__(self) -> None:
        nodes = check_graph(self.graph).num_nodes
        check_kind("name", self.name, str, hint="It is what the dataset is called.")
        values: Record = {"features": check_features("features", self.features, nodes)}
        raw = check_integers("labels", self.labels)
        names = check_names("class_names", self.class_names)
        classes = max(int(raw.max()) + 1 if raw.size else 0, 1) if names is None else len(names)
        if classes > _MOST_CLASSES:
            raise InvalidInputError(
                f"`labels` must number the classes from 0, up to {_MOST_CLASSES:,}; got {raw.max()}"
            )
        values |= {"class_names": names, "labels": check_labels(raw, size=nodes, num_classes=classes)}
        for part in SPLIT_NAMES:
            values[part] = check_index(part, getattr(self, part), nodes, unique=True)
        _check_split(values, nodes, classes)
        for key in ("node_ids", "blocks", "targets", "times"):
            values[key] = _check_column(key, getattr(self, key), nodes)
        values["settings"] = check_settings(self.settings)
        for key, value in values.items():
            object.__setattr__(self, key, frozen(value) if isinstance(value, np.ndarray) else value)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.graph.num_nodes

    @property
    def num_features(self) -> int:
        """Number of features per node."""
        return int(self.features.shape[1])

    @property
    def num_classes(self) -> int:
        """Number of classes: the class names where they are given, otherwise the largest label plus one."""
        return int(self.labels.max()) + 1 if self.class_names is None else len(self.class_names)

    @property
    def split(self) -> npt.NDArray[np.str_]:
        """The part that each node belongs to: train, validation or test, or an empty string."""
        parts = np.full(self.num_nodes, "", dtype="<U10")
        for part in SPLIT_NAMES:
            parts[getattr(self, part)] = part
        return parts

    def feature_rows(self, nodes: IntArray | slice) -> npt.NDArray[np.float32]:
        """Return the features of these nodes as a dense table."""
        chosen = nodes if isinstance(nodes, slice) else check_index("nodes", nodes, self.num_nodes, quiet=True)
        rows: Any = self.features[chosen]
        return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray())

    def __repr__(self) -> str:
        split = " / ".join(f"{getattr(self, part).size:,}" for part in SPLIT_NAMES)
        return (
            f"NodeDataset({self.name!r}, {self.num_nodes:,} nodes, {self.graph.num_edges:,} stored edges, "
            f"{self.num_features} features, {self.num_classes} classes, split {split})"
        )


def _check_column(name: str, value: ArrayLike | None, nodes: int) -> npt.NDArray[np.generic] | None:
    """One entry per node, of any type, or None."""
    if value is None:
        return None
    array = as_column(name, value)
    if array.shape != (nodes,):
        raise InvalidInputError(f"`{name}` must have one entry per node, {nodes}; got shape {array.shape}")
    return array


def _check_split(values: Mapping[str, IntArray], nodes: int, classes: int) -> None:
    seen = np.zeros(nodes, dtype=np.int8)
    for i, part in enumerate(SPLIT_NAMES, start=1):
        twice = np.flatnonzero(seen[values[part]])
        if twice.size:
            node = int(values[part][twice[0]])
            other = SPLIT_NAMES[seen[node] - 1]
            raise InvalidInputError(
                f"`{part}` must not overlap `{other}`; nodes in both: {twice.size}, the first is {node}"
            )
        seen[values[part]] = i
    labels = values["labels"]
    for part in ("train", "validation"):
        unknown = np.flatnonzero(labels[values[part]] < 0)
        if unknown.size:
            raise InvalidInputError(f"`{part}` must hold labelled nodes; node {values[part][unknown[0]]} has label −1")
    if values["train"].size:
        seen_classes = np.unique(labels[values["train"]])
        lacking = classes - seen_classes.size
        if lacking:
            first = np.setdiff1d(np.arange(min(classes, seen_classes.size + 10)), seen_classes)[:10]
            warn(
                f"`train` lacks {lacking} of the {classes} classes, which a model cannot learn: "
                f"{', '.join(map(str, first))}{', …' if lacking > 10 else ''}"
            )


@dataclass(frozen=True, eq=False, repr=False)
class NodePredictions(Sealed):
    """A model's probabilities for nodes of a dataset, with the labels and the split of those nodes.

    `napsets.gnn.train` and `amazon_predictions` return it.

    Attributes
    ----------
    nodes : array of shape (n,)
        Node ids, each once; all nodes of the graph or some of them.
    probabilities : array of shape (n, classes)
        One row per node.
    labels : array of shape (n,)
        True labels; −1 where unknown.
    split : array of str
        The part that each node belonged to when the model was trained, as in `NodeDataset.split`; empty strings where
        that is unknown.
    dataset, model : str
        Their names.
    settings : mapping
        How the model was trained.
    class_names : tuple of str, optional
        One name per class.
    """

    nodes: IntArray
    probabilities: npt.NDArray[np.floating]
    labels: IntArray
    split: npt.NDArray[np.str_] = None  # type: ignore[assignment]  # becomes empty strings
    dataset: str = ""
    model: str = ""
    settings: Values = field(default_factory=dict)
    class_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        nodes = check_integers("nodes", self.nodes).astype(np.int64, copy=False)
        if nodes.size and (nodes.min() < 0 or np.unique(nodes).size != nodes.size):
            raise InvalidInputError("`nodes` must hold ids of at least 0, each once; some repeat or are negative")
        probabilities = check_probabilities(self.probabilities)
        size, classes = probabilities.shape
        if size != nodes.size:
            raise InvalidInputError(f"`probabilities` must have one row per node, {nodes.size}; got {size}")
        labels = check_labels(self.labels, size=size, num_classes=classes)
        split = np.full(size, "") if self.split is None else as_column("split", self.split)
        if split.dtype.kind != "U" or split.shape != (size,):
            raise InvalidInputError(f"`split` must hold one name of a part per node, {size}; got {shown(self.split)}")
        names = check_names("class_names", self.class_names)
        if names is not None and len(names) != classes:
            raise InvalidInputError(f"`class_names` must have one name per class, {classes}; got {len(names)}")
        for name in ("dataset", "model"):
            if not isinstance(getattr(self, name), str):
                raise InvalidInputError(f"`{name}` must be a name; got {shown(getattr(self, name))}")
        checked = {"nodes": nodes, "probabilities": probabilities, "labels": labels, "split": split}
        for name, array in checked.items():
            object.__setattr__(self, name, frozen(array))
        object.__setattr__(self, "class_names", names)
        object.__setattr__(self, "settings", check_settings(self.settings))

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.probabilities.shape[1])

    @property
    def accuracy(self) -> float:
        """Accuracy on the labelled test nodes, or on all labelled nodes without a split; NaN where there are none."""
        judged = (self.labels >= 0) & ((self.split == "test") | ("test" not in self.split))
        correct = self.probabilities[judged].argmax(axis=1) == self.labels[judged]
        return float(correct.mean()) if correct.size else float("nan")

    def take(self, nodes: ArrayLike) -> NodePredictions:
        """Return the predictions of some nodes, by their ids and in that order.

        With ``graph.subgraph(nodes)``, node i of the subgraph is row i.
        """
        wanted = check_integers("nodes", nodes).astype(np.int64, copy=False)
        rows = find_rows(self.nodes, wanted)
        missing = np.flatnonzero(rows < 0)
        if missing.size:
            raise InvalidInputError(f"`nodes` must have predictions; node {wanted[missing[0]]} has none")
        columns = {name: sealed(getattr(self, name)[rows]) for name in ("probabilities", "labels", "split")}
        return replace(self, nodes=wanted, **columns)

    def __len__(self) -> int:
        return self.nodes.size

    def __repr__(self) -> str:
        return (
            f"NodePredictions({len(self):,} nodes, {self.num_classes} classes, dataset {self.dataset!r}, "
            f"model {self.model!r}, accuracy {self.accuracy:.3f})"
        )


def random_split(num_nodes: int, sizes: Sequence[float], seed: int = 0) -> tuple[IntArray, IntArray, IntArray]:
    """Draw disjoint training, validation and test nodes.

    Parameters
    ----------
    num_nodes : int
        Number of nodes to draw from.
    sizes : three numbers
        How many nodes each part has, or, if none exceeds 1, which share of the nodes.
    seed : int
        The same seed gives the same split.

    Returns
    -------
    train, validation, test : numpy.ndarray
        Ascending node ids.

    Examples
    --------
    >>> [part.size for part in random_split(13_752, (752, 1000, 12_000), seed=0)]
    [752, 1000, 12000]
    """
    num_nodes = check_count("num_nodes", num_nodes, maximum=2**40)
    wanted = [check_number("sizes", size, largest=2.0**40) for size in check_list("sizes", sizes, "three numbers")]
    if len(wanted) != 3:
        raise InvalidInputError(f"`sizes` must be three numbers of at least 0; got {tuple(sizes)}")
    shares = max(wanted) <= 1
    counts = [int(size * num_nodes + 1e-9) if shares else check_count("sizes", size) for size in wanted]
    if sum(counts) > num_nodes:
        raise InvalidInputError(f"`sizes` must add up to at most {num_nodes} nodes; got {sum(counts)}")
    order = np.random.default_rng(check_seed(seed)).permutation(num_nodes)
    ends = np.cumsum([0, *counts])
    train, validation, test = (np.sort(order[start:end]) for start, end in pairwise(ends))
    return train, validation, test


def from_pyg(data: Data, *, name: str = "custom", directed: bool = False) -> NodeDataset:
    """Make a dataset from a ``Data`` with ``x``, ``y``, ``edge_index`` and the three masks.

    Parameters
    ----------
    data : torch_geometric.data.Data
        ``train_mask``, ``val_mask`` and ``test_mask`` give the split.
    name, directed
        What results call the dataset, and whether edges count both ways.
    """
    missing = [
        field
        for field in ("x", "y", "edge_index", "train_mask", "val_mask", "test_mask")
        if getattr(data, field, None) is None
    ]
    if missing:
        raise InvalidInputError(f"`data` must have x, y, edge_index and the three masks; it lacks {', '.join(missing)}")
    masks = [as_array(f"data.{part}_mask", getattr(data, f"{part}_mask")) for part in ("train", "val", "test")]
    if any(mask.ndim != 1 or mask.dtype != np.bool_ for mask in masks):
        raise InvalidInputError("`data` must have masks of one boolean per node; choose one column of several splits")
    labels = as_array("data.y", data.y)
    train, validation, test = masks
    return NodeDataset(Graph.from_pyg(data, directed=directed), data.x, labels, train, validation, test, name=name)


def to_pyg(dataset: NodeDataset) -> Data:
    """Return a dataset as a ``Data`` with ``x``, ``y``, ``edge_index`` and masks."""
    torch, pyg = imported("torch", "gnn"), imported("torch_geometric.data", "gnn", "torch_geometric")
    graph = check_kind("dataset", dataset, NodeDataset, hint="Load one, or make one with NodeDataset(...).").graph
    target = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    edge_index = torch.from_numpy(np.stack([graph.indices.astype(np.int64), target]))
    split = dataset.split
    masks = {
        f"{short}_mask": torch.from_numpy(split == part)
        for short, part in (("train", "train"), ("val", "validation"), ("test", "test"))
    }
    x = torch.from_numpy(dataset.feature_rows(slice(None)).copy())
    return pyg.Data(x=x, y=torch.from_numpy(dataset.labels.copy()), edge_index=edge_index, **masks)
