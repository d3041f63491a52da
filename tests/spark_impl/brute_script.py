"""A naive version of docs/script.md, sections 4, 5 and 9: everything is recomputed from all tuples.

Streams are lists of pairs (stamp, value) with a stamp until which they are known. Sums are
fractions, windows are computed one by one, and nothing is shared.
"""

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations
from math import floor, inf, isfinite, sqrt
from typing import NamedTuple

from model.vocabulary import Event, ScriptConfig, Trace, Workload
from model.vocabulary.script.config import (
    END_US,
    REASON_LATE,
    REASON_NOT_FINITE,
    Rejected,
    Result,
    Undefined,
)
from model.vocabulary.script.problems import OPERATIONS, constant
from model.vocabulary.script.tree import (
    Across,
    Arithmetic,
    Expression,
    Name,
    Sensor,
    Union,
    Window,
    is_constant,
)
from model.vocabulary.trace import Step


class Stream(NamedTuple):
    """A bag, and the stamp below which nothing is missing from it."""

    pairs: list[tuple[int, float]]
    until_us: int
    undefined: frozenset[int] = frozenset()


def run(workload: Workload) -> Trace:
    config = ScriptConfig.from_json(workload.config)
    steps: set[Step] = set()
    sensors = _sensors(config, workload, steps)
    for workflow in config.workflows:
        names: dict[str, tuple[Stream, bool]] = {}
        for statement in workflow.statements:
            written: list[Stream] = []
            stream = _stream(statement.expression, sensors, names, written)
            expression = statement.expression
            recorded = isinstance(expression, Window | Across | Arithmetic)
            if isinstance(expression, Name):
                recorded = names[expression.name][1]
            names[statement.name] = stream, recorded
            who = workflow.name, statement.name
            if recorded:
                steps |= {Result(*who, ts, v) for ts, v in stream.pairs if ts < stream.until_us}
            steps |= {Undefined(*who, ts) for each in written for ts in each.undefined}
    return Trace("brute", steps)


class Sensed:
    """The knowledge of a sensor so far."""

    def __init__(self) -> None:
        self.wm_us = 0
        self.times: list[int] = []
        self.seen: set[int] = set()
        self.pairs: list[tuple[int, float]] = []


def _sensors(config: ScriptConfig, workload: Workload, steps: set[Step]) -> dict[str, Stream]:
    found = {sensor: Sensed() for sensor in config.asked_for}
    clock_us: list[int] = []
    moments_us: dict[str, int] = {}
    latest_us = 0
    for event in workload.arrivals:
        if isfinite(event.value):
            clock_us.append(max([*clock_us[-1:], event.arrival_us]))
            latest_us = max(latest_us, event.event_time_us)
            moments_us[event.key] = clock_us[-1]
        if event.key in found:
            _admit(config, found[event.key], event, steps)
        if config.idle_after_us is None or not clock_us:
            continue
        assert config.lateness_us is not None
        for sensor, own in found.items():
            if clock_us[-1] - moments_us.get(sensor, clock_us[0]) > config.idle_after_us:
                own.wm_us = max(own.wm_us, latest_us - config.lateness_us)
    return {
        sensor: Stream(own.pairs, END_US if workload.flush else own.wm_us)
        for sensor, own in found.items()
    }


def _admit(config: ScriptConfig, own: Sensed, event: Event, steps: set[Step]) -> None:
    if not isfinite(event.value):
        steps.add(Rejected(event.seq, REASON_NOT_FINITE))
        return
    if event.event_time_us < own.wm_us:
        steps.add(Rejected(event.seq, REASON_LATE))
    elif event.source_id in own.seen:
        return
    else:
        own.seen.add(event.source_id)
        own.pairs.append((event.event_time_us, event.value + 0.0))
    own.times.append(event.event_time_us)
    if config.lateness_us is not None:
        own.wm_us = max(own.wm_us, max(own.times) - _wait_us(config, own.times))


