"""Conditions of room ``join`` as data: columns and their kinds, predicates, and their JSON.

Source: docs/join.md, section 1.

Rules of this file:

* A predicate checks what it can know alone. Whether a stream has the column, and of which kind, is
  known to a configuration, which asks :func:`check_predicate`.
* Nothing here decides whether a predicate holds: model and pipeline do that, each by itself.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from math import isfinite
from typing import TypeAlias

from model.vocabulary.settings import (
    ChecksArguments,
    PlainData,
    is_int,
    is_number,
    is_text,
    nearest,
    one_of,
    require,
)

R = "R"
"""The stream that enters at worker 0 and moves right; value of ``Event.stream``."""
S = "S"
"""The stream that enters at the last worker and moves left."""
STREAMS = (R, S)

# -------------------------------------------------------------------------------------- columns

NUMBER, INTEGER, TEXT, TIME, BOOLEAN = "number", "integer", "text", "time", "boolean"
KINDS = (NUMBER, INTEGER, TEXT, TIME, BOOLEAN)
"""Kinds of columns: float64, int64, text, int64 microseconds since the epoch, and yes or no."""
DISTANT = (NUMBER, INTEGER, TIME)
"""Kinds whose values have a distance."""
BUILT_IN: Mapping[str, str] = {"key": TEXT, "value": NUMBER, "event_time": TIME}
"""Columns that every stream has, with their kinds."""
RESERVED = (*BUILT_IN, "event_time_us", "source_id", "seq", "stream", "rank", "ts")
"""Names that no column may have, because tuples have them already."""
GRAMMAR_WORDS = ("any", "and", "within", "apart", "of", "true", "false")
"""Names that no column may have, because conditions are written with them."""
OPERATORS = ("<", "<=", ">", ">=", "!=")
SELECTIONS = ("=", *OPERATORS)
EQUALITIES = ("=", "!=")
"""Operators that need no order."""
LARGEST = (1 << 63) - 1
"""Largest integer, time, and distance of either; the smallest is its negative."""

Kinds: TypeAlias = Mapping[str, str]
"""Kind of every column of a stream."""
Columns: TypeAlias = tuple[tuple[str, str], ...]
"""Names and kinds of the columns that a stream has beside those that are built in."""
Constant: TypeAlias = str | float | int | bool
"""A value that a column is compared with."""
_A = {each: f"{'an' if each == INTEGER else 'a'} {each}" for each in KINDS}


def is_name(name: object) -> bool:
    """Return whether a text may name a column in a condition."""
    if not isinstance(name, str) or name in GRAMMAR_WORDS:
        return False
    return name.isidentifier() and re.fullmatch(r"\w+", name) is not None


def kinds_of(columns: Columns) -> dict[str, str]:
    """Return the kinds of all columns of a stream, with those that are built in."""
    return {**BUILT_IN, **dict(columns)}


def check_columns(setting: str, columns: Columns) -> None:
    """Raise ``ValueError`` unless these can be the columns of a stream."""
    require(isinstance(columns, tuple), setting, columns, "a tuple of names and kinds")
    names = []
    for column in columns:
        good = isinstance(column, tuple) and len(column) == 2
        require(good, f"a column of {setting}", column, "a pair of a name and a kind")
        name, kind = column
        what = "letters, digits and _, without a digit first, and no word of a condition"
        require(is_name(name), f"a column of {setting}", name, what)
        others = ", ".join(RESERVED)
        require(name not in RESERVED, f"a column of {setting}", name, f"none of {others}")
        require(name not in names, f"a column of {setting}", name, "named once")
        require(kind in KINDS, f"the kind of {name!r} in {setting}", kind, one_of(KINDS))
        names.append(name)


def check_values(columns: Columns, whose: str, more: tuple[PlainData, ...]) -> None:
    """Raise ``ValueError`` unless a tuple has one value, or ``None``, for each of its columns."""
    if len(more) != len(columns):
        msg = f"{whose} has {len(more)} values for {len(columns)} columns: {more!r}"
        raise ValueError(msg)
    for (name, kind), value in zip(columns, more, strict=True):
        good = value is None or is_of_kind(kind, value) or _is_odd_float(kind, value)
        require(good, f"{name} of {whose}", value, f"{_A[kind]}, or nothing")


def _is_odd_float(kind: str, value: object) -> bool:
    return kind == NUMBER and isinstance(value, float) and not isfinite(value)


def is_of_kind(kind: str, value: object) -> bool:
    """Return whether a value can be a constant of a kind: a number is finite."""
    if kind == NUMBER:
        return is_number(value) and abs(value) <= sys.float_info.max
    if kind in (INTEGER, TIME):
        return is_int(value) and abs(value) <= LARGEST
    if kind == TEXT:
        return is_text(value)
    return isinstance(value, bool)


# ----------------------------------------------------------------------------------- predicates


class _Compared(ChecksArguments):
    """Base of predicates about a column of R and one of S, which has the same name if not given."""

    __slots__ = ()
    column: str
    """Column of R; of ``Where``, of the stream."""
    other: str
    """Column of S; ``""`` takes ``column``."""

    def __post_init__(self) -> None:
        if not self.other:
            object.__setattr__(self, "other", self.column)
        _require_name("column", self.column)
        _require_name("other", self.other)
        self._check()

    def _check(self) -> None:
        """Raise ``ValueError`` for arguments that are not good together."""


@dataclass(frozen=True, slots=True)
class Equi(_Compared):
    """Predicate ``r.column = s.other``.

    Examples:
        >>> from model.vocabulary.join import And, Band, Equi, Where
        >>> close = And((Equi("key"), Band("value", 0.5), Where("R", "value", ">", 0.0)))
    """

    column: str
    other: str = ""


@dataclass(frozen=True, slots=True)
class _Distant(_Compared):
    """Base of predicates about the distance of two columns."""

    column: str
    eps: float
    """Distance, at least 0; of times in microseconds."""
    other: str = ""

    def _check(self) -> None:
        good = _is_finite(self.eps) and self.eps >= 0
        require(good, "eps", self.eps, "a finite number, at least 0")


@dataclass(frozen=True, slots=True)
class Band(_Distant):
    """Predicate: the columns differ by at most ``eps``, ``abs(r.column - s.other) <= eps``."""


@dataclass(frozen=True, slots=True)
class Apart(_Distant):
    """Predicate: the columns differ by more than ``eps``, ``abs(r.column - s.other) > eps``."""


@dataclass(frozen=True, slots=True)
class Between(_Compared):
    """Predicate ``low <= s.other - r.column <= high``; ``None`` is no bound on that side."""

    column: str
    low: float | None
    """Least difference, of times in microseconds."""
    high: float | None
    """Greatest difference."""
    other: str = ""

    def _check(self) -> None:
        for name, bound in (("low", self.low), ("high", self.high)):
            good = bound is None or _is_finite(bound)
            require(good, name, bound, "a finite number, or None")
        if self.low is None and self.high is None:
            msg = f"Between({self.column!r}) has neither low nor high; it must have one of them"
            raise ValueError(msg)
        if self.low is not None and self.high is not None:
            require(self.low <= self.high, "low", self.low, f"at most {self.high}, which is high")


@dataclass(frozen=True, slots=True)
class Ineq(ChecksArguments):
    """Predicate ``r.left op s.right``; texts are compared by code point."""

    left: str
    """Column of R."""
    op: str
    """Operator, ``<``, ``<=``, ``>``, ``>=``, ``!=``, or ``=`` of a selection."""
    right: str
    """Column of S."""

    def __post_init__(self) -> None:
        _require_name("left", self.left)
        require(self.op in OPERATORS, "op", self.op, one_of(OPERATORS))
        _require_name("right", self.right)


@dataclass(frozen=True, slots=True)
class Where(ChecksArguments):
    """Predicate about the tuple of one stream, a selection: ``stream.column op constant``."""

    stream: str
    """``"R"`` or ``"S"``."""
    column: str
    """Column of the stream."""
    op: str
    constant: Constant
    """Value of the column's kind; a time in microseconds since 1970."""

    def __post_init__(self) -> None:
        require(self.stream in STREAMS, "stream", self.stream, one_of(STREAMS))
        _require_name("column", self.column)
        require(self.op in SELECTIONS, "op", self.op, one_of(SELECTIONS))
        good = any(is_of_kind(kind, self.constant) for kind in KINDS)
        what = "a text, a finite number, an integer of 64 bits, True or False"
        require(good, "constant", self.constant, what)


