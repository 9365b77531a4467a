"""Whether a row of results can be one: its key is that of its settings, and its numbers are possible."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from napsets.errors import FileFormatError, InvalidInputError
from napsets.paper.blockmodel import BlockCell
from napsets.paper.cells import RESULTS_VERSION, Cell, CoverageCell, DatasetCell
from napsets.paper.leaderboard.cells import LeaderboardCell

__all__ = ["check_row"]

_CELLS: dict[str, type[Cell]] = {cell.study: cell for cell in (DatasetCell, CoverageCell, BlockCell, LeaderboardCell)}

_SHARE = (0.0, 1.0)
_GAP = (-1.0, 1.0)
_POSITIVE = (0.0, math.inf)

Bounds = tuple[float, float]


def _each(names: str, bounds: Bounds) -> dict[str, Bounds]:
    return dict.fromkeys(names.split(), bounds)


#: What is measured in each study, and the least and the most that it can be.
_MEASURED: dict[str, dict[str, Bounds]] = {
    "datasets": {
        **_each("nodes edges features classes test_nodes test_edges eligible", _POSITIVE),
        **_each("node_homophily test_homophily expected_homophily", _SHARE),
    },
    "coverage": {
        **_each("accuracy coverage sscv pccv empty_rate singleton_rate full_rate infinite_rate", _SHARE),
        **_each("mean_size size_given_coverage coverage_sd support eligible test_nodes", _POSITIVE),
        **_each("seconds train_seconds", _POSITIVE),
    },
    "sbm": {
        **_each("aps_gap aps_gap_easy aps_gap_hard naps_gap naps_gap_easy naps_gap_hard advantage", _GAP),
        **_each("aps_gap_se aps_gap_easy_se aps_gap_hard_se", _POSITIVE),
        **_each("naps_gap_se naps_gap_easy_se naps_gap_hard_se advantage_se", _POSITIVE),
        **_each("aps_bound naps_bound lemma_exact lemma_favours_naps", _SHARE),
        **_each("lemma_mean_field neighbours seconds", _POSITIVE),
    },
    "leaderboard": {
        **_each("accuracy coverage singleton_rate empty_rate full_rate", _SHARE),
        **_each("labels level_labels nodes classes mean_size seconds", _POSITIVE),
        **_each("gap_neighbourhood chance_neighbourhood under_neighbourhood over_neighbourhood", _SHARE),
        **_each("gap_class chance_class under_class over_class gap_degree chance_degree under_degree", _SHARE),
        **_each("over_degree gap_confidence chance_confidence under_confidence over_confidence", _SHARE),
        **_each("share_neighbourhood share_class share_degree share_confidence", _SHARE),
    },
}

#: What may be unknown, beside standard errors: no neighbourhood was large enough, nothing covered, nothing trained.
_MAY_LACK = (
    *("pccv", "sscv", "size_given_coverage", "coverage_sd", "train_seconds"),
    *(f"{name}_neighbourhood" for name in ("gap", "chance", "under", "over")),
)


def check_row(study: str, row: Mapping[str, Any], where: object) -> None:
    """Refuse a row that was changed by hand: a `FileFormatError` names it, and the file `where` it stands.

    Studies that are none of the paper's must have a key, and nothing else.
    """
    key = row.get("key")
    if not isinstance(key, str) or not key:
        raise FileFormatError(f"{where} must have a key in each row; one has {key!r}")
    if study not in _CELLS:
        return
    name = f"the row {key!r} of {where}"
    version = row.get("version")
    if version not in range(1, RESULTS_VERSION + 1):
        raise FileFormatError(
            f"{name} must be of a version of the results from 1 to {RESULTS_VERSION}; it is of {version!r}"
        )
    if version == RESULTS_VERSION:  # an earlier one has its keys from settings as they were then
        _check_key(study, row, name)
    for column, bounds in _MEASURED[study].items():
        _check_number(name, column, row.get(column), bounds)


def _check_key(study: str, row: Mapping[str, Any], name: str) -> None:
    try:
        wanted = _CELLS[study].from_row(row).key
    except (KeyError, TypeError, InvalidInputError) as error:
        raise FileFormatError(f"{name} must have the settings of the study {study!r}: {error}") from error
    if row["key"] != wanted:
        raise FileFormatError(
            f"{name} must have the key of its settings, {wanted!r}: one of the two was changed. Remove the file, and "
            f"run what is missing again."
        )


def _check_number(name: str, column: str, value: Any, bounds: Bounds) -> None:
    if value is None and (column in _MAY_LACK or column.endswith("_se")):
        return
    low, high = bounds
    if not isinstance(value, (int, float)) or not low <= value <= high:
        between = f"{low:g} or above" if math.isinf(high) else f"between {low:g} and {high:g}"
        raise FileFormatError(f"{name} must have a {column} that is {between}; it has {value!r}")