def _wait_us(config: ScriptConfig, times: list[int]) -> int:
    """Return how long to wait after arrivals with these event times, in their order."""
    assert config.lateness_us is not None
    pairs = list(combinations(times[-config.cluster :], 2))
    disorder = Fraction(sum(left > right for left, right in pairs), max(len(pairs), 1))
    if not pairs or config.watermark == "fixed":
        return config.lateness_us
    share = 2 * disorder if config.watermark == "scaled" else disorder
    return floor(config.lateness_us * min(share, Fraction(1)))


def _stream(
    expression: Expression,
    sensors: Mapping[str, Stream],
    names: Mapping[str, tuple[Stream, bool]],
    written: list[Stream],
) -> Stream:
    """Return the stream of an expression; add its windows and operations to ``written``."""
    if isinstance(expression, Sensor):
        return sensors.get(expression.id, Stream([], 0))
    if isinstance(expression, Name):
        return names[expression.name][0]
    if isinstance(expression, Union):
        parts = [_stream(part, sensors, names, written) for part in expression.parts]
        pairs = [pair for part in parts for pair in part.pairs]
        return Stream(pairs, min(part.until_us for part in parts))
    if isinstance(expression, Window):
        made = _window(expression, _stream(expression.source, sensors, names, written))
    else:
        assert isinstance(expression, Across | Arithmetic)
        sides = (
            expression.parts
            if isinstance(expression, Across)
            else (expression.left, expression.right)
        )
        inputs = [
            constant(side) if is_constant(side) else _stream(side, sensors, names, written)
            for side in sides
        ]
        made = _operation(expression.op, inputs)
    written.append(made)
    return made


def _window(window: Window, source: Stream) -> Stream:
    length_us, slide_us = window.length_ms * 1000, window.slide_ms * 1000
    pairs = [pair for pair in source.pairs if pair[0] < source.until_us]
    ends = {
        end
        for ts, _ in pairs
        for end in range((ts // slide_us + 1) * slide_us, ts + length_us + 1, slide_us)
    }
    rows = {
        end - 1000: aggregate(window.op, [v for ts, v in pairs if end - length_us <= ts < end])
        for end in ends
        if end <= source.until_us
    }
    until_us = END_US
    if source.until_us != END_US:
        until_us = (source.until_us // slide_us + 1) * slide_us - 1000
    return _finite(rows, until_us)


def _operation(op: str, inputs: list[float | Stream]) -> Stream:
    streams = [each for each in inputs if isinstance(each, Stream)]
    until_us = min(each.until_us for each in streams)
    rows = {}
    for stamp in sorted({ts for each in streams for ts, _ in each.pairs if ts < until_us}):
        latest = [_latest(each, stamp) for each in inputs]
        values = [each for each in latest if each is not None]
        if len(values) == len(inputs):
            is_arithmetic = op in OPERATIONS
            rows[stamp] = OPERATIONS[op](*values) if is_arithmetic else aggregate(op, values)
    return _finite(rows, until_us)


def _latest(given: float | Stream, stamp: int) -> float | None:
    if not isinstance(given, Stream):
        return given
    before = [pair for pair in given.pairs if pair[0] <= stamp]
    return max(before)[1] if before else None


def _finite(rows: Mapping[int, float], until_us: int) -> Stream:
    pairs = [(ts, value + 0.0) for ts, value in rows.items() if isfinite(value)]
    return Stream(pairs, until_us, frozenset(ts for ts, v in rows.items() if not isfinite(v)))


def aggregate(op: str, values: list[float]) -> float:
    n, exact = len(values), [Fraction(value) for value in values]
    total = sum(exact, Fraction())
    squares = sum((each * each for each in exact), Fraction())
    try:
        return {
            "max": lambda: max(values),
            "min": lambda: min(values),
            "count": lambda: float(n),
            "sum": lambda: float(total),
            "avg": lambda: float(total / n),
            "stddev": lambda: sqrt((n * squares - total * total) / (n * n)),
        }[op]()
    except OverflowError:
        return inf
