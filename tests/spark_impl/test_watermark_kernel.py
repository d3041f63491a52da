"""The watermark of a micro-cluster in process: by hand, then against docs/watermark.md."""

import random
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from model.vocabulary import Event, Workload, task_of
from model.vocabulary.watermark import READINGS, Clock, Inserted
from model.vocabulary.windows import Late, Rejected, Result
from spark_impl.watermark import run_in_process
from spark_impl.windows import kernel
from spark_impl.windows.disorder import count_inversions
from tests.spark_impl import brute_watermark
from tests.spark_impl.watermark_cases import random_config, random_workload

STREAM_WORDS = (Clock, Result, Late, Rejected)


def workload(times: list[int], cuts: tuple[int, ...] = (), **config: Any) -> Workload:
    events = tuple(Event(seq, seq, "a", ts, 1.0, 1000) for seq, ts in enumerate(times))
    settings = {"size_us": 10, "slide_us": 10, "max_wait_us": 12, "k": 3, **config}
    return Workload("watermark", events, settings, cuts, flush=False)


def clocks(times: list[int], **config: Any) -> list[tuple[int, int, int]]:
    found = run_in_process(workload(times, **config)).of(Clock)
    return [(clock.inv, clock.wait_us, clock.wm_us) for clock in found]


def test_clocks_by_hand() -> None:
    # clusters of three: 30; 30 31; 30 31 32; 31 32 29; 32 29 28; 29 28 40; 28 40 41; 40 41 42
    times = [30, 31, 32, 29, 28, 40, 41, 42]
    inv = [0, 0, 0, 2, 3, 1, 0, 0]
    wait = [12, 0, 0, 8, 12, 4, 0, 0]
    wm = [18, 31, 32, 32, 32, 36, 41, 42]
    assert clocks(times) == list(zip(inv, wait, wm, strict=True))


@pytest.mark.parametrize(
    ("reading", "wait"),
    [
        ("disorder", [12, 0, 4, 12]),
        ("scaled", [12, 0, 8, 12]),
        ("literal", [0, 12, 8, 0]),
        ("fixed", [12, 12, 12, 12]),
    ],
)
def test_readings_by_hand(reading: str, wait: list[int]) -> None:
    found = clocks([30, 33, 31, 29], reading=reading)
    # pairs out of order: none; none; 33 31; all of 33 31 29
    assert [each[0] for each in found] == [0, 0, 1, 3]
    assert [each[1] for each in found] == wait


def test_equal_times_are_in_order_and_one_arrival_has_no_pairs() -> None:
    assert [each[0] for each in clocks([30, 30, 30])] == [0, 0, 0]
    assert [each[1] for each in clocks([30, 29], k=1)] == [12, 12]
    assert [each[1] for each in clocks([30, 29], k=1, reading="literal")] == [0, 0]


def test_tuple_that_moves_the_watermark_may_be_late_itself() -> None:
    # the third arrival leaves a cluster in order, so that its own window closes at 40
    trace = run_in_process(workload([40, 38, 39], k=2))
    assert [clock.wm_us for clock in trace.of(Clock)] == [28, 28, 40]
    assert [(pair.start_us, pair.event_time_us) for pair in trace.of(Late)] == [(30, 39)]
    assert [(result.start_us, result.n_rcv) for result in trace.of(Result)] == [(30, 1)]


def test_clocks_of_batches_are_the_last_of_each() -> None:
    times = [30, 31, 32, 29, 28, 40, 41, 42]
    every = run_in_process(workload(times, cuts=(3, 4))).of(Clock)
    last = run_in_process(workload(times, cuts=(3, 4), clocks="batches")).of(Clock)
    assert last == (every[2], every[3], every[7])


@pytest.mark.parametrize("k", [1, 2, 3, 7, 300])
def test_inversions_are_those_of_every_cluster(k: int) -> None:
    draw = random.Random(k)
    for _ in range(30):
        far = draw.choice([3, 1 << 40])
        times = [draw.randint(-far, far) for _ in range(draw.randint(0, 40))]
        cut = draw.randint(0, len(times))
        counted = [
            sum(a > b for a, b in combinations(times[max(0, end - k) : end], 2))
            for end in range(len(times) + 1)
        ]
        known = np.array(times[max(0, cut - k) : cut], np.int64)
        found = count_inversions(k, known, counted[cut], np.array(times[cut:], np.int64))
        assert found.tolist() == counted[cut + 1 :]


