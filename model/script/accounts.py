"""Places of the rows of a set of scripts, as a trace tells them.

Rules of this file:

* A result names no rows. A row is answered if every statement that reads its sensor has the
  expected result at the first time that is not before the row.
* Without a flush, a row is pending until all these results have come.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from model.checking.accounts import Place
from model.vocabulary import ScriptConfig, Trace, Workload
from model.vocabulary.script.config import REASON_LATE, Rejected, Result, Undefined
from model.vocabulary.script.tree import Expression, Name, Sensor, walk

PLACES = tuple([place for place in Place if place is not Place.SHED])
"""Places that rows of scripts have."""

Statement = tuple[str, str]
"""Workflow, name."""


def place_rows(
    workload: Workload, config: ScriptConfig, expected: Trace, trace: Trace
) -> Iterator[tuple[int, Place]]:
    """Yield the places of the rows of a workload by their positions."""
    statements: dict[str, list[Statement]] = {}
    for name, sensors in sensors_behind(config).items():
        for sensor in sensors:
            statements.setdefault(sensor, []).append(name)
    due = _answers(expected)
    asked_for = config.asked_for
    came = {(*_statement(each), each.ts_us) for each in _at_times(expected) & _at_times(trace)}
    reasons = {each.seq: each.reason for each in trace.of(Rejected)}
    for each in trace.of(Rejected):
        yield each.seq, Place.LATE if each.reason == REASON_LATE else Place.REFUSED
    known: set[tuple[str, int]] = set()
    for event in workload.arrivals:
        row = event.key, event.source_id
        if event.seq in reasons:
            continue
        if event.key not in asked_for:
            yield event.seq, Place.UNASKED
        elif row in known:
            yield event.seq, Place.REDELIVERED
        else:
            known.add(row)
            next_us = [
                (each, times_us[place] if place < len(times_us) else None)
                for each in statements.get(event.key, ())
                for times_us in [due.get(each, [])]
                for place in [bisect_left(times_us, event.event_time_us)]
            ]
            if not workload.flush and any(at_us is None for _, at_us in next_us):
                yield event.seq, Place.PENDING
            elif all(at_us is None or (*each, at_us) in came for each, at_us in next_us):
                yield event.seq, Place.ANSWERED


def _at_times(trace: Trace) -> set[Result | Undefined]:
    return {*trace.of(Result), *trace.of(Undefined)}


def _statement(step: Result | Undefined) -> Statement:
    return step.workflow, step.name


def _answers(expected: Trace) -> Mapping[Statement, Sequence[int]]:
    """Return the times at which each statement has an answer, ascending."""
    found: dict[Statement, list[int]] = {}
    for step in sorted(_at_times(expected), key=lambda step: step.ts_us):
        found.setdefault(_statement(step), []).append(step.ts_us)
    return found


def sensors_behind(config: ScriptConfig) -> Mapping[Statement, frozenset[str]]:
    """Return the sensors that each statement depends on, directly or not."""
    found: dict[Statement, frozenset[str]] = {}
    for workflow in config.workflows:
        behind: dict[str, frozenset[str]] = {}
        for statement in workflow.statements:
            behind[statement.name] = below(statement.expression, behind)
            found[workflow.name, statement.name] = behind[statement.name]
    return found


def below(expression: Expression, names: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return all sensors that an expression depends on."""
    nodes = [node for node, _ in walk(expression)]
    direct = frozenset(node.id for node in nodes if isinstance(node, Sensor))
    return direct.union(*(names[node.name] for node in nodes if isinstance(node, Name)))
