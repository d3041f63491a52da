"""Syntax trees of sensor scripts: the meaning of a script, without its spelling.

Rules of this file:

* A node refuses bad arguments when it is built; ``problems`` finds faults between statements.
* Expressions may come from anybody: code that meets an expression of unknown depth uses no
  recursion.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from zoneinfo import ZoneInfo

from model.vocabulary.settings import PlainData, is_int, is_number, one_of, require

WINDOW_OPS = ("max", "min", "avg", "sum", "count", "stddev")
ACROSS_OPS = ("max", "min", "avg", "sum")
ARITHMETIC_OPS = ("+", "-", "*", "/")
FUNCTIONS = ("union", *WINDOW_OPS)

SPAN_MAX_MS = 10**12
"""Longest window and slide (ms), about 31 years."""
DAY_MS = 86_400_000
OVERLAP_MAX = 10_000
"""Most windows that a tuple may lie in."""
DEPTH_MAX = 100
"""Deepest expression; a part with a name of its own does not count."""
PARTS_MAX = 100_000
"""Most parts of a union, including parts of inner unions: names may double them every line."""
NAME = re.compile(r"[^\W\d]\w*")
SENSOR = re.compile(r'[^"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+')


def _position() -> int:
    """Return the field of the position in the text; trees are equal whatever their positions."""
    at: int = field(default=0, compare=False, repr=False, kw_only=True)
    return at


@dataclass(frozen=True, slots=True)
class Number:
    """Constant, at least 0."""

    value: float
    at: int = _position()

    def __post_init__(self) -> None:
        good = is_number(self.value) and isfinite(self.value) and self.value >= 0
        require(good, "a number", self.value, "finite and at least 0")


@dataclass(frozen=True, slots=True)
class Sensor:
    """Stream of a sensor."""

    id: str
    at: int = _position()

    def __post_init__(self) -> None:
        good = isinstance(self.id, str) and SENSOR.fullmatch(self.id) is not None
        require(good, "a sensor", self.id, "text without quotes and control characters")


@dataclass(frozen=True, slots=True)
class Name:
    """Stream of an earlier statement of the same workflow."""

    name: str
    at: int = _position()

    def __post_init__(self) -> None:
        require_name("a name", self.name)


@dataclass(frozen=True, slots=True)
class Union:
    """All tuples of all parts; a tuple of two parts occurs twice."""

    parts: tuple["Expression", ...]
    at: int = _position()

    def __post_init__(self) -> None:
        _require_streams("a part of a union", self.parts)


@dataclass(frozen=True, slots=True)
class Window:
    """An aggregate of every window [e - length, e), for e a multiple of the slide."""

    op: str
    source: "Expression"
    length_ms: int
    slide_ms: int
    zone: str = ""
    """Time zone whose days are counted, each as ``DAY_MS``; empty: there are no days."""
    at: int = _position()

    def __post_init__(self) -> None:
        require(self.op in WINDOW_OPS, "an aggregate", self.op, one_of(WINDOW_OPS))
        _require_streams("the source of a window", (self.source,))
        require_span("the length of a window", self.length_ms)
        require_span("the slide of a window", self.slide_ms)
        good = self.length_ms <= OVERLAP_MAX * self.slide_ms
        require(good, "the slide of a window", self.slide_ms, f"length/{OVERLAP_MAX} at least")
        if self.zone != "":
            require(is_zone(self.zone), "the time zone", self.zone, "a name of the IANA database")
            for span_ms in (self.length_ms, self.slide_ms):
                is_whole = span_ms % DAY_MS == 0
                require(is_whole, "a span of days", span_ms, f"a multiple of {DAY_MS} ms")


@dataclass(frozen=True, slots=True)
class Across:
    """An aggregate of the latest values of several streams."""

    op: str
    parts: tuple["Expression", ...]
    at: int = _position()

    def __post_init__(self) -> None:
        require(self.op in ACROSS_OPS, "an aggregate of streams", self.op, one_of(ACROSS_OPS))
        _require_streams(f"a part of {self.op}", self.parts)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``left op right`` of the latest values."""

    op: str
    left: "Expression"
    right: "Expression"
    at: int = _position()

    def __post_init__(self) -> None:
        require(self.op in ARITHMETIC_OPS, "an operator", self.op, one_of(ARITHMETIC_OPS))
        for side in (self.left, self.right):
            require(isinstance(side, EXPRESSIONS), f"a side of {self.op}", side, "an expression")


Expression = Number | Sensor | Name | Union | Window | Across | Arithmetic
EXPRESSIONS = (Number, Sensor, Name, Union, Window, Across, Arithmetic)


