"""One task of room ``slack``, with numbers worked out by hand."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import nan

import pytest

from model.slack import run
from model.slack.machine import MODEL, Task
from model.slack.rules import start_slack_us
from model.vocabulary import Event, Fault, SlackConfig, Step, Workload
from model.vocabulary.slack import Judged, Progress
from model.vocabulary.windows import (
    Correction,
    Final,
    Late,
    Result,
    Revision,
)
from tests.model.arrivals import stream_of

# ---------------------------------------------------------------------- closing and judging windows


FIXED = {"size_us": 10, "slide_us": 5, "control": "fixed"}


def task(**settings: object) -> Task:
    return Task(SlackConfig.from_json({**FIXED, **settings}), 0)


def feed(machine: Task, events: Iterable[Event], *, flush: bool = False) -> list[Step]:
    steps = [step for event in events for step in machine.arrive(event, 0)]
    return steps + (machine.flush(1) if flush else [])


def results(steps: Iterable[Step]) -> list[tuple[int, float, int, int, int]]:
    return [
        (step.start_us, step.value, step.n_rcv, step.slack_us, step.wm_us)
        for step in steps
        if isinstance(step, Result)
    ]


def late(steps: Iterable[Step]) -> list[tuple[int, int]]:
    return [(step.start_us, step.source_id) for step in steps if isinstance(step, Late)]


def judged(steps: Iterable[Step]) -> list[tuple[int, int, int, int, bool]]:
    return [
        (step.start_us, step.n_rcv, step.n_late, step.n_req, step.miss)
        for step in steps
        if isinstance(step, Judged)
    ]


def test_a_window_is_judged_once_l_after_its_end_with_the_late_pairs_until_then() -> None:
    machine = task(aggregate="count", eps=0.25)
    # Window [5, 15): one tuple in time; two are late, the second one moves no watermark past 25.
    steps = feed(machine, stream_of((12, 1.0), (15, 1.0), (7, 1.0), (8, 1.0), (25, 1.0)))
    assert (5, 1, 2, 3, True) in judged(steps)
    after = feed(machine, stream_of((9, 1.0), first=5), flush=True)
    assert (5, 5) in late(after)
    assert 5 not in [start_us for start_us, *_ in judged(after)]


TWO_BATCHES = Workload(
    "slack",
    stream_of((12, 1.0), (25, 2.0), (13, 4.0), (60, 8.0)),
    {"size_us": 10, "slide_us": 10, "control": "fixed", "max_age_us": 30},
    cuts=(2,),
)


def test_a_small_run_by_hand() -> None:
    trace = run(TWO_BATCHES)
    assert trace.of(Result) == (
        Result(0, 10, "a", 0, 1.0, 1, 0, 25),
        Result(0, 20, "a", 1, 2.0, 1, 0, 60),
        Result(0, 60, "a", 2, 8.0, 1, 0, 80),
    )
    assert trace.of(Late) == (Late(0, 10, "a", 2, 13, 1),)
    assert trace.of(Correction) == (Correction(0, 1, "age", 1, 1),)
    assert trace.of(Progress) == (
        Progress(0, 0, 25, 0, 0, 25, 1.0),
        Progress(0, 1, 60, 12, 0, 60, 1.0),
        Progress(0, 2, 60, 12, 0, 80, 1.0),
    )
    assert [(final.start_us, final.value, final.revision) for final in trace.of(Final)] == [
        (10, 5.0, 1),
        (20, 2.0, 0),
        (60, 8.0, 0),
    ]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"gamma_us": 4}, "flush"),
        ({"gamma_us": 3}, "gamma"),
        ({"max_age_us": 12}, "flush"),
        ({"max_age_us": 11}, "age"),
    ],
)
@pytest.mark.parametrize("late_us", [(13, 17), (17, 13)])
def test_a_correction_is_due_beyond_a_limit(
    limits: Mapping[str, int], reason: str, late_us: Sequence[int]
) -> None:
    # At the end of the batch the watermark is 25; the late tuples are of 13 and 17.
    config = {**TWO_BATCHES.config, "gamma_us": 1_000, "max_age_us": 1_000, **limits}
    late_ones = [(each, 4.0) for each in late_us]
    arrivals = stream_of((12, 1.0), (25, 2.0), (14, nan), *late_ones)
    faults = Fault("kill", 0), Fault("kill", 1)  # what is written again in a batch counts once
    trace = run(Workload("slack", arrivals, config, faults=faults))
    assert [each.reason for each in trace.of(Correction)] == [reason]
    assert [each[3:] for each in trace.of(Revision)] == [(int(reason == "flush"), 1, 9.0, 3)]


def test_the_start_lasts_until_two_by_delta_windows_are_judged() -> None:
    query = SlackConfig(1, 1, feedback_us=9)
    assert [start_slack_us(query, n) for n in (39, 40)] == [9, 0]
    assert start_slack_us(replace(query, max_slack_us=4), 0) == 4
    assert start_slack_us(replace(query, control="pd"), 0) == 0
    before = SlackConfig.from_json({"size_us": 1, "slide_us": 1, "control": "conformal"})
    assert start_slack_us(before, 0) == 0, "files of earlier versions lack it"
    machine = task(control="conformal", start_slack_us=7, delta=0.5)
    steps = feed(machine, stream_of((12, 1.0), (35, 1.0), (50, 1.0), (70, 1.0)))
    assert {slack for *_, slack, _ in results(steps)} == {7}
    assert (len(judged(steps)), machine.wm_us) == (4, 63)
    feed(machine, stream_of((71, 1.0), first=4))
    assert (machine.slack_us, machine.wm_us) == (0, 71)


def test_aq_waits_by_the_largest_delay_of_the_last_recent_us() -> None:
    settings = {"control": "aq", "recent_us": 10}
    times_us = (5, 2, 6, 5, 14, 16, 40, 32, 45, 44, 42, 51)
    machine, clocks = task(**settings), []
    for event in stream_of(*[(each, 1.0) for each in times_us]):
        saved = machine.state()
        machine = task(**settings)
        machine.restore(saved)
        machine.arrive(event, 0)
        clocks.append((machine.max_delay_us, machine.slack_us))
    # At 16 the delay that was seen at 5 is forgotten, that seen at 6 is exactly as old as allowed.
    assert clocks[:7] == [(0, 0), (3, 3), (3, 3), (3, 3), (3, 3), (1, 1), (0, 0)]
    # At 51 the 8 of 40 is forgotten; of those seen at 45, the 3 that came after a 1 is the largest.
    assert clocks[7:] == [(8, 8), (8, 8), (8, 8), (8, 8), (3, 3)]


class Restarted(Task):
    """A task that is saved and restored before each of its inputs."""

    def arrive(self, event: Event, batch: int) -> list[Step]:
        self.restore(self.state())
        return super().arrive(event, batch)

    def flush(self, batch: int) -> list[Step]:
        self.restore(self.state())
        return super().flush(batch)


def test_a_task_goes_on_from_its_state() -> None:
    by_values = {"control": "conformal", "start_slack_us": 0, "aggregate": "avg"}
    config = {**TWO_BATCHES.config, **by_values, "method": "rigorous"}
    for case in (TWO_BATCHES, TWO_BATCHES.with_(config=config)):
        assert replace(MODEL, make_task=Restarted).run(case).digest() == run(case).digest()


def test_what_is_not_accepted_is_no_recent_delay() -> None:
    machine = task(control="aq", recent_us=10)
    first, late_one, third, last = stream_of((20, 1.0), (12, 1.0), (25, 1.0), (31, nan))
    feed(machine, (first, late_one._replace(value=nan)))
    assert machine.max_delay_us == 0
    feed(machine, (late_one, third))
    assert machine.max_delay_us == 8
    feed(machine, (late_one, last))
    assert (machine.max_delay_us, machine.t_max_us) == (8, 25)
