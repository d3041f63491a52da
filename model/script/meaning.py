"""The meaning of a set of workflows: every window and operation computed from all tuples.

Source: docs/script.md, sections 4, 5 and 9.

Rules of this file:

* Nothing is shared between workflows, statements or windows, nothing is kept, nothing is quick: a
  reader must see that this file computes what the page says.
* This file knows nothing of graphs, slices and workers, and they do not use it.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import floor, inf, isfinite, sqrt
from typing import NamedTuple

from model.script.stream import Point, Stream, known_stream, to_float
from model.vocabulary import Event, ScriptConfig, Step, Workload
from model.vocabulary.script.config import (
    END_US,
    MILLISECOND_US,
    REASON_LATE,
    REASON_NOT_FINITE,
    TIME_END_US,
    Rejected,
    Result,
    Undefined,
)
from model.vocabulary.script.problems import constant
from model.vocabulary.script.tree import (
    Across,
    Expression,
    Name,
    Number,
    Sensor,
    Union,
    Window,
    is_constant,
)


class Streams(NamedTuple):
    """The streams that a statement may name."""

    sensors: Mapping[str, Stream]
    names: Mapping[str, Stream]


def meaning(workload: Workload) -> Iterator[Step]:
    """Yield every result, undefined time and rejection of a workload.

    Raises ``ValueError`` with one sentence if the configuration is invalid.
    """
    config = ScriptConfig.from_json(workload.config)
    asked_for = config.asked_for
    sensors: dict[str, Stream] = {}
    for sensor, _ in config.sensors:
        # A sensor that no computation reads is in an unused union, or nowhere.
        arrivals = [event for event in workload.arrivals if event.key == sensor]
        marks_us = watermarks_us(sensor, workload.arrivals, config)
        reasons = [
            why_not(event, arrivals, mark_us)
            for event, mark_us in zip(arrivals, marks_us, strict=False)
        ]
        taken = [event for event, reason in zip(arrivals, reasons, strict=True) if reason is None]
        if sensor in asked_for:
            yield from rejections(arrivals, reasons)
        sensors[sensor] = sensor_stream(taken, END_US if workload.flush else marks_us[-1])
    for workflow in config.workflows:
        names: dict[str, Stream] = {}
        computed: set[str] = set()
        for statement in workflow.statements:
            name, expression = statement.name, statement.expression
            stream = stream_of(expression, Streams(sensors, names))
            # A stamp is reported as undefined once, where it is computed.
            names[name] = stream._replace(undefined=frozenset())
            if is_computed(expression, computed):
                computed.add(name)
                yield from (Result(workflow.name, name, *point) for point in stream.points)
            yield from (Undefined(workflow.name, name, stamp) for stamp in stream.undefined)


def is_computed(expression: Expression, names: set[str]) -> bool:
    """Return whether an expression is a window, an operation, or the name of one."""
    if isinstance(expression, Name):
        return expression.name in names
    return not isinstance(expression, Sensor | Union)


# ------------------------------------------------------------------------------------- admission


def why_not(event: Event, arrivals: Sequence[Event], watermark_us: int) -> str | None:
    """Return why an arrival is refused; "" if it repeats an earlier one."""
    if not 0 <= event.event_time_us < TIME_END_US:
        msg = f"arrival {event.seq} has the event time {event.event_time_us}; it must be at least 0"
        raise ValueError(f"{msg} and below 2^61")
    if not isfinite(event.value):
        return REASON_NOT_FINITE
    if event.event_time_us < watermark_us:
        return REASON_LATE
    before = [each for each in arrivals if each.seq < event.seq and isfinite(each.value)]
    return "" if any(each.source_id == event.source_id for each in before) else None


def watermarks_us(sensor: str, arrivals: Sequence[Event], config: ScriptConfig) -> list[int]:
    """Return the watermark before each arrival of a sensor, and the one after all of them.

    Arrivals are those of the whole stream.
    """
    marks_us = [0]
    counted: list[Event] = []
    for n, event in enumerate(arrivals):
        marks_us[-1] = max(marks_us[-1], idle_floor_us(sensor, arrivals[:n], config))
        if event.key != sensor:
            continue
        is_late = event.event_time_us < marks_us[-1]
        is_there = any(each.source_id == event.source_id for each in counted)
        if isfinite(event.value) and (is_late or not is_there):
            counted.append(event)
        marks_us.append(max(marks_us[-1], _reached_us(counted, config)))
    marks_us[-1] = max(marks_us[-1], idle_floor_us(sensor, arrivals, config))
    return marks_us


def idle_floor_us(sensor: str, arrivals: Sequence[Event], config: ScriptConfig) -> int:
    """Return how far the last arrival moves the watermark of a sensor because it is silent."""
    if config.idle_after_us is None or config.lateness_us is None:
        return 0
    heard = [each for each in arrivals if isfinite(each.value)]
    if not heard:
        return 0
    # The largest arrival time up to the last arrival of the sensor, or up to the first of all.
    own = [n for n, each in enumerate(heard) if each.key == sensor]
    last_us = max(each.arrival_us for each in heard[: own[-1] + 1 if own else 1])
    if max(each.arrival_us for each in heard) - last_us <= config.idle_after_us:
        return 0
    return max(each.event_time_us for each in heard) - config.lateness_us


def _reached_us(counted: Sequence[Event], config: ScriptConfig) -> int:
    """Return the latest event time less the wait."""
    if config.lateness_us is None or not counted:
        return 0
    latest_us = max(event.event_time_us for event in counted)
    if config.watermark == "fixed":
        return latest_us - config.lateness_us
    cluster_us = [event.event_time_us for event in counted[-config.cluster :]]
    pairs = [earlier > later for earlier, later in combinations(cluster_us, 2)]
    share = Fraction(sum(pairs), len(pairs)) if pairs else Fraction(1)
    if config.watermark == "scaled":
        share = min(Fraction(1), 2 * share)
    return latest_us - floor(config.lateness_us * share)


def rejections(arrivals: Sequence[Event], reasons: Sequence[str | None]) -> Iterator[Rejected]:
    """Yield the refused arrivals of a sensor."""
    for event, reason in zip(arrivals, reasons, strict=True):
        if reason:
            yield Rejected(event.seq, reason)


def sensor_stream(taken: Sequence[Event], until_us: int) -> Stream:
    """Return the admitted tuples of a sensor up to its watermark; in the end, all of them."""
    points = [(event.event_time_us, event.value + 0.0) for event in taken]
    return Stream(tuple(sorted(point for point in points if point[0] < until_us)), until_us)


# --------------------------------------------------------------------------------------- streams


def stream_of(expression: Expression, streams: Streams) -> Stream:
    """Return the stream that an expression stands for."""
    if isinstance(expression, Sensor):
        return streams.sensors[expression.id]
    if isinstance(expression, Name):
        return streams.names[expression.name]
    if isinstance(expression, Union):
        return union([stream_of(part, streams) for part in expression.parts])
    if isinstance(expression, Window):
        return window(expression, stream_of(expression.source, streams))
    assert not isinstance(expression, Number), "a number is part of an operation"
    sides = (
        expression.parts if isinstance(expression, Across) else (expression.left, expression.right)
    )
    operands = [constant(side) if is_constant(side) else stream_of(side, streams) for side in sides]
    return latest_combined(expression.op, operands)


def union(parts: Sequence[Stream]) -> Stream:
    """Return all tuples of all parts that are known in all of them."""
    until_us = min(part.until_us for part in parts)
    points = sorted(point for part in parts for point in part.points if point[0] < until_us)
    undefined = frozenset[int]().union(*(part.undefined for part in parts))
    return Stream(tuple(points), until_us, undefined)


def window(expression: Window, source: Stream) -> Stream:
    """Return a value for every window that contains a tuple."""
    length_us = expression.length_ms * MILLISECOND_US
    slide_us = expression.slide_ms * MILLISECOND_US
    # Results are known until the next window that ends, which is not known completely.
    until_us = END_US
    if source.until_us < END_US:
        until_us = (source.until_us // slide_us + 1) * slide_us - MILLISECOND_US
    ends_us = {
        end_us
        for stamp, _ in source.points
        for end_us in range((stamp // slide_us + 1) * slide_us, stamp + length_us + 1, slide_us)
    }
    values = {}
    for end_us in ends_us:
        inside = [value for stamp, value in source.points if end_us - length_us <= stamp < end_us]
        values[end_us - MILLISECOND_US] = aggregate(expression.op, inside)
    made = known_stream(values, until_us)
    return made._replace(undefined=made.undefined | source.undefined)


def aggregate(op: str, values: Sequence[float]) -> float:
    """Return an aggregate of exact values, rounded at the end."""
    exact = [Fraction(value) for value in values]
    n = len(exact)
    if op == "count":
        return float(n)
    if op in ("max", "min"):
        return max(values) if op == "max" else min(values)
    if op == "sum":
        return to_float(sum(exact, Fraction()))
    mean = sum(exact, Fraction()) / n
    if op == "avg":
        return to_float(mean)
    variance = to_float(sum(((each - mean) ** 2 for each in exact), Fraction()) / n)
    return sqrt(variance)


def latest_combined(op: str, operands: Sequence[Stream | float]) -> Stream:
    """Return a value for every stamp of an operand from which on all operands have one."""
    streams = [operand for operand in operands if isinstance(operand, Stream)]
    until_us = min(stream.until_us for stream in streams)
    values = {}
    for stamp in {stamp for stream in streams for stamp, _ in stream.points if stamp < until_us}:
        latest = [
            operand if isinstance(operand, float | int) else latest_at(operand.points, stamp)
            for operand in operands
        ]
        defined = [value for value in latest if value is not None]
        if len(defined) == len(latest):
            values[stamp] = operation(op, defined)
    made = known_stream(values, until_us)
    return made._replace(undefined=made.undefined.union(*(each.undefined for each in streams)))


def latest_at(points: Sequence[Point], stamp: int) -> float | None:
    """Return the value with the latest stamp up to this one; the greatest if there are several."""
    return max((point for point in points if point[0] <= stamp), default=(0, None))[1]


def operation(op: str, values: Sequence[float]) -> float:
    """Return one result, rounded once; infinite or not a number if it is undefined."""
    if op in ("max", "min", "avg", "sum"):
        return aggregate(op, values)
    left, right = values
    if op == "/":
        return left / right if right else inf
    return {"+": left + right, "-": left - right, "*": left * right}[op]
