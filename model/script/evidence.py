"""Evidence of the claims: a workload, its meaning, a trace, and tolerances.

Source: docs/script.md, sections 5 and 10: what is known in part stays, no result depends on tuples
with a later stamp, and float64 rounds the sums of some values.

Rules of this file:

* Only a prefix of a long workload is computed. With a lateness the prefix is what arrived first,
  because arrivals decide what is late. Without one nothing is known before the end, so the prefix
  has the earliest event times.
* Results that are close count as equal before anything is compared, so every comparison is exact.
* Closeness is relative to the values behind a statement: the difference of two means of 100 is not
  more exact because it is 0.
* Only what float64 rounds may be close. Counts, and least and greatest values of tuples that nobody
  computed with, have to be equal.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import NamedTuple

from model.script.graph import Graph, compile_graph
from model.script.meaning import meaning
from model.vocabulary import ScriptConfig, Step, Trace, Workload
from model.vocabulary.script.config import END_US, MILLISECOND_US, Rejected, Result, Undefined
from model.vocabulary.script.tree import (
    Across,
    Expression,
    Name,
    Sensor,
    Window,
    children,
    walk,
)


@dataclass(frozen=True)
class Evidence:
    """A workload, its meaning, and a trace of it."""

    workload: Workload
    config: ScriptConfig
    expected: Trace
    trace: Trace
    known: Trace
    """Steps of the trace that can be compared: all of them, unless a prefix was computed."""
    computed: int
    """Number of arrivals from which ``expected`` was computed."""

    @property
    def per_hour(self) -> Mapping[str, int]:
        """Number of tuples an hour, by sensor."""
        return dict(self.config.sensors)

    @cached_property
    def graph(self) -> Graph:
        """The sharing graph, which only the guards use."""
        return compile_graph(self.config)


def evidence_of(workload: Workload, trace: Trace, most: int | None = None) -> Evidence:
    """Compute the meaning of the first ``most`` arrivals at most, and align the trace."""
    config = ScriptConfig.from_json(workload.config)
    prefix = prefix_of(workload, most)
    expected = prefix.settled(Trace("meaning", meaning(prefix.workload)))
    known = align(workload, expected, trace)
    if not prefix.is_whole:
        known = decided_steps(prefix.workload, expected, known)
    return Evidence(workload, config, expected, trace, known, len(prefix.workload.arrivals))


# --------------------------------------------------------------------------------------- prefixes


class Prefix(NamedTuple):
    """A part of a workload, or all of it."""

    workload: Workload
    is_whole: bool
    until_us: int = END_US
    """Steps with a stamp below this are the same in the whole workload."""

    def settled(self, meaning: Trace) -> Trace:
        """Return those steps of the prefix's meaning that are also in the meaning of the whole."""
        if self.is_whole:
            return meaning
        kept = (step for step in meaning.steps() if _stamp_us(step) < self.until_us)
        return Trace(meaning.producer, kept)


def prefix_of(workload: Workload, most: int | None) -> Prefix:
    """Return the prefix with ``most`` arrivals at most; ``None`` sets no limit."""
    arrivals = workload.arrivals
    if most is None or len(arrivals) <= most:
        return Prefix(workload, is_whole=True)
    if ScriptConfig.from_json(workload.config).lateness_us is not None:
        part = workload.with_(arrivals=arrivals[:most], cuts=(), flush=False)
        return Prefix(part, is_whole=False)
    times_us = sorted(event.event_time_us for event in arrivals)
    # Windows end at whole milliseconds.
    until_us = times_us[most] // MILLISECOND_US * MILLISECOND_US
    kept = tuple(event for event in arrivals if event.event_time_us < until_us)
    return Prefix(workload.with_(arrivals=kept, cuts=()), is_whole=False, until_us=until_us)


def decided_steps(prefix: Workload, expected: Trace, trace: Trace) -> Trace:
    """Return the steps of a whole workload's trace that the meaning of a prefix decides."""
    last_us: dict[tuple[str, str], int] = {}
    steps: list[Result | Undefined] = [*expected.of(Result), *expected.of(Undefined)]
    for step in steps:
        name = step.workflow, step.name
        last_us[name] = max(step.ts_us, last_us.get(name, -1))
    seqs = {event.seq for event in prefix.arrivals}
    return Trace(trace.producer, (s for s in trace.steps() if _is_decided(s, last_us, seqs)))


def _is_decided(step: Step, last_us: dict[tuple[str, str], int], seqs: set[int]) -> bool:
    if isinstance(step, Result | Undefined):
        return step.ts_us <= last_us.get((step.workflow, step.name), -1)
    return isinstance(step, Rejected) and step.seq in seqs


