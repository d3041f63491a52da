"""Values of columns, and whether a predicate holds for them.

Source: docs/join.md, section 1.

Rules of this file:

* A value that is missing is ``None``, and no predicate holds for it.
* ``equal_columns`` and ``reaches`` only narrow a search; ``holds`` decides.
"""

import operator
from collections.abc import Callable, Mapping
from math import inf, isnan
from typing import Any, assert_never

from model.vocabulary import Event
from model.vocabulary.join import (
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
from model.vocabulary.join_predicates import NUMBER, Columns, parts_of
from model.vocabulary.settings import PlainData

Cell = float | int | str | bool
_FIELDS = {"key": "key", "value": "value", "event_time": "event_time_us"}
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "!=": operator.ne,
}


def cell(event: Event, column: str, columns: Columns = ()) -> Cell | None:
    """Return the value of a column of a tuple; ``None`` if it is missing or NaN.

    ``columns`` are the declared columns of the tuple's stream.
    """
    field = _FIELDS.get(column)
    if field is not None:
        built_in: Cell = getattr(event, field)
        return built_in
    at = [name for name, _ in columns].index(column)
    value = event.more[at]
    if value is None or columns[at][1] != NUMBER:
        return value
    number = float(value)
    return None if isnan(number) else number


def holds(
    predicate: Predicate, r: Event, s: Event, r_columns: Columns = (), s_columns: Columns = ()
) -> bool:
    """Return whether a predicate holds for a tuple of R and one of S.

    A difference of numbers is a float64; one of integers or times is exact, as Python's is.
    """
    match predicate:
        case And(parts):
            return all(holds(part, r, s, r_columns, s_columns) for part in parts)
        case Where(stream, column, op, constant):
            found = cell(r, column, r_columns) if stream == R else cell(s, column, s_columns)
            return found is not None and _OPERATORS[op](found, constant)
        case Ineq(left, _, right):
            one, other = cell(r, left, r_columns), cell(s, right, s_columns)
        case _:
            one, other = cell(r, predicate.column, r_columns), cell(s, predicate.other, s_columns)
    return one is not None and other is not None and _compare(predicate, one, other)


def _compare(
    predicate: Equi | Band | Apart | Between | Ineq, one: PlainData, other: PlainData
) -> bool:
    """Return whether a predicate holds for a value of R and one of S."""
    match predicate:
        case Equi():
            return bool(one == other)
        case Band(_, eps):
            return bool(abs(one - other) <= eps)
        case Apart(_, eps):
            return bool(abs(one - other) > eps)
        case Between(_, low, high):
            difference = other - one
            return (low is None or low <= difference) and (high is None or difference <= high)
        case Ineq(_, op):
            return _OPERATORS[op](one, other)
    assert_never(predicate)


# ------------------------------------------------------------------------ needs of a predicate


def equal_columns(predicate: Predicate) -> set[tuple[str, str]]:
    """Return the pairs of a column of R and one of S that a predicate needs to be equal."""
    return {(each.column, each.other) for each in parts_of(predicate) if isinstance(each, Equi)}


def reaches(predicate: Predicate) -> dict[tuple[str, str], float]:
    """Return the largest distance that a predicate allows, by pair of columns of R and S."""
    found: dict[tuple[str, str], float] = {}
    for part in parts_of(predicate):
        if isinstance(part, Band):
            reach = part.eps
        elif isinstance(part, Between) and part.low is not None and part.high is not None:
            reach = max(abs(part.low), abs(part.high))
        else:
            continue
        columns = part.column, part.other
        found[columns] = min(reach, found.get(columns, inf))
    return found
