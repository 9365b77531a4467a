"""Files: edges, probabilities, labels, nodes and sets as Parquet, CSV, JSON Lines or npz."""

from __future__ import annotations

from napsets.files.dialect import Dialect, speaking
from napsets.files.edges import read_edges
from napsets.files.features import read_features
from napsets.files.groups import read_groups
from napsets.files.ids import NodeIds
from napsets.files.inputs import Inputs, read_graph, read_inputs
from napsets.files.intervals_reader import IntervalsFile, holds_intervals, read_intervals
from napsets.files.labels import read_labels, read_nodes
from napsets.files.prediction import memory_bound, write_predictions
from napsets.files.probabilities import NodeProbabilities, read_probabilities
from napsets.files.regression import read_regression, write_intervals
from napsets.files.sets_file import check_writable, describe_settings, sets_schema, writing_sets
from napsets.files.sets_reader import SetsFile, read_sets

__all__ = [
    "Dialect",
    "Inputs",
    "IntervalsFile",
    "NodeIds",
    "NodeProbabilities",
    "SetsFile",
    "check_writable",
    "describe_settings",
    "holds_intervals",
    "memory_bound",
    "read_edges",
    "read_features",
    "read_graph",
    "read_groups",
    "read_inputs",
    "read_intervals",
    "read_labels",
    "read_nodes",
    "read_probabilities",
    "read_regression",
    "read_sets",
    "sets_schema",
    "speaking",
    "write_intervals",
    "write_predictions",
    "writing_sets",
]