@dataclass(frozen=True, slots=True)
class Statement:
    """``name = expression``."""

    name: str
    expression: Expression
    at: int = _position()

    def __post_init__(self) -> None:
        require_name("the name of a statement", self.name)
        good = isinstance(self.expression, EXPRESSIONS)
        require(good, f"what {self.name} is", self.expression, "an expression")


@dataclass(frozen=True, slots=True)
class Workflow:
    """One script: statements in order. Its names are local to it."""

    name: str
    statements: tuple[Statement, ...]

    def __post_init__(self) -> None:
        good = isinstance(self.name, str) and bool(self.name)
        require(good, "the name of a workflow", self.name, "text that is not empty")


def require_name(what: str, name: object) -> None:
    """Refuse a text that cannot be a name."""
    good = isinstance(name, str) and NAME.fullmatch(name) is not None and name not in FUNCTIONS
    require(
        good, what, name, "letters, digits and _, without a digit first, and no name of a function"
    )


def require_span(what: str, span_ms: object) -> None:
    """Refuse a value that is no length of time."""
    good = is_int(span_ms) and 0 < span_ms <= SPAN_MAX_MS
    require(good, what, span_ms, f"a whole number of milliseconds from 1 to {SPAN_MAX_MS}")


def is_zone(name: object) -> bool:
    """Return whether a text names a time zone that is the same on all machines."""
    try:
        return isinstance(name, str) and name != "localtime" and bool(ZoneInfo(name))
    except (LookupError, ValueError, OSError):  # a folder of zones is no zone
        return False


def _require_streams(what: str, parts: object) -> None:
    require(isinstance(parts, tuple) and bool(parts), what, parts, "at least one stream")
    assert isinstance(parts, tuple)
    for part in parts:
        require(isinstance(part, EXPRESSIONS), what, part, "a stream")
        # The text is omitted: the expression may be too deep to be written.
        require(not is_constant(part), what, "made of numbers alone", "a stream")


def children(expression: Expression) -> tuple[Expression, ...]:
    """Return the expressions directly inside."""
    if isinstance(expression, Union | Across):
        return expression.parts
    if isinstance(expression, Arithmetic):
        return expression.left, expression.right
    return (expression.source,) if isinstance(expression, Window) else ()


def walk(expression: Expression) -> Iterator[tuple[Expression, int]]:
    """Yield every node with its depth, from the outside in and from left to right."""
    waiting = [(expression, 1)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting.extend((child, depth + 1) for child in reversed(children(node)))


def is_constant(expression: Expression) -> bool:
    """Return whether an expression contains no stream."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Arithmetic):
            waiting += (node.left, node.right)
        elif not isinstance(node, Number):
            return False
    return True


def is_computed(expression: Expression, names: Collection[str]) -> bool:
    """Return whether an expression is a window, an operation, or the name of one."""
    if isinstance(expression, Name):
        return expression.name in names
    return not isinstance(expression, Sensor | Union)


def expression_to_json(expression: Expression) -> list[PlainData]:
    """Return plain data: a list that starts with the kind of the expression."""
    inside = [expression_to_json(child) for child in children(expression)]
    kind = type(expression).__name__.lower()
    if isinstance(expression, Number):
        return [kind, expression.value]
    if isinstance(expression, Sensor):
        return [kind, expression.id]
    if isinstance(expression, Name):
        return [kind, expression.name]
    if isinstance(expression, Union):
        return [kind, *inside]
    if isinstance(expression, Window):
        zone = [expression.zone] if expression.zone else []
        return [kind, expression.op, *inside, expression.length_ms, expression.slide_ms, *zone]
    return [kind, expression.op, *inside]


def expression_from_json(data: PlainData, depth: int = 1) -> Expression:
    """Read the output of :func:`expression_to_json`; raise ``ValueError`` for other data."""

    def inside(parts: Iterable[PlainData]) -> tuple[Expression, ...]:
        return tuple([expression_from_json(part, depth + 1) for part in parts])

    match data if depth <= DEPTH_MAX else None:
        case ["number", value]:
            return Number(value)
        case ["sensor", sensor]:
            return Sensor(sensor)
        case ["name", name]:
            return Name(name)
        case ["union", *parts]:
            return Union(inside(parts))
        case ["window", op, source, length_ms, slide_ms, *zone] if len(zone) < 2:
            return Window(op, expression_from_json(source, depth + 1), length_ms, slide_ms, *zone)
        case ["across", op, *parts]:
            return Across(op, inside(parts))
        case ["arithmetic", op, left, right]:
            left, right = inside([left, right])
            return Arithmetic(op, left, right)
    shown = repr(data)
    msg = f"{shown[:60]}{'...' if len(shown) > 60 else ''} is not an expression"
    raise ValueError(msg)
