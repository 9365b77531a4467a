"""Files: edges, a model's outputs, truth, nodes and predictions as Parquet or CSV."""

from __future__ import annotations

from napsets.files.ids import NodeIds
from napsets.files.inputs import Inputs, read_edges, read_graph, read_graph_around, read_inputs, read_truth
from napsets.files.labels import read_groups, read_labels, read_nodes, read_targets
from napsets.files.outputs import NodeOutputs, read_features, read_numbers, read_probabilities
from napsets.files.prediction_file import PredictionFile, read_prediction, read_sets
from napsets.files.reading import Reading
from napsets.files.writers import check_writable, describe_settings, write_prediction, writing_rows

__all__ = [
    "Inputs",
    "NodeIds",
    "NodeOutputs",
    "PredictionFile",
    "Reading",
    "check_writable",
    "describe_settings",
    "read_edges",
    "read_features",
    "read_graph",
    "read_graph_around",
    "read_groups",
    "read_inputs",
    "read_labels",
    "read_nodes",
    "read_numbers",
    "read_prediction",
    "read_probabilities",
    "read_sets",
    "read_targets",
    "read_truth",
    "write_prediction",
    "writing_rows",
]
