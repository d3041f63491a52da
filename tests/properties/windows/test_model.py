"""Only arrivals decide the answers of rooms that answer windows, on the model.

Cuts into micro-batches, the order of arrivals, crashes, other tasks and the place in time change no
final answer. Arrivals come from simulated networks (``straggler/strategies/streams.py``).
"""

from collections import Counter
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.slack.machine import MODEL as SLACK
from model.vocabulary import Fault, Step, System, Trace, Workload, task_of
from model.vocabulary.slack import Judged
from model.vocabulary.watermark import Clock, Inserted
from model.vocabulary.windows import Correction, Final, Late, Rejected, Result, Revision
from model.watermark.machine import MODEL as WATERMARK
from model.windows.pipeline import WindowModel
from properties.promised import Reached, promised
from straggler.rooms import find_room
from straggler.strategies import streams, watermark

Answer = tuple[int, int, str, float, int, bool]


class Room(NamedTuple):
    """A model, and streams for it."""

    name: str
    model: WindowModel[Any, Any, Any]
    cases: st.SearchStrategy[Workload]
    reordered: st.SearchStrategy[tuple[Workload, Workload]]
    has_operator: bool = True
    """Whether the operator in process is cut as well; corrections of queries are Spark's."""


CORRECTING = watermark.configs(corrections=(True,))
UPSTREAM = watermark.cases(upstreams=(1, 2, 3))
REORDERED = CORRECTING.flatmap(streams.reordered)
ROOMS = {
    "slack": Room("slack", SLACK, streams.cases(), streams.configs().flatmap(streams.reordered)),
    "watermark": Room("watermark", WATERMARK, watermark.cases(corrections=(True,)), REORDERED),
    "upstream": Room(
        "watermark", WATERMARK, watermark.cases(upstreams=(1, 2, 3)), REORDERED, False
    ),
}


def unbatched(trace: Trace) -> list[object]:
    """Return the steps that may not depend on the cut into micro-batches."""
    # A pair that a forgotten redelivery finds late again is one step in one batch, two in two.
    late = {step._replace(batch=0) for step in trace.of(Late)}
    kinds: tuple[Any, ...] = (Result, Judged, Clock, Inserted, Rejected)  # all are named tuples
    steps = [repr(step._replace(batch=0)) for kind in kinds for step in trace.of(kind)]
    return [*sorted(steps), *sorted(late), *answers(trace)]


def answers(trace: Trace) -> list[Answer]:
    """Return the final answers without the numbers of their revisions."""
    return [(*final[:5], final.exact) for final in trace.of(Final)]


# -------------------------------------------------------------------------- cuts, order, crashes


@pytest.mark.parametrize("name", ROOMS)
@given(data=st.data())
def test_cuts_change_no_answer(name: str, data: st.DataObject) -> None:
    room = ROOMS[name]
    # With a flush, because the cuts decide which corrections are made before the end.
    flushed = data.draw(room.cases).with_(flush=True)
    if room.name == "watermark":
        flushed = flushed.with_(config={**flushed.config, "clocks": "arrivals"})
    recut = flushed.with_(cuts=data.draw(streams.cuts(len(flushed.arrivals))))
    runs: list[System] = [room.model.run]
    runs += [find_room(room.name).in_process] * room.has_operator
    for run in runs:
        assert unbatched(run(recut)) == unbatched(run(flushed))


@pytest.mark.parametrize("name", ["slack", "watermark"])
@given(data=st.data())
def test_another_arrival_order_changes_no_final_answer(name: str, data: st.DataObject) -> None:
    one, other = data.draw(ROOMS[name].reordered)
    run = ROOMS[name].model.run
    assert answers(run(one)) == answers(run(other))


@pytest.mark.parametrize("name", ["slack", "watermark"])
@promised("a kill in a correction", "a restart in a correction", examples=15)
@given(data=st.data())
def test_a_crash_changes_no_final_answer(name: str, reached: Reached, data: st.DataObject) -> None:
    run, case = ROOMS[name].model.run, data.draw(ROOMS[name].cases).with_(flush=True)
    trace = run(case)
    corrected = sorted({step.batch for step in trace.of(Correction)})
    at = data.draw(st.sampled_from(corrected or [0]) | st.integers(0, streams.CUTS_MAX + 1))
    for kind in ("kill", "restart"):
        assert answers(run(case.with_(faults=(Fault(kind, at),)))) == answers(trace)
        reached.add({f"a {kind} in a correction": at in corrected})


@pytest.mark.parametrize("name", ["slack", "watermark"])
@promised("killed", "killed flush", "not killed", "not killed flush", examples=40)
@given(data=st.data())
def test_a_kill_interrupts_the_corrections_of_its_batch_alone(
    name: str, reached: Reached, data: st.DataObject
) -> None:
    """A correction that clears its pairs first, by mistake, shows which ones are interrupted."""
    model, case = ROOMS[name].model, data.draw(ROOMS[name].cases).with_(flush=True)
    last = len(tuple(case.batches()))
    chosen = data.draw(st.sets(st.sampled_from(range(last + 1))))
    for killed in (chosen, {*range(last + 1)} - chosen):
        faults = tuple([Fault("kill", at) for at in killed])
        trace = model.run(case.with_(faults=faults), hasty(model))
        written = Counter((step.task, step.batch) for step in trace.of(Revision))
        for step in trace.of(Correction):
            is_killed = step.batch in killed
            assert written[step.task, step.batch] == (0 if is_killed else step.windows)
            flush = " flush" * (step.batch == last)
            reached.add({f"{'killed' if is_killed else 'not killed'}{flush}": 1})


def hasty(model: WindowModel[Any, Any, Any]) -> Any:
    """Return the rules of a model whose corrections clear first."""
    return replace(model.rules, clears_first=True)


# ------------------------------------------------------------------- other tasks, other times


@pytest.mark.parametrize("is_hasty", [False, True])
@pytest.mark.parametrize("name", ["slack", "watermark"])
@given(data=st.data())
def test_a_task_on_its_own_does_what_it_does_among_others(
    name: str, is_hasty: bool, data: st.DataObject
) -> None:
    model, case = ROOMS[name].model, data.draw(ROOMS[name].cases)
    if is_hasty:
        model = replace(model, rules=hasty(model))
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


@pytest.mark.parametrize("name", ["slack", "watermark"])
@given(data=st.data())
def test_a_stream_that_is_moved_by_whole_windows_has_moved_answers(
    name: str, data: st.DataObject
) -> None:
    """No time is special: not the epoch, and not the lowest one of 64 bits."""
    model, case = ROOMS[name].model, data.draw(ROOMS[name].cases)
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
