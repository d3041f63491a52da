"""Predicates on pairs of tuples, decided on whole columns.

A missing value satisfies nothing. Integers and times are compared exactly; the difference of two
numbers is rounded once.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, assert_never

import numpy as np

from model.vocabulary.join import (
    BUILT_IN,
    And,
    Apart,
    Band,
    Between,
    Equi,
    Ineq,
    Predicate,
    R,
    Where,
)
from spark_impl.join.columns import find_missing
from spark_impl.runtime.arrays import Bools, Column

_COMPARE: dict[str, np.ufunc] = {
    "=": np.equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "!=": np.not_equal,
}


class HasColumns(Protocol):
    """Tuples of one stream."""

    def column(self, name: str) -> Column:
        """Return the column that a predicate names."""


def holds(predicate: Predicate, r: HasColumns, s: HasColumns) -> Bools:
    """Return which pairs of a tuple of R and one of S satisfy a predicate."""
    if isinstance(predicate, And):
        if not predicate.parts:
            return np.ones(len(r.column("event_time")), np.bool_)
        good, *others = (holds(part, r, s) for part in predicate.parts)
        for other in others:
            good &= other
        return good
    if isinstance(predicate, Where):
        return _accepts(predicate, r if predicate.stream == R else s)
    if isinstance(predicate, Ineq):
        names = predicate.left, predicate.right
    else:
        names = predicate.column, predicate.other
    columns = r.column(names[0]), s.column(names[1])
    return _of_known(names, columns, partial(_compare, predicate))


def _accepts(selection: Where, tuples: HasColumns) -> Bools:
    # An array, because NumPy alone would cut off zeros at the end of a text.
    constant = np.empty((), object)
    constant[()] = selection.constant
    column = tuples.column(selection.column)
    if column.dtype != object:
        constant = constant.astype(column.dtype)
    compare = _COMPARE[selection.op]
    return _of_known((selection.column,), (column,), lambda own: compare(own, constant))


def _of_known(
    names: tuple[str, ...], columns: tuple[Column, ...], decide: Callable[..., Bools]
) -> Bools:
    """Return what a function says of columns whose missing values it does not see."""
    good = known(names, columns)
    if good is None:
        return np.asarray(decide(*columns), np.bool_)
    good[good] = decide(*(column[good] for column in columns))
    return good


def known(names: Sequence[str], columns: Sequence[Column]) -> Bools | None:
    """Return in which rows no column lacks a value; ``None``: in all of them."""
    good: Bools | None = None
    for name, column in zip(names, columns, strict=True):
        if name not in BUILT_IN and (missing := find_missing(column)).any():
            good = ~missing if good is None else good & ~missing
    return good


def _compare(predicate: Equi | Band | Apart | Between | Ineq, one: Column, other: Column) -> Bools:
    found: Bools
    if isinstance(predicate, Equi | Ineq):
        found = _COMPARE["=" if isinstance(predicate, Equi) else predicate.op](one, other)
    elif isinstance(predicate, Between):
        found = _lies_between(one, other, predicate.low, predicate.high)
    elif isinstance(predicate, Band):
        found = _distance(one, other) <= predicate.eps
    elif isinstance(predicate, Apart):
        found = _distance(one, other) > predicate.eps
    else:
        assert_never(predicate)
    return found


def _distance(one: Column, other: Column) -> Column:
    """Return the distances of numbers, which may be infinite, or those of integers, exactly."""
    if one.dtype == np.float64:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.abs(one - other))
    larger, smaller = np.maximum(one, other), np.minimum(one, other)
    distance: Column = larger.view(np.uint64) - smaller.view(np.uint64)  # modulo 2^64: exact
    return distance


def _lies_between(one: Column, other: Column, low: float | None, high: float | None) -> Bools:
    """Return where ``low <= other - one <= high``."""
    good = np.ones(len(one), np.bool_)
    if one.dtype == np.float64:
        with np.errstate(over="ignore", invalid="ignore"):
            difference = other - one
        if low is not None:
            good &= difference >= low
        if high is not None:
            good &= difference <= high
        return good
    distance = _distance(one, other)
    if low is not None:
        good &= _is_ahead(one, other, distance, int(low))
    if high is not None:
        good &= _is_ahead(other, one, distance, -int(high))
    return good


def _is_ahead(one: Column, other: Column, distance: Column, by: int) -> Bools:
    """Return where ``other - one >= by``, for integers; ``distance`` is the absolute value."""
    if by > 0:
        return np.asarray((other >= one) & (distance >= by))
    return np.asarray((other >= one) | (distance <= -by))