def _stamp_us(step: Step) -> int:
    return step.ts_us if isinstance(step, Result | Undefined) else -1


# -------------------------------------------------------------------------------------- closeness

TOLERANCE = 1e-6
"""Largest deviation that counts as equal, relative to the largest value of any sensor behind the
statement, or to the result. The root of the difference of two sums of squares has half of the
digits of float64."""
PLACES = 1024
"""Values that are multiples of 1 through this have exact sums, and exact sums of squares."""
SQUARES_MAX = 1 << 52

Stamped = tuple[str, str, int]


def is_exact(workload: Workload) -> bool:
    """Return whether float64 rounds no sum of sensor values, and no sum of their squares."""
    scaled = [float(event.value * PLACES) for event in workload.arrivals if isfinite(event.value)]
    if not all(value.is_integer() for value in scaled):
        return False
    return sum(value * value for value in scaled) < SQUARES_MAX


def scales(workload: Workload) -> Mapping[tuple[str, str], float]:
    """Return the largest absolute value of the sensors behind a statement, by workflow and name."""
    largest: dict[str, float] = {}
    for event in workload.arrivals:
        if isfinite(event.value):
            largest[event.key] = max(abs(event.value), largest.get(event.key, 0.0))
    found: dict[tuple[str, str], float] = {}
    for workflow in ScriptConfig.from_json(workload.config).workflows:
        for statement in workflow.statements:
            behind = [0.0]
            for node, _ in walk(statement.expression):
                if isinstance(node, Sensor):
                    behind.append(largest.get(node.id, 0.0))
                elif isinstance(node, Name):
                    behind.append(found[workflow.name, node.name])
            found[workflow.name, statement.name] = max(behind)
    return found


def rounded(workload: Workload) -> frozenset[tuple[str, str]]:
    """Return the statements, by workflow and name, whose values may come from a rounded sum."""
    found: set[tuple[str, str]] = set()
    for workflow in ScriptConfig.from_json(workload.config).workflows:
        for statement in workflow.statements:
            names = {name for owner, name in found if owner == workflow.name}
            if _is_rounded(statement.expression, names):
                found.add((workflow.name, statement.name))
    return frozenset(found)


def _is_rounded(expression: Expression, names: Collection[str]) -> bool:
    match expression:
        case Name(name):
            return name in names
        case Window("count"):
            return False
        case Window("avg" | "sum" | "stddev") | Across("avg" | "sum"):
            return True
    # One operation of float64 on equal numbers has one result.
    return any(_is_rounded(each, names) for each in children(expression))


def align(workload: Workload, expected: Trace, observed: Trace) -> Trace:
    """Replace each observed result by the expected one, if rounding explains the difference."""
    if is_exact(workload) or expected.of(Result) == observed.of(Result):
        return observed
    right: dict[Stamped, float] = {_stamped(each): each.value for each in expected.of(Result)}
    may_round = rounded(workload)
    by_name = {name: scale for name, scale in scales(workload).items() if name in may_round}
    steps = [
        each._replace(value=_nearest(each, right, by_name)) if isinstance(each, Result) else each
        for each in observed.steps()
    ]
    return Trace(observed.producer, steps)


def deviation(workload: Workload, expected: Trace, observed: Trace) -> float:
    """Return the largest relative difference of two results with the same name and stamp."""
    right: dict[Stamped, float] = {_stamped(each): each.value for each in expected.of(Result)}
    by_name = scales(workload)
    return max((_difference(each, right, by_name) for each in observed.of(Result)), default=0.0)


def _stamped(result: Result) -> Stamped:
    return result.workflow, result.name, result.ts_us


def _difference(
    result: Result, right: Mapping[Stamped, float], by_name: Mapping[tuple[str, str], float]
) -> float:
    value = right.get(_stamped(result), result.value)
    if value == result.value:
        return 0.0
    scale = by_name.get((result.workflow, result.name), 0.0)
    return abs(value - result.value) / max(abs(value), abs(result.value), scale)


def _nearest(
    result: Result, right: Mapping[Stamped, float], by_name: Mapping[tuple[str, str], float]
) -> float:
    """Return the expected value of a result if it is close, and ``by_name`` has a scale for it."""
    may_round = (result.workflow, result.name) in by_name
    is_close = may_round and _difference(result, right, by_name) <= TOLERANCE
    return right.get(_stamped(result), result.value) if is_close else result.value
