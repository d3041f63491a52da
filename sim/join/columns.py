"""Columns of the admitted tuples as arrays, and predicates on them.

Source: docs/join.md, section 1.

Rules of this file:

* A missing value meets no predicate, nor does NaN. In arrays a missing value is NaN in numbers,
  -2^63 in integers and times, None in texts and -1 in booleans.
* Differences of numbers are rounded once, to float64; those of integers and times are exact,
  although they may need 65 bits.
"""

from collections.abc import Sequence
from typing import TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from model.vocabulary import Event
from model.vocabulary.join_predicates import (
    BOOLEAN,
    NUMBER,
    TEXT,
    Apart,
    Band,
    Between,
    Columns,
    Constant,
    Equi,
    Ineq,
    kinds_of,
)
from sim.kernel.distributions import AnyArray

BoolArray: TypeAlias = NDArray[np.bool_]
_ROWS = 1_024
"""Initial number of rows."""
_DTYPES: dict[str, type] = {TEXT: np.object_, NUMBER: np.float64, BOOLEAN: np.int8}
LEAST = -(1 << 63)
"""Integer or time that stands for a missing value."""
_OPERATORS = {
    "=": np.equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "!=": np.not_equal,
}


class TupleColumns:
    """The admitted tuples of one stream, by rank; rows behind the last one are unused."""

    __slots__ = ("_arrays", "_kinds", "_more", "_numbers")

    def __init__(self, columns: Columns, numbers: dict[str, int]) -> None:
        self._numbers = numbers  # of texts, by first appearance in any column of any stream
        self._kinds = kinds_of(columns)
        self._more = [name for name, _ in columns]
        self._arrays: dict[str, AnyArray] = {
            name: np.zeros(_ROWS, dtype=_DTYPES.get(kind, np.int64))
            for name, kind in self._kinds.items()
        }
        for name in ("source_id", "epoch", *map(number_of, self._texts())):
            self._arrays[name] = np.zeros(_ROWS, dtype=np.int64)

    def __getitem__(self, name: str) -> AnyArray:
        """Return, by rank, a column, ``source_id``, ``epoch``, or the numbers of a text column."""
        return self._arrays[name]

    def is_there(self, name: str, ranks: NDArray[np.int64]) -> BoolArray:
        """Return which of the tuples have a value in a column."""
        kind = self._kinds[name]
        if kind == TEXT:
            return np.asarray(self[number_of(name)][ranks] >= 0)
        found = self[name][ranks]
        if kind == NUMBER:
            return ~np.isnan(found)
        return np.asarray(found != (-1 if kind == BOOLEAN else LEAST))

    def put(self, rank: int, events: Sequence[Event], epoch: int) -> None:
        """Write tuples that an epoch admitted; ``rank`` is that of the first one."""
        end = rank + len(events)
        if end > len(self["epoch"]):
            self._grow(end)
        _, source_id, key, event_us, value, _, _, more = zip(*events, strict=True)
        given = {"source_id": source_id, "key": key, "event_time": event_us, "value": value}
        given.update(zip(self._more, zip(*more, strict=True), strict=True))
        for name, values in given.items():
            kind = self._kinds.get(name)
            missing = {TEXT: None, NUMBER: np.nan, BOOLEAN: -1}.get(str(kind), LEAST)
            self[name][rank:end] = [missing if each is None else each for each in values]
        for name in self._texts():
            self[number_of(name)][rank:end] = [
                -1 if each is None else self._numbers.setdefault(each, len(self._numbers))
                for each in given[name]
            ]
        self["epoch"][rank:end] = epoch

    def _texts(self) -> list[str]:
        return [name for name, kind in self._kinds.items() if kind == TEXT]

    def _grow(self, rows: int) -> None:
        """Make room for twice as many rows as are needed now."""
        for name, column in self._arrays.items():
            grown = np.zeros(2 * rows, dtype=column.dtype)
            grown[: len(column)] = column
            self._arrays[name] = grown


def number_of(column: str) -> str:
    """Return the name of the array that numbers the texts of a column, equal ones alike."""
    return f"{column}#"


# -------------------------------------------------------------------------------------- predicates


def is_met(
    predicate: Equi | Band | Apart | Between | Ineq, left: AnyArray, right: AnyArray
) -> BoolArray:
    """Return where a predicate holds for values of R and S by position, none missing."""
    match predicate:
        case Equi():
            return np.asarray(np.equal(left, right), np.bool_)
        case Ineq(_, op):
            return np.asarray(_OPERATORS[op](left, right), np.bool_)
        case Band(_, eps):
            return _lies_within(left, right, -eps, eps)
        case Apart(_, eps):
            if left.dtype.kind == "f":
                return np.asarray(np.abs(left - right) > eps)
            return ~_lies_within(left, right, -eps, eps)
        case Between(_, low, high):
            return _lies_within(left, right, low, high)
    assert_never(predicate)


def is_selected(values: AnyArray, op: str, constant: Constant) -> BoolArray:
    """Return where ``value op constant`` holds for values of one stream, none missing."""
    return np.asarray(
        _OPERATORS[op](values, np.full(len(values), constant, values.dtype)), np.bool_
    )


def _lies_within(
    left: AnyArray, right: AnyArray, low: float | None, high: float | None
) -> BoolArray:
    """Return where ``low <= right - left <= high``."""
    good = np.ones(len(left), np.bool_)
    if left.dtype.kind == "f":
        difference = right - left
        for bound, compare in ((low, np.greater_equal), (high, np.less_equal)):
            if bound is not None:
                good &= compare(difference, bound)
        return good
    is_ahead = right >= left
    # Modulo 2^64, which no distance reaches.
    distance = np.maximum(left, right).view(np.uint64) - np.minimum(left, right).view(np.uint64)
    if low is not None:
        least = np.uint64(abs(int(low)))
        good &= is_ahead & (distance >= least) if low > 0 else is_ahead | (distance <= least)
    if high is not None:
        most = np.uint64(abs(int(high)))
        is_behind = ~is_ahead & (distance >= most)
        good &= is_behind if high < 0 else ~is_ahead | (distance <= most)
    return good
