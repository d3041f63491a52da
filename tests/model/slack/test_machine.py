"""The stream side of one task, step by step, with numbers worked out by hand."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.slack.machine import Task
from model.vocabulary import Event, SlackConfig, Step
from model.vocabulary.slack import Judged, Progress
from model.vocabulary.windows import REASON_FUTURE, REASON_NOT_FINITE, Late, Rejected, Result
from tests.model.slack.strategies import arrivals, configs, stream_of

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


def test_a_window_closes_when_the_watermark_reaches_its_end_and_not_a_tick_before() -> None:
    machine = task()
    assert results(feed(machine, stream_of((12, 1.0), (14, 2.0)))) == []
    assert results(feed(machine, stream_of((15, 4.0), first=2))) == [(5, 3.0, 2, 0, 15)]


def test_a_task_that_has_seen_nothing_calls_no_time_late() -> None:
    first_us = -(2**63) + 10
    steps = feed(task(slide_us=10), stream_of((first_us, 1.0), (first_us + 20, 2.0)), flush=True)
    assert not late(steps)
    assert [value for _, value, *_ in results(steps)] == [1.0, 2.0]


def test_windows_close_in_the_order_of_their_ends() -> None:
    steps = feed(task(), stream_of((22, 1.0, "b"), (22, 1.0, "a"), (12, 2.0), (50, 1.0)))
    assert [start_us for start_us, *_ in results(steps)] == [15, 15, 20, 20]


def test_each_window_of_a_tuple_is_routed_by_itself() -> None:
    steps = feed(task(), stream_of((15, 1.0), (12, 2.0)), flush=True)
    assert late(steps) == [(5, 1)]
    assert (10, 3.0, 2, 0, 35) in results(steps)


def test_a_window_that_never_had_a_tuple_is_closed_all_the_same() -> None:
    assert late(feed(task(), stream_of((25, 1.0), (12, 2.0)))) == [(5, 1), (10, 1)]


def test_a_tuple_in_a_gap_moves_the_clock_and_belongs_to_no_window() -> None:
    machine = task(slide_us=20)
    steps = feed(machine, stream_of((3, 1.0), (15, 2.0)))
    assert results(steps) == [(0, 1.0, 1, 0, 15)]
    assert machine.state().t_max_us == 15


def test_slack_is_the_largest_delay_and_the_watermark_never_falls() -> None:
    machine = task(control="max")
    feed(machine, stream_of((25, 1.0), (12, 2.0)))
    state = machine.state()
    assert (state.max_delay_us, state.slack_us, state.wm_us) == (13, 13, 25)
    feed(machine, stream_of((30, 1.0), (40, 1.0), first=2))
    assert machine.state().wm_us == 27


def test_slack_has_an_upper_limit() -> None:
    machine = task(control="max", max_slack_us=4)
    feed(machine, stream_of((25, 1.0), (12, 2.0)))
    assert machine.state().slack_us == 4
    (progress,) = task(fixed_slack_us=9, max_slack_us=4).end_batch(0, False)
    assert isinstance(progress, Progress)
    assert progress.slack_us == 4


@pytest.mark.parametrize(
    ("value", "event_time_us", "reason"),
    [
        (float("nan"), 2_000, REASON_NOT_FINITE),
        (float("inf"), 12, REASON_NOT_FINITE),
        (1.0, 1_011, REASON_FUTURE),
    ],
)
def test_the_first_reason_rejects_and_nothing_else_happens(
    value: float, event_time_us: int, reason: str
) -> None:
    machine = task(control="conformal", cv=0.5, max_future_us=10)
    before = machine.state()
    steps = feed(machine, stream_of((event_time_us, value)))
    assert [step.reason for step in steps if isinstance(step, Rejected)] == [reason]
    assert len(steps) == 1
    assert machine.state() == before


@pytest.mark.parametrize("method", ["normal", "rigorous", "permutation"])
def test_a_window_with_a_negative_value_requires_all_of_its_tuples(method: str) -> None:
    machine = task(control="conformal", eps=0.5, delta=0.5, method=method, cv=0.5)
    values = [(11, 1.0), (12, -1.0), (13, 4.0), (14, 4.0), (20, 1.0), (21, 1.0), (22, 1.0)]
    judged = feed(machine, stream_of(*values), flush=True)
    required = {s.start_us: (s.n_req, s.n_rcv) for s in judged if isinstance(s, Judged)}
    assert required[10] == (4, 4)
    assert required[20][0] < required[20][1]


def test_values_that_cancel_say_nothing_about_their_variation() -> None:
    for aggregate in ("sum", "avg"):
        machine = task(control="conformal", aggregate=aggregate, eps=0.5, delta=0.5)
        steps = feed(machine, stream_of((11, 1.0), (12, -1.0)), flush=True)
        assert {(s.n_req, s.n_rcv) for s in steps if isinstance(s, Judged)} == {(2, 2)}


def test_a_redelivery_takes_part_in_nothing_until_it_is_forgotten() -> None:
    first, later = stream_of((12, 1.0), (29, 1.0))
    machine = task()
    feed(machine, (first, later))
    before = machine.state()
    assert feed(machine, (first._replace(seq=2),)) == []
    assert machine.state() == before
    # The last window of the tuple ends at 20, L is 10: from wm = 30 on it is forgotten.
    feed(machine, stream_of((30, 1.0), first=2))
    assert late(feed(machine, (first._replace(seq=4),))) == [(5, 0), (10, 0)]


def test_without_dedup_a_redelivery_is_a_new_tuple() -> None:
    (event,) = stream_of((12, 1.0))
    steps = feed(task(dedup=False), (event, event._replace(seq=1)), flush=True)
    assert results(steps) == [(5, 2.0, 2, 0, 30), (10, 2.0, 2, 0, 30)]


def test_a_window_is_judged_once_l_after_its_end_with_the_late_pairs_until_then() -> None:
    machine = task(aggregate="count", eps=0.25)
    # Window [5, 15): one tuple in time; two are late, the second one moves no watermark past 25.
    steps = feed(machine, stream_of((12, 1.0), (15, 1.0), (7, 1.0), (8, 1.0), (25, 1.0)))
    assert (5, 1, 2, 3, True) in judged(steps)
    after = feed(machine, stream_of((9, 1.0), first=5), flush=True)
    assert (5, 5) in late(after)
    assert 5 not in [start_us for start_us, *_ in judged(after)]


def test_the_late_pair_of_the_arrival_that_passes_the_judgement_still_counts() -> None:
    """K falls with a judgement, so the next arrival may move the watermark and be late at once."""
    settings = {"control": "conformal", "lambda_thr": 0.5, "learning_rate": 1.0, "delta": 0.8}
    machine = task(slide_us=10, feedback_us=9, **settings)
    # k = K = 20, then wm = 68 - 20 = 48: [20, 30) is judged and alpha becomes 0.6.
    steps = feed(machine, stream_of((25, 1.0), (35, 1.0), (15, 1.0), (68, 1.0)))
    assert judged(steps) == [(20, 1, 0, 1, False)]
    # k = 32, K = 19, wm = 49: the tuple is late for [30, 40), which is judged now.
    steps = feed(machine, stream_of((36, 1.0), first=4))
    assert (late(steps), judged(steps)) == ([(30, 4)], [(30, 1, 1, 1, False)])


def test_a_window_without_a_tuple_before_its_judgement_is_never_judged() -> None:
    machine = task()
    steps = feed(machine, stream_of((50, 1.0), (12, 1.0)), flush=True)
    assert late(steps) == [(5, 1), (10, 1)]
    assert [start_us for start_us, *_ in judged(steps)] == [45, 50]


def test_judgements_are_ordered_by_end_then_key() -> None:
    steps = feed(task(), stream_of((12, 1.0, "b"), (12, 1.0, "a"), (9, 1.0, "c")), flush=True)
    order = [(step.start_us, step.key) for step in steps if isinstance(step, Judged)]
    assert order == [(0, "c"), (5, "a"), (5, "b"), (5, "c"), (10, "a"), (10, "b")]


def test_a_judgement_changes_the_slack_of_the_next_arrival_only() -> None:
    settings = {"control": "conformal", "lambda_thr": 0.5, "learning_rate": 0.5, "delta": 0.8}
    machine = task(feedback_us=0, **settings)
    feed(machine, stream_of((20, 1.0), (15, 1.0)))
    # k = 5, so wm = 35: two windows are closed with K = 5 and judged, alpha becomes 0.8, then 0.6.
    first = feed(machine, stream_of((40, 1.0), first=2))
    assert [step.alpha for step in first if isinstance(step, Judged)] == pytest.approx([0.8, 0.6])
    second = feed(machine, stream_of((50, 1.0), first=3))
    assert [slack_us for _, _, _, slack_us, _ in [*results(first), *results(second)]] == [5, 5, 3]


def test_a_flush_closes_and_judges_everything_and_arrivals_may_follow() -> None:
    machine = task()
    steps = feed(machine, stream_of((12, 1.0)), flush=True)
    assert results(steps) == [(5, 1.0, 1, 0, 30), (10, 1.0, 1, 0, 30)]
    assert len(judged(steps)) == 2
    after = feed(machine, (Event(9, 9, "a", 13, 2.0, 2_000), Event(10, 10, "a", 32, 4.0, 2_000)))
    assert late(after) == [(5, 9), (10, 9)]
    assert results(machine.flush(2)) == [(25, 4.0, 1, 0, 50), (30, 4.0, 1, 0, 50)]


def test_a_flush_uses_the_slack_that_the_next_arrival_would_find() -> None:
    machine = task(control="conformal", lambda_thr=1.0, learning_rate=0.5, delta=0.8)
    feed(machine, stream_of((20, 1.0), (16, 1.0), (60, 1.0)))
    alpha = machine.state().factor.alpha
    assert alpha < 1
    steps = machine.flush(1)
    assert {slack_us for _, _, _, slack_us, _ in results(steps)} == {int(alpha * 4)}


def test_a_task_that_accepted_nothing_does_nothing_in_a_flush() -> None:
    assert task().flush(0) == []


def test_without_keys_results_have_the_empty_key() -> None:
    steps = feed(task(keyed=False), stream_of((12, 1.0, "a"), (12, 2.0, "b")), flush=True)
    assert {step.key for step in steps if isinstance(step, Result)} == {""}
    assert results(steps)[0] == (5, 3.0, 2, 0, 30)


@given(arrivals(), configs(), st.integers(0, 25))
def test_a_task_can_be_put_away_and_restored_anywhere(
    stream: tuple[Event, ...], settings: dict[str, object], position: int
) -> None:
    config = SlackConfig.from_json(settings)
    whole, first, second = Task(config, 0), Task(config, 0), Task(config, 0)
    expected = feed(whole, stream, flush=True)
    steps = feed(first, stream[:position])
    second.restore(first.state())
    assert [*steps, *feed(second, stream[position:], flush=True)] == expected
    assert second.state() == whole.state()


@given(arrivals(), configs())
def test_results_and_late_pairs_are_those_of_the_watermark_alone(
    stream: tuple[Event, ...], settings: dict[str, object]
) -> None:
    """Brute force: a tuple is in time if the window's end was ahead of the watermark."""
    config = SlackConfig.from_json({**settings, "dedup": False})
    machine = Task(config, 0)
    steps: list[Step] = []
    after_arrival: list[tuple[Event, int]] = []
    for event in stream:
        steps += machine.arrive(event, 0)
        after_arrival.append((event, machine.wm_us))
    steps += machine.flush(0)
    in_time: dict[tuple[int, str], int] = {}
    behind: list[tuple[int, str, int]] = []
    for event, wm_us in after_arrival:
        key = event.key if config.keyed else ""
        for start_us in range(0, 2_000, 1):
            if start_us % config.slide_us == 0 and (
                start_us <= event.event_time_us < start_us + config.size_us
            ):
                if start_us + config.size_us <= wm_us:
                    behind.append((start_us, key, event.source_id))
                else:
                    in_time[start_us, key] = in_time.get((start_us, key), 0) + 1
    found = {(step.start_us, step.key): step.n_rcv for step in steps if isinstance(step, Result)}
    pairs = [(s.start_us, s.key, s.source_id) for s in steps if isinstance(s, Late)]
    assert found == in_time
    assert sorted(pairs) == sorted(behind)
