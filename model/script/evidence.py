"""Evidence of the claims: a workload, its meaning, a trace, and tolerances.

Source: docs/script.md, section 5: float64 rounds the sums of some values.

Rules of this file:

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

from model.checking.accounts import Accounts, settle
from model.script.accounts import place_rows, sensors_behind
from model.script.meaning import answers
from model.script.rules import RULES
from model.script.run import admit
from model.vocabulary import ScriptConfig, Trace, Workload
from model.vocabulary.script.config import Result
from model.vocabulary.script.graph import Graph, compile_graph
from model.vocabulary.script.tree import Across, Expression, Name, Window, children


@dataclass(frozen=True)
class Evidence:
    """A workload, its meaning, and a trace of it."""

    workload: Workload
    config: ScriptConfig
    expected: Trace
    trace: Trace
    """Steps of the trace; results that are close to the expected ones count as equal to them."""

    @cached_property
    def per_hour(self) -> Mapping[str, int]:
        """Number of tuples an hour, by sensor."""
        return dict(self.config.sensors)

    @cached_property
    def accounts(self) -> Accounts:
        """The accounts of all arrivals."""
        placed = list(place_rows(self.workload, self.config, self.expected, self.trace))
        return settle(self.workload.arrivals, placed)

    @cached_property
    def graph(self) -> Graph:
        """The sharing graph, which only the guards use."""
        return compile_graph(self.config)


def evidence_of(workload: Workload, trace: Trace) -> Evidence:
    """Compute the meaning of a workload, and align the trace."""
    config = ScriptConfig.from_json(workload.config)
    sensors, rejected = admit(workload, config, RULES)
    expected = Trace("meaning", [*rejected, *answers(config, sensors)])
    return Evidence(workload, config, expected, align(workload, expected, trace))


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
    behind = sensors_behind(ScriptConfig.from_json(workload.config))
    return {
        statement: max([0.0, *(largest.get(each, 0.0) for each in sensors)])
        for statement, sensors in behind.items()
    }


def rounded(workload: Workload) -> frozenset[tuple[str, str]]:
    """Return the statements, by workflow and name, whose values may come from a rounded sum."""
    found: set[tuple[str, str]] = set()
    for workflow in ScriptConfig.from_json(workload.config).workflows:
        names: set[str] = set()
        for statement in workflow.statements:
            if _is_rounded(statement.expression, names):
                names.add(statement.name)
        found |= {(workflow.name, name) for name in names}
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