def test_reversed_cluster_has_every_pair() -> None:
    """The cluster has more pairs than fit into a byte per arrival, or two bytes in all."""
    found = count_inversions(400, np.empty(0, np.int64), 0, np.arange(1000)[::-1])
    assert found[[1, 399, 999]].tolist() == [1, 400 * 399 // 2, 400 * 399 // 2]


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize(
    ("k", "longest"), [(1, (1 << 61) - 1), (2, (1 << 61) - 1), ((1 << 32) + 5, 0), (1 << 70, 0)]
)
def test_limits_of_the_configuration_fit(k: int, longest: int, reading: str) -> None:
    case = workload([30, 33, 31, 29], (1, 3), k=k, max_wait_us=longest, reading=reading)
    expected = brute_watermark.run(case).of(Clock)
    assert run_in_process(case).of(Clock) == expected
    assert expected[-1].inv == (0, 1, 4, 4)[min(k, 4) - 1]


@pytest.mark.parametrize(("ahead", "rejected"), [(0, [1, 2, 3]), (5, [2]), ((1 << 61) - 1, [2])])
def test_arrivals_at_extreme_times_are_compared_without_overflow(
    ahead: int, rejected: list[int]
) -> None:
    case = workload([30, (1 << 61) - 1, 1 - (1 << 61), 29], max_future_us=ahead)
    moments = ((1 << 63) - 1, (1 << 61) - 6, -(1 << 63), 24)
    events = [e._replace(arrival_us=us) for e, us in zip(case.arrivals, moments, strict=True)]
    case = case.with_(arrivals=tuple(events))
    expected, observed = brute_watermark.run(case), run_in_process(case)
    assert observed.of(Rejected) == expected.of(Rejected)
    assert [each.seq for each in expected.of(Rejected)] == rejected


@pytest.mark.parametrize("block", range(4))
def test_steps_equal_the_specification(block: int) -> None:
    for seed in range(block * 60, block * 60 + 60):
        case = random_workload(seed, random_config(seed))
        expected, observed = brute_watermark.run(case), run_in_process(case)
        for word in STREAM_WORDS:
            assert observed.of(word) == expected.of(word), (seed, word.__name__)


def test_lengths_of_plans_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "ROWS_AT_ONCE", 3)
    for seed in range(40):
        case = random_workload(seed, random_config(seed))
        expected, observed = brute_watermark.run(case), run_in_process(case)
        assert all(observed.of(word) == expected.of(word) for word in STREAM_WORDS), seed


def test_random_cases_contain_what_they_are_for() -> None:
    cases = [random_workload(seed, random_config(seed)) for seed in range(240)]
    assert {case.config["reading"] for case in cases} == set(READINGS)
    traces = [brute_watermark.run(case) for case in cases]
    clock = [each for trace in traces for each in trace.of(Clock)]
    assert sum(each.inv > 0 for each in clock) > 500
    # the watermark stays where a shorter wait has brought it
    assert sum(each.wm_us > each.t_max_us - each.wait_us for each in clock) > 100
    assert sum(len(trace.of(Late)) for trace in traces) > 500
    assert sum(len(trace.of(Rejected)) for trace in traces) > 100


def insertions(*arrivals: tuple[str, int, int], **config: Any) -> list[tuple[int, int]]:
    """Return position and watermark of each insertion, for keys, event and arrival times."""
    events = tuple(Event(n, n, key, ts, 1.0, at) for n, (key, ts, at) in enumerate(arrivals))
    given = {"size_us": 10, "slide_us": 10, "max_wait_us": 0, "tasks": 3, "upstreams": 2, **config}
    found = run_in_process(Workload("watermark", events, given, (1, 3), flush=False))
    return sorted((step.seq, step.wm_us) for step in found.of(Inserted))


A, B = next(pair for pair in combinations("abc", 2) if len({task_of(k, 2) for k in pair}) == 2)
"""Two keys that pass different operators."""


def test_the_least_watermark_waits_for_every_operator() -> None:
    alone = ((A, 5, 0), (A, 7, 1), (A, 9, 2))
    assert insertions(*alone) == []
    # A stands at 9, then B rises to 4, stays and passes A
    assert insertions(*alone, (B, 4, 3), (B, 2, 4), (B, 30, 5), (A, 12, 6)) == [
        (3, 4),
        (5, 9),
        (6, 12),
    ]


def test_watermarks_are_inserted_before_the_first_arrival_of_a_period() -> None:
    arrivals = ((A, 5, 0), (B, 6, 1), (A, 7, 12), (B, 8, 13), (B, 9, 11), (A, 9, 35), (A, 9, 41))
    assert insertions(*arrivals, insert_every_us=10) == [(2, 5), (5, 7), (6, 9)]


def test_a_rejected_arrival_begins_no_period() -> None:
    arrivals = ((A, 5, 0), (B, 6, 1), (A, 99, 12), (B, 8, 13))
    assert insertions(*arrivals, insert_every_us=10, max_future_us=50) == [(3, 5)]
