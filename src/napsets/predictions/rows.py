"""Rows: a frozen dataclass of arrays with one row per node, which can be cut and joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TypeVar

import numpy as np

from napsets.checks.arguments import IntArray, Sealed, as_array, frozen
from napsets.checks.values import Record, check_list
from napsets.errors import InvalidInputError

Self = TypeVar("Self", bound="Rows")


class Rows(Sealed):
    """A frozen dataclass with arrays of one row per node; `nodes` says which."""

    nodes: IntArray

    def check_column(self, name: str) -> None:
        """Check and freeze an array with one number per node."""
        column = as_array(name, getattr(self, name))
        if column.shape != self.nodes.shape:
            raise InvalidInputError(
                f"`{name}` must have one entry per node, {self.nodes.size}; got shape {column.shape}"
            )
        if column.dtype.kind not in "fiub" or np.isnan(column).any():
            raise InvalidInputError(f"`{name}` must hold numbers, none of them NaN; got dtype {column.dtype}")
        object.__setattr__(self, name, frozen(column))

    @classmethod
    def unchecked(cls: type[Self], **values: object) -> Self:
        """Make an object from arrays that are valid and not shared, without validation."""
        prediction = object.__new__(cls)
        for attribute in fields(cls):  # type: ignore[arg-type]
            value = values.get(attribute.name, attribute.default)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            prediction.__dict__[attribute.name] = value
        return prediction

    @classmethod
    def concat(cls: type[Self], parts: Sequence[Self]) -> Self:
        """Return the rows of several predictions of one kind, one after another.

        Parameters
        ----------
        parts : sequence of predictions
            At least one, all with the same error rate and, of sets, the same classes.
        """
        kinds = {type(part) for part in check_list("parts", parts, "predictions")}
        if len(kinds) != 1 or not all(issubclass(kind, Rows) for kind in kinds):
            raise InvalidInputError(f"`parts` must hold at least one prediction, all of one kind; got {len(parts)}")
        if len(parts) == 1:
            return parts[0]
        values: Record = {}
        for attribute in fields(parts[0]):  # type: ignore[arg-type]
            column = [getattr(part, attribute.name) for part in parts]
            if all(isinstance(value, np.ndarray) for value in column):
                if len({value.shape[1:] for value in column}) > 1:
                    raise InvalidInputError("`parts` must have the same number of classes")
                values[attribute.name] = np.concatenate(column)
            elif any(isinstance(value, np.ndarray) for value in column) or any(v != column[0] for v in column[1:]):
                raise InvalidInputError(f"`parts` must agree in `{attribute.name}`")
            else:
                values[attribute.name] = column[0]
        return type(parts[0]).unchecked(**values)

    def _take(self: Self, rows: IntArray) -> Self:
        """Return these rows, in this order."""
        values = {attribute.name: getattr(self, attribute.name) for attribute in fields(self)}  # type: ignore[arg-type]
        taken = {name: part[rows] if isinstance(part, np.ndarray) else part for name, part in values.items()}
        return type(self).unchecked(**taken)
