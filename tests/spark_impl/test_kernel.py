"""The stream part in process: by hand, then against docs/slack.md tuple by tuple."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from model.vocabulary import Event, SlackConfig, Workload
from model.vocabulary.settings import PlainData
from model.vocabulary.slack import Judged, Progress
from model.vocabulary.windows import REASON_FUTURE, REASON_NOT_FINITE, Late, Rejected, Result
from spark_impl.runtime.histories import COLUMNS
from spark_impl.slack import retained_values, rule, run_in_process
from spark_impl.slack.query import SLACK
from spark_impl.slack.rule import Memory
from spark_impl.windows import kernel
from spark_impl.windows.blocks import decode, encode
from spark_impl.windows.records import TaskState
from tests.spark_impl import brute
from tests.spark_impl.cases import random_config, random_workload

STREAM_WORDS = (Result, Late, Judged, Rejected, Progress)


def workload(
    times_and_values: list[tuple[int, float]], flush: bool = True, **config: Any
) -> Workload:
    events = tuple(
        Event(seq, seq, "a", ts, float(value), 1000)
        for seq, (ts, value) in enumerate(times_and_values)
    )
    return Workload("slack", events, config, flush=flush)


BY_HAND = workload(
    [(3, 1), (12, 2), (26, 4), (12, 8), (17, 16)],
    size_us=10,
    slide_us=5,
    control="fixed",
    fixed_slack_us=0,
)


def test_squares_beyond_all_floats_raise_no_warning() -> None:
    """The moments may be infinite; pytest turns a warning into an error."""
    trace = run_in_process(workload([(3, 1e200), (26, 2.0)], size_us=10, slide_us=5))
    assert [r.value for r in trace.of(Result) if r.start_us == 0] == [1e200]


def test_results_and_late_pairs_by_hand() -> None:
    trace = run_in_process(BY_HAND)
    assert [(r.start_us, r.value, r.n_rcv, r.wm_us, r.batch) for r in trace.of(Result)] == [
        (-5, 1.0, 1, 12, 0),  # closed by the tuple 12
        (0, 1.0, 1, 12, 0),
        (5, 2.0, 1, 26, 0),  # closed by the tuple 26
        (10, 2.0, 1, 26, 0),
        (20, 4.0, 1, 45, 1),  # closed by the flush: last_end(26) + L = 35 + 10
        (25, 4.0, 1, 45, 1),
    ]
    assert [(p.start_us, p.event_time_us) for p in trace.of(Late)] == [
        (5, 12),
        (10, 12),
        (10, 17),
        (15, 17),
    ]


def test_judgements_by_hand() -> None:
    judged = run_in_process(BY_HAND).of(Judged)
    assert [(j.order, j.start_us, j.n_rcv, j.n_late, j.batch) for j in judged] == [
        (0, -5, 1, 0, 0),  # end + L = 15 <= 26
        (1, 0, 1, 0, 0),
        (2, 5, 1, 0, 0),  # 25 <= 26, before the late 12 comes
        (3, 10, 1, 2, 1),
        (4, 15, 0, 1, 1),
        (5, 20, 1, 0, 1),
        (6, 25, 1, 0, 1),
    ]


def test_alpha_and_slack_by_hand() -> None:
    trace = run_in_process(
        workload(
            [(5, 1), (2, 1), (13, 1), (21, 1), (22, 1)],
            size_us=10,
            slide_us=10,
            aggregate="count",
            feedback_us=0,
            eps=0.5,
            delta=0.4,
            learning_rate=0.5,
            flush=False,
        )
    )
    # k = 3 after the tuple 2. The tuple 13 makes wm = 13 - 3 = 10: two of two, two were required
    # (2 - ceil(1) + 1), no miss, alpha = 1 + 0.5 * (0 - 0.2) = 0.9, from then on K = floor(2.7).
    # The tuple 22 makes wm = 20: one of one, one required, alpha = 0.8.
    assert [(r.start_us, r.slack_us, r.wm_us) for r in trace.of(Result)] == [
        (0, 3, 10),
        (10, 2, 20),
    ]
    assert [(j.n_req, j.miss, j.alpha) for j in trace.of(Judged)] == [
        (2, False, 0.9),
        (1, False, 0.8),
    ]
    assert trace.of(Progress) == (Progress(0, 0, 22, 3, 2, 20, 0.8),)


def test_redelivery_is_dropped_until_it_is_forgotten() -> None:
    config = {"size_us": 10, "slide_us": 10, "control": "fixed", "feedback_us": 0}
    first = Event(0, 7, "a", 5, 1.0, 0)
    again = first._replace(seq=1)
    mover = Event(2, 8, "a", 10, 1.0, 0)  # wm = 10 = last_end(5) + L: forgotten
    too_late = first._replace(seq=3)
    trace = run_in_process(Workload("slack", (first, again, mover, too_late), config, flush=False))
    assert [(r.start_us, r.n_rcv) for r in trace.of(Result)] == [(0, 1)]
    assert [(p.start_us, p.source_id) for p in trace.of(Late)] == [(0, 7)]


def test_reasons_for_rejection_in_their_order() -> None:
    config = {"size_us": 10, "slide_us": 10, "max_future_us": 5}
    values = [(20, float("nan")), (20, 1.0), (15, -1.0), (15, 1.0)]
    events = tuple(Event(i, i, "a", ts, value, 10) for i, (ts, value) in enumerate(values))
    trace = run_in_process(Workload("slack", events, config))
    assert [step.reason for step in trace.of(Rejected)] == [REASON_NOT_FINITE, REASON_FUTURE]
    assert [(result.value, result.n_rcv) for result in trace.of(Result)] == [(0.0, 2)]


def test_gap_between_windows_belongs_to_none() -> None:
    trace = run_in_process(workload([(1, 1), (5, 2), (11, 4)], size_us=2, slide_us=10))
    assert [(r.start_us, r.value) for r in trace.of(Result)] == [(0, 1.0), (10, 4.0)]


def test_far_jump_in_time_costs_nothing() -> None:
    trace = run_in_process(workload([(1, 1), (10**15, 2)], size_us=10, slide_us=1, tasks=1))
    assert len(trace.of(Result)) == 20


@pytest.mark.parametrize("block", range(4))
def test_equals_the_specification_tuple_by_tuple(block: int) -> None:
    for seed in range(block * 60, block * 60 + 60):
        case = random_workload(seed, random_config(seed))
        expected, observed = brute.run(case), run_in_process(case)
        for word in STREAM_WORDS:
            assert observed.of(word) == expected.of(word), (seed, word.__name__)


def test_lengths_of_plans_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "ROWS_AT_ONCE", 3)
    monkeypatch.setattr(rule, "_FIRST_LOOK", 1)
    monkeypatch.setattr(retained_values, "_RECENT", 0)
    for seed in range(40):
        case = random_workload(seed, random_config(seed))
        expected, observed = brute.run(case), run_in_process(case)
        assert all(observed.of(word) == expected.of(word) for word in STREAM_WORDS), seed


def test_random_cases_contain_what_they_are_for() -> None:
    traces = [brute.run(random_workload(s, random_config(s))) for s in range(240)]
    assert sum(len(trace.of(Late)) for trace in traces) > 1000
    assert any(j.miss for trace in traces for j in trace.of(Judged))
    assert any(j.n_rcv == 0 for trace in traces for j in trace.of(Judged))
    assert sum(len(trace.of(Rejected)) for trace in traces) > 100


def test_random_cases_require_less_than_everything_from_values() -> None:
    by_values = [s for s in range(240) if SlackConfig(**random_config(s)).needs_values]
    judged = [
        j for s in by_values for j in brute.run(random_workload(s, random_config(s))).of(Judged)
    ]
    assert sum(j.n_late > 0 for j in judged) > 20
    assert sum(0 < j.n_req < j.n_rcv + j.n_late for j in judged) > 20


def test_values_of_a_window_are_those_that_its_judgement_counted() -> None:
    config: dict[str, PlainData] = {
        "aggregate": "sum",
        "sampling": "adversarial",
        "eps": 0.4,
        "control": "fixed",
    }
    # window 0 .. 10 receives 2 and 3 and misses 5; what comes after its judgement does not count
    case = workload(
        [(1, 2), (2, 3), (11, 1), (3, 5), (25, 1), (4, 90)], size_us=10, slide_us=10, **config
    )
    judged = run_in_process(case).of(Judged)[0]
    # of 2 + 3 + 5 less than 4 may be missing: not even the largest one
    assert (judged.start_us, judged.n_rcv, judged.n_late, judged.n_req) == (0, 2, 1, 3)
    # with 3 for 5, 3 of 8 is less than 0.4
    smaller = workload(
        [(1, 2), (2, 3), (11, 1), (3, 3), (25, 1), (4, 90)], size_us=10, slide_us=10, **config
    )
    assert run_in_process(smaller).of(Judged)[0].n_req == 2


def test_arrival_numbers_must_not_go_down() -> None:
    config = SlackConfig(size_us=10, slide_us=10)
    block = encode(SLACK.settings(config), _table([3, 4]))
    state, _ = kernel.process(SLACK, config, TaskState(Memory()), *decode([block]), flush=False)
    with pytest.raises(ValueError, match="arrival number 4 comes after 4"):
        kernel.process(
            SLACK,
            config,
            state,
            *decode([encode(SLACK.settings(config), _table([4]))]),
            flush=False,
        )


@pytest.mark.parametrize("method", ["normal", "rigorous"])
def test_state_does_not_grow_with_the_stream(method: str) -> None:
    config = SlackConfig(size_us=100, slide_us=10, dedup=True, method=method)
    state, sizes = TaskState(Memory()), []
    for batch in range(20):
        numbers = range(batch * 100, batch * 100 + 100)
        rows = decode([encode(SLACK.settings(config), _table(numbers, key="k%d"))])
        state, _ = kernel.process(SLACK, config, state, *rows, flush=False)
        memory = state.memory
        parts = (state.panes, memory.windows, state.identities, memory.retained, memory.values)
        sizes.append((len(state.keys), *map(len, parts)))
    assert sizes[-1] == sizes[5]
    assert bool(sizes[-1][-1]) == config.needs_values


def test_values_take_eight_bytes_a_tuple() -> None:
    config = SlackConfig(size_us=1000, slide_us=500, method="rigorous")
    rows = decode([encode(SLACK.settings(config), _table(range(900)))])
    state, _ = kernel.process(SLACK, config, TaskState(Memory()), *rows, flush=False)
    held_n, values = state.memory.retained["n"], state.memory.values
    assert (len(held_n), held_n.sum(), len(values)) == (2, 900, 900)


def _table(numbers: Iterable[int], key: str = "a") -> pa.Table:
    rows = [Event(n, n, key % n if "%" in key else key, n, 1.0, 0)._asdict() for n in numbers]
    return pa.Table.from_pylist(rows, schema=pa.schema(list(COLUMNS.items())))


def test_guesses_beyond_judgements_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    check = rule.Foresight.check

    def counted(self: Any, turns: Any, alpha: Any, judged: Any) -> Any:
        wrong = check(self, turns, alpha, judged)
        seen["wrong" if wrong else "right"] += bool(turns)
        return wrong

    monkeypatch.setattr(rule.Foresight, "check", counted)
    config = {"slide_us": 2, "size_us": 4, "eps": 0.4, "delta": 0.4, "learning_rate": 0.3}
    for seed in range(40):
        case = random_workload(seed, config, size=200)
        expected, observed = brute.run(case), run_in_process(case)
        assert all(observed.of(word) == expected.of(word) for word in STREAM_WORDS), seed
    assert min(seen["wrong"], seen["right"]) > 50
