"""The course of a windowed run: kills, tasks on their own, and times that are moved.

A correction that clears its pairs before it writes has lost its answers if a kill interrupts it.
With this mistake in the rules, a trace shows which corrections were interrupted.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.slack.machine import MODEL as SLACK
from model.vocabulary import Event, Fault, Step, Trace, Workload, task_of
from model.vocabulary.windows import Correction, Late, Revision
from model.watermark.machine import MODEL as WATERMARK
from model.windows.pipeline import WindowModel
from properties.stream_packs import collect
from straggler.strategies import streams
from straggler.strategies import watermark as strategies

CASES = 60
"""Number of drawn cases that together have to contain every course of a correction."""
ROOMS: dict[str, tuple[WindowModel[Any, Any, Any], st.SearchStrategy[Workload]]] = {
    "slack": (SLACK, streams.cases()),
    "watermark": (WATERMARK, strategies.cases(corrections=(True,))),
}
FAULTS = st.lists(
    st.builds(Fault, st.sampled_from(["kill", "restart"]), st.integers(0, streams.CUTS_MAX + 1)),
    max_size=3,
).map(tuple)


def hasty(model: WindowModel[Any, Any, Any]) -> Any:
    """Return the rules of a model whose corrections clear first."""
    return replace(model.rules, clears_first=True)


# ------------------------------------------------------------------------------------------ kills


def check_kills(room: str, case: Workload, faults: tuple[Fault, ...], met: Counter[str]) -> None:
    """Check which corrections a run with some faults interrupts."""
    model, _ = ROOMS[room]
    killed = {fault.at for fault in faults if fault.kind == "kill"}
    faulty = case.with_(faults=faults)
    assert [*model.run(faulty).steps()] == [*model.run(case).steps()]
    trace = model.run(faulty, hasty(model))
    written = Counter((step.task, step.batch) for step in trace.of(Revision))
    last = len(tuple(case.batches()))
    for step in trace.of(Correction):
        is_killed = step.batch in killed
        assert written[step.task, step.batch] == (0 if is_killed else step.windows)
        met[f"{'killed' if is_killed else 'not killed'}{' flush' * (step.batch == last)}"] += 1


@pytest.mark.parametrize("room", ROOMS)
@given(data=st.data())
def test_a_kill_interrupts_the_corrections_of_its_batch_alone(
    room: str, data: st.DataObject
) -> None:
    check_kills(room, data.draw(ROOMS[room][1]), data.draw(FAULTS), Counter())


def test_kills_meet_corrections_in_batches_and_at_the_flush(seed: int) -> None:
    met = Counter[str]()
    for room, (_, cases) in ROOMS.items():
        for case in collect(cases, CASES, seed):
            for faults in ((), tuple(Fault("kill", n) for n in range(streams.CUTS_MAX + 2))):
                check_kills(room, case, faults, met)
    assert {*met} == {"killed", "killed flush", "not killed", "not killed flush"}


# ------------------------------------------------------------------------------------- task alone


@pytest.mark.parametrize("is_hasty", [False, True])
@pytest.mark.parametrize("room", ROOMS)
@given(data=st.data())
def test_a_task_on_its_own_does_what_it_does_among_others(
    room: str, is_hasty: bool, data: st.DataObject
) -> None:
    model, cases = ROOMS[room]
    if is_hasty:
        model = replace(model, rules=hasty(model))
    case = data.draw(cases)
    config = model.parse(case.config)
    steps: dict[tuple[type, Step], Step] = {}
    for number in range(config.tasks):
        alone = model.task_pipeline(config, number)
        found: list[Step] = []
        batches = tuple(case.batches())
        for batch, events in enumerate(batches):
            for event in events:
                if task_of(event.key, config.tasks) == number:
                    found += alone.arrive(event, batch)
            found += alone.end_batch(batch)
        if case.flush:
            found += alone.flush(len(batches))
        found += alone.store.final()
        steps |= {(type(step), step): step for step in found}
    assert [*Trace("alone", steps.values()).steps()] == [*model.run(case).steps()]


# ----------------------------------------------------------------------------------- moved in time

LOWEST_US, HIGHEST_US = -(1 << 63), (1 << 63) - 1
MARGIN_US = 1 << 50
"""Time that a watermark or a flush may reach beyond the event times."""
STAMPS = ("event_time_us", "start_us", "t_max_us", "wm_us")


def moved(step: Any, by_us: int) -> tuple[str, dict[str, object]]:
    """Return kind and fields of a step whose times have been moved."""
    fields = {
        name: value + by_us if name in STAMPS else value for name, value in step._asdict().items()
    }
    return type(step).__name__, fields


@pytest.mark.parametrize("room", ROOMS)
@given(data=st.data())
def test_a_stream_that_is_moved_by_whole_windows_has_moved_answers(
    room: str, data: st.DataObject
) -> None:
    """No time is special: not the epoch, and not the lowest one of 64 bits."""
    model, cases = ROOMS[room]
    case = data.draw(cases)
    config = model.parse(case.config)
    # Of slack, every ceil(W / s)-th window has a correlation.
    step_us = config.slide_us * -(-config.size_us // config.slide_us)
    times_us = [event.event_time_us for event in case.arrivals] or [0]
    lowest = -(-(LOWEST_US + MARGIN_US - min(times_us)) // step_us)
    highest = (HIGHEST_US - MARGIN_US - max(times_us)) // step_us
    by_us = step_us * data.draw(st.sampled_from([lowest, highest]) | st.integers(-99, 99))
    arrivals = tuple(
        event._replace(
            event_time_us=event.event_time_us + by_us, arrival_us=event.arrival_us + by_us
        )
        for event in case.arrivals
    )
    expected = [moved(step, by_us) for step in model.run(case).steps()]
    found = model.run(case.with_(arrivals=arrivals))
    assert [moved(step, 0) for step in found.steps()] == expected


@pytest.mark.parametrize("room", ROOMS)
def test_the_first_tuple_of_a_task_is_never_late(room: str) -> None:
    model, cases = ROOMS[room]
    config = model.parse(collect(cases, 1, 0)[0].config)
    for time_us in (LOWEST_US, LOWEST_US + 1, -1, 0, HIGHEST_US):
        event = Event(0, 0, "a", time_us, 1.0, time_us)
        assert not model.run(Workload(room, (event,), config.to_json())).of(Late)