@dataclass(frozen=True, slots=True)
class And(ChecksArguments):
    """Predicate: every part holds. Without parts, every pair within the window matches."""

    parts: tuple["Predicate", ...] = ()
    """Predicates, all of which hold."""

    def __post_init__(self) -> None:
        require(isinstance(self.parts, tuple), "parts", self.parts, "a tuple of predicates")
        for part in self.parts:
            require(isinstance(part, PREDICATES), "a part of And", part, "a predicate")


Predicate = Equi | Band | Apart | Between | Ineq | Where | And
"""A condition on a pair of tuples."""
PREDICATES = (Equi, Band, Apart, Between, Ineq, Where, And)


def _require_name(field: str, name: object) -> None:
    require(is_name(name), field, name, "the name of a column")


def _is_finite(value: object) -> bool:
    return is_number(value) and abs(value) <= sys.float_info.max


# ----------------------------------------------------------------- predicates of certain streams


def parts_of(predicate: Predicate) -> Iterator[Predicate]:
    """Yield the predicates of which a predicate is made, none of them an ``And``."""
    if isinstance(predicate, And):
        for part in predicate.parts:
            yield from parts_of(part)
    else:
        yield predicate


def columns_of(predicate: Predicate) -> Iterator[tuple[str, str]]:
    """Yield each stream and column that a predicate looks at."""
    for part in parts_of(predicate):
        if isinstance(part, Where):
            yield part.stream, part.column
        elif isinstance(part, Ineq):
            yield from ((R, part.left), (S, part.right))
        elif not isinstance(part, And):
            yield from ((R, part.column), (S, part.other))


