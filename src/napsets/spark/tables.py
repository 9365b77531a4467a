"""Checking the DataFrames that come in, and bringing them to one shape; and the shape of what goes out.

Columns and types are checked at once, from the schemas; values are checked by the tasks that read them, so that
nothing runs before the result is asked for. Both plans check and write by the functions here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from napsets.checks.arguments import check_probabilities
from napsets.errors import InvalidInputError
from napsets.files.ids import CANONICAL_INTEGER
from napsets.files.prediction_columns import SETS, with_first_choices
from napsets.predictions import PredictionSets

#: A whole number with a decimal point, as pandas writes integers that have gaps.
_WHOLE_NUMBER = r"^(-?(?:0|[1-9][0-9]*))\.0*$"

_LIST_COLUMN = "probabilities"
_INTEGERS = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)
_NUMBERS = (*_INTEGERS, st.FloatType, st.DoubleType, st.DecimalType)


@dataclass(frozen=True)
class Tables:
    """The input in one shape; all ids are of one type."""

    edges: DataFrame  # source, target
    rows: (
        DataFrame  # node, probabilities (an array of one number per class), and columns of their order, if it has some
    )
    known: DataFrame  # node, label (text: a class's name or number); known labels only
    nodes: DataFrame  # node; where some may be labelled, one may stand there twice
    class_names: tuple[str, ...]
    id_type: str  # bigint or string
    may_be_labelled: bool
    integer_labels: bool  # whether labels are integers, as they then are in the sets

    @property
    def probabilities(self) -> DataFrame:
        """The rows without their order; a node that has two stops the task that meets it."""
        return _one_row_per_node("probabilities", self.rows.select("node", "probabilities"))

    @property
    def labels(self) -> DataFrame:
        """The known labels; a node that has two stops the task that meets it."""
        return _one_row_per_node("labels", self.known)

    @property
    def order(self) -> list[str]:
        """What rows of probabilities are to be ordered by, where it matters: their place in their files, or the id."""
        return [name for name in self.rows.columns if name not in ("node", "probabilities")] or ["node"]


def as_tables(
    edges: DataFrame,
    probabilities: DataFrame,
    labels: DataFrame,
    nodes: DataFrame | None,
    class_names: Sequence[str] | None = None,
    order: Sequence[Column] = (),
    *,
    labels_typed: bool = True,
) -> Tables:
    """Check columns and types, and return the input in one shape.

    `order` says where the rows of probabilities stand in their files, if they come from some; `labels_typed`, whether
    labels that are text were said to be. Nothing is read but, where the probabilities are one list column and the
    classes have no names, the length of its first row.
    """
    _need_columns("edges", edges, ("source", "target"))
    _need_columns("labels", labels, ("node", "label"))
    _need_columns("probabilities", probabilities, ("node",))
    id_columns = [(edges, "edges", "source"), (edges, "edges", "target")]
    id_columns += [(probabilities, "probabilities", "node"), (labels, "labels", "node")]
    if nodes is not None:
        _need_columns("nodes", nodes, ("node",))
        id_columns.append((nodes, "nodes", "node"))
    id_type = _id_type({f"{name}.{column}": table.schema[column].dataType for table, name, column in id_columns})
    array, class_names = _one_array(probabilities, class_names)
    rows = probabilities.select(_id("probabilities", "node", id_type), array.alias("probabilities"), *order)
    known = _known_labels(labels, id_type, class_names)
    text = labels_typed and isinstance(labels.schema["label"].dataType, st.StringType)
    if nodes is None:
        chosen = rows.select("node").join(known.select("node"), "node", "left_anti")
    else:
        chosen = nodes.select(_id("nodes", "node", id_type))
    return Tables(
        edges=edges.select(_id("edges", "source", id_type), _id("edges", "target", id_type)),
        rows=rows,
        known=known,
        nodes=chosen,
        class_names=class_names,
        id_type=id_type,
        may_be_labelled=nodes is not None,
        integer_labels=not text and all(re.fullmatch(CANONICAL_INTEGER, name) for name in class_names),
    )


def _need_columns(name: str, table: DataFrame, columns: Sequence[str]) -> None:
    if not isinstance(getattr(table, "columns", None), list) or not hasattr(table, "schema"):
        raise InvalidInputError(f"`{name}` must be a Spark DataFrame; got {type(table).__name__}")
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise InvalidInputError(
            f"`{name}` must have the column{'s' * (len(columns) > 1)} {', '.join(columns)}; "
            f"{', '.join(missing)} is missing among {', '.join(table.columns)}"
        )


def _id_type(types: dict[str, st.DataType]) -> str:
    """Return the one type that all id columns have: every width of integers counts as one."""
    for name, kind in types.items():
        if not isinstance(kind, (*_INTEGERS, st.StringType)):
            raise InvalidInputError(f"`{name}` must hold integers or strings; got {kind.simpleString()}")
    texts = {isinstance(kind, st.StringType) for kind in types.values()}
    if len(texts) > 1:
        listed = ", ".join(f"{name} is {kind.simpleString()}" for name, kind in types.items())
        raise InvalidInputError(f"`edges`, `probabilities`, `labels` and `nodes` must have ids of one type; {listed}")
    return "string" if texts == {True} else "bigint"


def _id(name: str, column: str, id_type: str) -> Column:
    """Return an id column in the common type; a missing id stops the task that meets it."""
    message = sf.lit(f"`{name}` must have an id in every row; the column {column} has a null")
    return sf.coalesce(sf.col(column).cast(id_type), sf.raise_error(message).cast(id_type)).alias(column)


def _one_array(probabilities: DataFrame, class_names: Sequence[str] | None) -> tuple[Column, tuple[str, ...]]:
    """Return the probabilities as one array column, and the names of the classes."""
    if _LIST_COLUMN in probabilities.columns:
        return _list_column(probabilities, class_names)
    columns = [field for field in probabilities.schema.fields if field.name != "node"]
    if not columns:
        raise InvalidInputError(
            f"`probabilities` must have one column per class besides node, or a list column {_LIST_COLUMN}; it has none"
        )
    for field in columns:
        if not isinstance(field.dataType, _NUMBERS):
            raise InvalidInputError(
                f"`probabilities` must have a column of numbers for each class; "
                f"{field.name} is {field.dataType.simpleString()}"
            )
    # As NumPy would: float32 stays float32 where every column is, anything else becomes float64.
    kind = "float" if all(isinstance(field.dataType, st.FloatType) for field in columns) else "double"
    array = sf.array(*(named(field.name).cast(kind) for field in columns))
    names = [field.name for field in columns] if class_names is None else class_names
    if len(names) != len(columns):
        raise InvalidInputError(f"`class_names` must have one name per class, {len(columns)}; got {len(names)}")
    return array, tuple(str(name) for name in names)


def _list_column(probabilities: DataFrame, class_names: Sequence[str] | None) -> tuple[Column, tuple[str, ...]]:
    kind = probabilities.schema[_LIST_COLUMN].dataType
    if not isinstance(kind, st.ArrayType) or not isinstance(kind.elementType, _NUMBERS):
        raise InvalidInputError(
            f"`probabilities` must have a list of numbers in its column {_LIST_COLUMN}; got {kind.simpleString()}"
        )
    if class_names is None:
        first = probabilities.select(sf.size(_LIST_COLUMN)).head(1)
        class_names = [str(y) for y in range(first[0][0])] if first else []
    element = "float" if isinstance(kind.elementType, st.FloatType) else "double"
    return sf.col(_LIST_COLUMN).cast(f"array<{element}>"), tuple(class_names)


def _known_labels(labels: DataFrame, id_type: str, class_names: Sequence[str]) -> DataFrame:
    """Return known labels as text: a null, an empty text, NaN and −1 (unless a class is called so) stand for none."""
    kind = labels.schema["label"].dataType
    label = sf.col("label")
    if isinstance(kind, (st.FloatType, st.DoubleType)):
        # What pandas makes of integers with gaps. A label with a fraction stays as it is: no class is called so.
        whole = sf.when(label == sf.floor(label), sf.floor(label).cast("string")).otherwise(label.cast("string"))
        label = sf.when(~sf.isnan(label), whole)
    elif not isinstance(kind, (*_INTEGERS, st.StringType, st.BooleanType)):
        raise InvalidInputError(
            f"`labels` must have class names or indices in its column label; got {kind.simpleString()}"
        )
    text = label.cast("string")
    plain = sf.regexp_replace(text, _WHOLE_NUMBER, "$1")
    rows = labels.select(
        _id("labels", "node", id_type),
        sf.when(text.isin(list(class_names)), text).otherwise(plain).alias("label"),
    )
    none = [text for text in ("", "-1") if text not in class_names]
    return rows.where(sf.col("label").isNotNull() & ~sf.col("label").isin("", *none))


def _one_row_per_node(name: str, rows: DataFrame) -> DataFrame:
    """Return the rows as they are; a node that has two stops the task that meets it."""
    (value,) = (column for column in rows.columns if column != "node")
    message = sf.format_string(f"`{name}` must have one row per node; node %s has %s rows", "node", "rows")
    counted = rows.groupBy("node").agg(sf.first(value).alias(value), sf.count(sf.lit(1)).alias("rows"))
    kind = rows.schema[value].dataType
    once = sf.when(sf.col("rows") == 1, sf.col(value)).otherwise(sf.raise_error(message).cast(kind))
    return counted.select("node", once.alias(value))


def named(column: str) -> Column:
    """Return a column by its very name, dots and all."""
    return sf.col("`" + column.replace("`", "``") + "`")


# -- what goes out ----------------------------------------------------------------------------------------------------


def sets_columns(tables: Tables) -> str:
    """Return the columns of the sets: labels are what they were in the tables, names or integers."""
    label = "bigint" if tables.integer_labels else "string"
    return (
        f"node {tables.id_type}, labels array<{label}>, size int, threshold double, support bigint, "
        f"effective_size double, alpha double, prediction {label}, probability double"
    )


def sets_table(
    sets: PredictionSets, probabilities: npt.NDArray[Any], rows: npt.NDArray[Any], ids: Any, *, integer_labels: bool
) -> pa.Table:
    """Return sets as a table with these columns; `rows` are those of the probabilities that the sets are about."""
    table = sets.to_arrow().set_column(0, "node", ids)
    table = with_first_choices(table, probabilities, rows, sets.class_names or ())
    return table.cast(SETS.schema(ids.type, {}, integer_labels=integer_labels).remove_metadata())


@dataclass(frozen=True)
class Result:
    """What a job gives; the sets are a plan."""

    sets: DataFrame
    #: At which an exact method takes its thresholds: infinite where there are too few labels for it.
    level: float | None = None
    plan: str = "joins"
    choice: str | None = None  # of a method that chooses, and why
    files: tuple[str, ...] = ()  # those that hold the sets already, if they are on this machine
    #: How many rows of probabilities and known labels there are, where they were counted on the way.
    nodes: int | None = None
    labelled: int | None = None
    tables: Tables | None = None  # what it was made of


def with_level(sets: DataFrame, level: float | None) -> DataFrame:
    """Note the level of an exact method in the metadata of the sets; no JSON can hold what is infinite: null."""
    return sets if level is None else sets.withMetadata("alpha", {"level": None if math.isinf(level) else level})


def with_kinds(labels: DataFrame, class_names: Sequence[str]) -> DataFrame:
    """Add to each label what is known of all: whether some are names, some none, some not even numbers."""
    names = list(class_names)
    name, number = sf.col("label").isin(names), sf.col("label").isin([str(y) for y in range(len(names))])
    # One row, which every task gets.
    kinds = labels.agg(
        sf.max(name).alias("names"), sf.max(~name).alias("others"), sf.max(~name & ~number).alias("strange")
    )
    return labels.crossJoin(sf.broadcast(kinds))


def with_kinds_here(labels: pa.Table, class_names: Sequence[str]) -> pa.Table:
    """Do the same with a table that is in this process: Spark would run a job for it."""
    present = set(pc.unique(labels["label"]).to_pylist())
    others = present.difference(class_names)
    strange = others.difference(str(y) for y in range(len(class_names)))
    for kind, value in {"names": others != present, "others": bool(others), "strange": bool(strange)}.items():
        labels = labels.append_column(kind, pa.repeat(value, labels.num_rows))
    return labels


# -- what tasks check on Arrow batches -----------------------------------------------------------------------------


def checked_probabilities(batch: pa.RecordBatch, ids: Any, classes: int, asker: str) -> npt.NDArray[Any]:
    """Return the probabilities of a batch as a checked matrix; errors name the node."""
    column = batch.column("probabilities")
    if column.null_count:
        node = ids[int(column.is_null().to_numpy(zero_copy_only=False).argmax())]
        raise InvalidInputError(f"`probabilities` must have a row for each node of `{asker}`; node {node!s} has none")
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    if (lengths != classes).any():
        i = int((lengths != classes).argmax())
        raise InvalidInputError(
            f"`probabilities` must have {classes} entries in every row; node {ids[i]!s} has {lengths[i]}"
        )
    matrix = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, classes)
    try:
        return check_probabilities(matrix)
    except InvalidInputError as error:
        # A row's number within a batch means nothing to users, so the message names its node.
        message = re.sub(r"\brow (\d+)", lambda row: f"node {ids[int(row[1])]!s}", str(error))
        raise InvalidInputError(message) from None


def label_indices(batch: pa.RecordBatch, ids: Any, names: tuple[str, ...], labels_are: str) -> npt.NDArray[Any]:
    """Return class indices: by name where every label of the table is one, by number where none is."""
    column = batch.column("label")
    some_names, others, strange = (bool(batch.column(name)[0].as_py()) for name in ("names", "others", "strange"))
    by_number = labels_are == "indices" or (labels_are == "auto" and others and not some_names)
    known = [str(y) for y in range(len(names))] if by_number else names
    index = pc.index_in(column, value_set=pa.array(known, pa.string()))
    if index.null_count:
        i = int(index.is_null().to_numpy(zero_copy_only=False).argmax())
        stray = f"node {ids[i]!s} has {column[i].as_py()!r}"
        if labels_are == "auto" and some_names and not strange:
            raise InvalidInputError(
                f"`labels` must be class names or class numbers, not both; some are names of classes, but {stray}, "
                f"which can only be a number. Say which with --labels-are names or --labels-are indices (in Python: "
                f"labels_are=…), or write them the same way."
            )
        shown = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
        kinds = {"names": f"class names ({shown})", "indices": f"class numbers from 0 to {len(names) - 1}"}
        wanted = kinds.get(labels_are, " or ".join(kinds.values()))
        raise InvalidInputError(f"`labels` must be {wanted}; {stray}")
    return index.to_numpy().astype(np.int64)
