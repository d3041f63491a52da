"""The meaning of a set of workflows: windows and operations computed from all tuples.

Source: docs/script.md, sections 5 and 9.

Rules of this file:

* Nothing is shared between workflows, statements or windows, and nothing is cached, so that a
  reader sees that this file computes what the page says.
* This file knows nothing of graphs, slices and workers. Workers of the simulation ask it for the
  new part of one window or operation.
* Sums are exact, and rounded once. Denominators of floats are powers of two: the largest one in a
  stream is a common denominator of all its values, so only whole numbers of units are added.
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, groupby
from math import inf, sqrt
from operator import itemgetter
from typing import NamedTuple, TypeVar

from model.script.calendar import begin_us, day_after, days_before_us
from model.script.rules import RULES, Rules
from model.script.stream import Point, Stream, before, known_stream
from model.vocabulary import ScriptConfig, Step
from model.vocabulary.script.config import END_US, MILLISECOND_US, Result, Undefined
from model.vocabulary.script.problems import constant
from model.vocabulary.script.slices import Span
from model.vocabulary.script.tree import (
    Across,
    Arithmetic,
    Expression,
    Name,
    Sensor,
    Union,
    Window,
    children,
    is_computed,
    is_constant,
)

Side = TypeVar("Side", bound=Hashable)


class Streams(NamedTuple):
    """The streams that a statement may name."""

    sensors: Mapping[str, Stream]
    names: Mapping[str, Stream]


def answers(
    config: ScriptConfig, sensors: Mapping[str, Stream], rules: Rules = RULES
) -> Iterator[Step]:
    """Yield every result and undefined time of the workflows, from the streams of all sensors."""
    for workflow in config.workflows:
        names: dict[str, Stream] = {}
        computed: set[str] = set()
        for statement in workflow.statements:
            name, expression = statement.name, statement.expression
            stream = stream_of(expression, Streams(sensors, names), rules)
            # A stamp is reported as undefined once, where it is computed.
            names[name] = stream._replace(undefined=frozenset())
            if is_computed(expression, computed):
                computed.add(name)
                yield from (Result(workflow.name, name, *point) for point in stream.points)
            yield from undefined_times(workflow.name, name, stream.undefined)


def undefined_times(workflow: str, name: str, stamps: Iterable[int]) -> list[Undefined]:
    """Return the steps that record stamps without a finite result."""
    return [Undefined(workflow, name, stamp) for stamp in sorted(stamps)]


def stream_of(expression: Expression, streams: Streams, rules: Rules) -> Stream:
    """Return the stream that an expression stands for."""
    if isinstance(expression, Sensor):
        return streams.sensors[expression.id]
    if isinstance(expression, Name):
        return streams.names[expression.name]
    if isinstance(expression, Union):
        return union([stream_of(part, streams, rules) for part in expression.parts])
    if isinstance(expression, Window):
        source = stream_of(expression.source, streams, rules)
        span = Span(expression.length_ms, expression.slide_ms, expression.zone)
        made = window(expression.op, span, source)
        return made._replace(undefined=made.undefined | source.undefined)
    assert isinstance(expression, Across | Arithmetic), "a number is part of an operation"
    sides = children(expression)
    latest = {side: constant(side) if is_constant(side) else None for side in sides}
    inputs = {
        side: stream_of(side, streams, rules) for side, value in latest.items() if value is None
    }
    until_us = min(stream.until_us for stream in inputs.values())
    points = {side: before(stream.points, until_us) for side, stream in inputs.items()}
    made = operation(expression.op, sides, latest, points, until_us, rules)
    below = (stream.undefined for stream in inputs.values())
    return made._replace(undefined=made.undefined.union(*below))


def union(parts: Sequence[Stream]) -> Stream:
    """Return all tuples of all parts that are known in all of them."""
    until_us = min(part.until_us for part in parts)
    points = sorted(point for part in parts for point in before(part.points, until_us))
    return Stream(tuple(points), until_us, frozenset[int]().union(*(p.undefined for p in parts)))


# --------------------------------------------------------------------------------------- windows


def window(op: str, span: Span, source: Stream, from_us: int = 0) -> Stream:
    """Return a value for every window that contains a tuple and ends at ``from_us`` or later.

    ``from_us`` is 0 or an end of a window. The source has all tuples of these windows.
    """
    stamps = [stamp for stamp, _ in source.points]
    values = Values([value for _, value in source.points])
    made = [
        (end_us - MILLISECOND_US, values.aggregate(op, first, behind))
        for end_us, first, behind in _windows(span, stamps, from_us, source.until_us)
    ]
    return known_stream(made, window_until_us(span, source.until_us))


def window_until_us(span: Span, source_us: int) -> int:
    """Return the stamp below which all results of a window are known, by that of its source."""
    return END_US if source_us == END_US else end_after_us(span, source_us) - MILLISECOND_US


def end_after_us(span: Span, stamp_us: int) -> int:
    """Return the first end of a window after a stamp."""
    if span.zone:
        return begin_us(span.zone, day_after(span, stamp_us))
    return (stamp_us // span.slide_us + 1) * span.slide_us


def begin_of_us(span: Span, end_us: int) -> int:
    """Return the begin of the window with an end."""
    return days_before_us(span, end_us) if span.zone else end_us - span.length_us


def _windows(
    span: Span, stamps: Sequence[int], from_us: int, until_us: int
) -> Iterator[tuple[int, int, int]]:
    """Yield the end of each window with a tuple, and the positions of its first and next tuple."""
    end_us, first = from_us, 0
    while True:
        first = bisect_left(stamps, begin_of_us(span, end_us), first)
        if first == len(stamps):
            return
        end_us = max(end_us, end_after_us(span, stamps[first]))
        if end_us > until_us:
            return
        # Tuples between two windows are in none.
        first = bisect_left(stamps, begin_of_us(span, end_us), first)
        behind = bisect_left(stamps, end_us, first)
        if first < behind:
            yield end_us, first, behind
        end_us = end_after_us(span, end_us)


class Values:
    """Values in an order, of which any range can be aggregated."""

    def __init__(self, values: Sequence[float]) -> None:
        self._values = values

    def aggregate(self, op: str, first: int, behind: int) -> float:
        """Return an aggregate of one value or more (the root of ``stddev`` is rounded, too)."""
        if op in ("max", "min"):
            return (max if op == "max" else min)(self._values[first:behind])
        n = behind - first
        if op == "count":
            return float(n)
        total = self._sums[behind] - self._sums[first]
        if op == "sum":
            return _quotient(total, self._scale)
        if op == "avg":
            return _quotient(total, n * self._scale)
        if op == "stddev":
            squares = self._squares[behind] - self._squares[first]
            return sqrt(_quotient(n * squares - total * total, (n * self._scale) ** 2))
        msg = f"there is no aggregate {op!r}"
        raise ValueError(msg)

    @cached_property
    def _scale(self) -> int:
        """Number of units that make 1."""
        return max([value.as_integer_ratio()[1] for value in self._values], default=1)

    @cached_property
    def _units(self) -> list[int]:
        if self._scale == 1:
            return [*map(int, self._values)]
        ratios = [value.as_integer_ratio() for value in self._values]
        return [above * (self._scale // below) for above, below in ratios]

    @cached_property
    def _sums(self) -> list[int]:
        """Sum of the values before each position, in units."""
        return [*accumulate(self._units, initial=0)]

    @cached_property
    def _squares(self) -> list[int]:
        """Sum of the squares before each position, in squares of units."""
        return [*accumulate([each * each for each in self._units], initial=0)]


def _quotient(above: int, below: int) -> float:
    """Return the quotient of two integers, rounded once; infinite if float64 cannot hold it."""
    try:
        return above / below
    except OverflowError:
        return inf


# ------------------------------------------------------------------------------------ operations


def operation(
    op: str,
    sides: Sequence[Side],
    latest: dict[Side, float | None],
    points: Mapping[Side, Sequence[Point]],
    until_us: int,
    rules: Rules,
) -> Stream:
    """Return a value for every stamp of ``points`` from which on all sides have one.

    ``latest`` has the values of the sides before these points; it is updated to those after them.
    """
    updates = [(*point, side) for side, new in points.items() for point in new]
    updates.sort(key=itemgetter(0, 1))
    made: list[Point] = []
    for stamp, group in groupby(updates, itemgetter(0)):
        # Updates are in order of value, so the greatest of several at one time stays.
        for at_once in [[*group]] if rules.is_atomic else [[each] for each in group]:
            latest.update({side: value for _, value, side in at_once})
            values = [latest[side] for side in sides]
            defined = [value for value in values if value is not None]
            if len(defined) == len(values):
                made.append((stamp, combine(op, defined)))
    return known_stream(made, until_us)


def combine(op: str, values: Sequence[float]) -> float:
    """Return the result of one operation; infinite or not a number if it is undefined."""
    if op in ("max", "min", "avg", "sum"):
        return Values(values).aggregate(op, 0, len(values))
    left, right = values
    if op == "/":
        return left / right if right else inf
    return {"+": left + right, "-": left - right, "*": left * right}[op]
