"""When two results are the same: exactly, but where the values have sums that float64 rounds.

Source: docs/script.md, section 5, its last sentence.

Rules of this file:

* What is close is taken for the same before anything is compared, so that whatever compares does
  so exactly.
* How close is asked for by the values that a statement is made of: the difference of two means of
  100 is not more exact for being 0.
"""

from collections.abc import Mapping
from math import isfinite

from model.vocabulary import ScriptConfig, Trace, Workload
from model.vocabulary.script import Name, Result, Sensor, walk

TOLERANCE = 1e-6
"""Of the largest value that any sensor of the statement has, or of the result. The root of the
difference of two sums of squares has half of the digits of float64."""
PLACES = 1024
"""Values that are multiples of 1 through this have exact sums, and exact sums of squares."""
SQUARES_MAX = 1 << 52

Stamped = tuple[str, str, int]


def is_exact(workload: Workload) -> bool:
    """Whether float64 rounds no sum of values of sensors, and none of their squares."""
    scaled = [float(event.value * PLACES) for event in workload.arrivals if isfinite(event.value)]
    if not all(value.is_integer() for value in scaled):
        return False
    return sum(value * value for value in scaled) < SQUARES_MAX


def scales(workload: Workload) -> Mapping[tuple[str, str], float]:
    """By workflow and name: the largest value, without sign, of the sensors behind it."""
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


def aligned(workload: Workload, expected: Trace, observed: Trace) -> Trace:
    """What was observed, results as they are expected where they are close enough to that."""
    if is_exact(workload) or expected.of(Result) == observed.of(Result):
        return observed
    right: dict[Stamped, float] = {_stamped(each): each.value for each in expected.of(Result)}
    by_name = scales(workload)
    steps = [
        each._replace(value=_nearest(each, right, by_name)) if isinstance(each, Result) else each
        for each in observed.steps()
    ]
    return Trace(observed.producer, steps)


def deviation(workload: Workload, expected: Trace, observed: Trace) -> float:
    """The largest difference of two results with the same name and stamp, by the same measure."""
    right: dict[Stamped, float] = {_stamped(each): each.value for each in expected.of(Result)}
    by_name = scales(workload)
    return max((_apart(each, right, by_name) for each in observed.of(Result)), default=0.0)


def _stamped(result: Result) -> Stamped:
    return result.workflow, result.name, result.ts_us


def _apart(
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
    is_close = _apart(result, right, by_name) <= TOLERANCE
    return right.get(_stamped(result), result.value) if is_close else result.value