def kind_of_column(kinds: Mapping[str, Kinds], stream: str, column: str) -> str:
    """Return the kind of a column of a stream; ``ValueError`` if there is none of that name."""
    if column not in kinds[stream]:
        has = f"it has {', '.join(kinds[stream])}{nearest(column, kinds[stream])}"
        msg = f"{stream} has no column {column!r}; {has}"
        raise ValueError(msg)
    return kinds[stream][column]


def check_predicate(query: str, predicate: Predicate, r_kinds: Kinds, s_kinds: Kinds) -> None:
    """Raise ``ValueError`` unless the columns exist and their kinds permit the predicate."""
    kinds = {R: r_kinds, S: s_kinds}
    try:
        for part in parts_of(predicate):
            _check_part(part, kinds)
    except ValueError as error:
        msg = f"query {query!r}: {error}"
        raise ValueError(msg) from None


def _check_part(part: Predicate, kinds: Mapping[str, Kinds]) -> None:
    named = list(columns_of(part))
    found = [kind_of_column(kinds, *each) for each in named]
    described = [
        f"{stream}'s {column} is {_A[kind]}"
        for (stream, column), kind in zip(named, found, strict=True)
    ]
    kind, first = found[0], described[0]
    if kind != found[-1]:
        _refuse(f"{' and '.join(described)}; a condition compares columns of one kind")
    if isinstance(part, Band | Apart | Between) and kind not in DISTANT:
        _refuse(f"{first}, which has no distance")
    if isinstance(part, Ineq | Where) and kind == BOOLEAN and part.op not in EQUALITIES:
        _refuse(f"{first}, which has no order")
    if isinstance(part, Where) and not is_of_kind(kind, part.constant):
        _refuse(f"{first}, which {part.constant!r} is not")
    for number in _numbers(part):
        if kind == NUMBER and float(number) != number:
            _refuse(f"{first}, and {number!r} is no number of float64")
    for bound in _distances(part):
        if kind != NUMBER and not is_of_kind(kind, bound):
            unit = ", in microseconds" if kind == TIME else ""
            _refuse(f"{first}; its distances are integers of 64 bits{unit}, which {bound!r} is not")


def _numbers(part: Predicate) -> Iterator[float]:
    """Yield the distances of a predicate, and the constant of a selection if it is a number."""
    yield from _distances(part)
    if isinstance(part, Where) and not isinstance(part.constant, str | bool):
        yield part.constant


def _distances(part: Predicate) -> Iterator[float]:
    """Yield the distances of a predicate."""
    if isinstance(part, Band | Apart):
        yield part.eps
    elif isinstance(part, Between):
        yield from (bound for bound in (part.low, part.high) if bound is not None)


def _refuse(sentence: str) -> None:
    raise ValueError(sentence)


# ------------------------------------------------------------------------------------------ JSON

_WORDS: Mapping[str, type[Equi | Band | Apart | Between | Ineq | Where]] = {
    "equi": Equi,
    "band": Band,
    "apart": Apart,
    "between": Between,
    "ineq": Ineq,
    "where": Where,
}


def predicate_to_json(predicate: Predicate) -> list[PlainData]:
    """Return plain data: a list that starts with the kind of the predicate."""
    if isinstance(predicate, And):
        return ["and", *map(predicate_to_json, predicate.parts)]
    [word] = [word for word, kind in _WORDS.items() if type(predicate) is kind]
    values = {each.name: getattr(predicate, each.name) for each in fields(predicate)}
    if "other" in values and values["other"] == values["column"]:
        del values["other"]
    return [word, *values.values()]


def predicate_from_json(data: PlainData) -> Predicate:
    """Read the output of :func:`predicate_to_json`; raise ``ValueError`` for other data."""
    if isinstance(data, list | tuple) and data:
        word, *rest = data
        if word == "and":
            return And(tuple(predicate_from_json(part) for part in rest))
        if isinstance(word, str) and word in _WORDS:
            names = [each.name for each in fields(_WORDS[word])]
            if len(rest) in (len(names), len(names) - ("other" in names)):
                return _WORDS[word](*rest)
    msg = f"{data!r} is not a predicate"
    raise ValueError(msg)
