"""Decisions: the controller, shedding at admission, and chains in one process that obey."""

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from model.vocabulary import Fault, JoinConfig, Workload
from model.vocabulary.join import REASON_SHED, Decision, Rejected
from model.vocabulary.join_load import LoadRules, LoadState, Measured
from spark_impl.join import admission, checkpoint, in_process
from spark_impl.join.admission import draw
from spark_impl.join.control import begin, decide, find_in_force
from spark_impl.join.in_process import Network, run_in_process
from spark_impl.join.side import Matcher
from spark_impl.runtime.arrays import Floats, Ints
from tests.spark_impl.join_cases import (
    admitted,
    draw_of,
    nested_loop,
    pairs,
    random_case,
    shed,
)

SECOND = 1_000_000
RULES = LoadRules(out_after_us=2 * SECOND, in_after_us=3 * SECOND, least=2, most=9)
NETWORK = Network(ordered=False, twice=0.1, unforced=0.3)
EPOCHS = 5
CASES = 40


def decided(rules: LoadRules, taus: list[float], workers: int = 4) -> list[Decision]:
    """Return the decisions for a run of utilisations, one every second."""
    state = begin(rules, workers)
    found = []
    for epoch, tau in enumerate(taus):
        busy_us = (int(tau * SECOND),) * state.workers
        state, decision = decide(rules, state, Measured(epoch, SECOND, busy_us, 0, 0, 0))
        found.append(decision)
    assert [each.epoch for each in found] == list(range(1, len(taus) + 1))
    return found


@pytest.mark.parametrize(
    ("taus", "workers"),
    [
        ([0.9, 0.9, 0.9], [4, 4, 9]),  # two seconds after the first moment
        ([0.9, 0.9, 0.8, 0.9, 0.9], [4] * 5),  # a moment at tau2 is not above it
        ([0.2, 0.2, 0.2, 0.2], [4, 4, 4, 2]),
        ([0.2, 0.2, 0.9, 0.2, 0.2, 0.2], [4] * 6),  # a high moment forgets the low ones
        ([0.2] * 3 + [0.25] + [0.2] * 3, [4] * 7),
        ([0.9] * 7, [4, 4, 9, 9, 9, 9, 9]),
        ([0.0] * 4, [4, 4, 4, 2]),  # at least one, then at least the least
    ],
)
def test_workers_follow_utilisation_that_lasts(taus: list[float], workers: list[int]) -> None:
    assert [each.workers for each in decided(RULES, taus)] == workers


def test_the_case_study_goes_from_four_to_eight_and_back() -> None:
    rules = replace(RULES, most=100)
    taus = [0.4] * 3 + [0.81] * 3 + [0.4] * 2 + [0.2] * 4
    assert [each.workers for each in decided(rules, taus)][-8:] == [4, 8, 8, 8, 8, 8, 8, 4]


def test_moments_are_forgotten_after_a_change_that_changes_nothing() -> None:
    rules = replace(RULES, most=4)
    state = begin(rules, 4)
    for epoch in range(3):
        state, _ = decide(rules, state, Measured(epoch, SECOND, (SECOND,) * 4, 0, 0, 0))
        assert state.high_since_us == (None if epoch == 2 else SECOND)
    assert state == LoadState(3 * SECOND, 4, 0.0, 1 - 0.7**3)


def test_a_range_that_changed_holds_from_the_next_measurement_on() -> None:
    state = LoadState(0, 8, 0.0, 0.5)
    measured = Measured(0, SECOND, (SECOND // 2,) * 8, 0, 0, 0)
    assert decide(replace(RULES, most=3), state, measured)[1].workers == 3
    assert decide(replace(RULES, least=9), state, measured)[1].workers == 9


@pytest.mark.parametrize(
    ("shedding", "base", "shares"),
    [
        ("no", 0.3, [0, 0, 0, 0, 0]),
        ("linear", 0.0, [0, 0.5, 0, 0, 0]),
        ("linear", 0.2, [0, 0.6, 0.2, 0.2, 0]),
        ("quadratic", 0.2, [0, 0.4, 0.2, 0.2, 0]),
    ],
)
def test_shedding_ends_below_the_margin(shedding: str, base: float, shares: list[float]) -> None:
    rules = replace(RULES, shed=shedding, base=base, margin=0.1, smoothing=1.0)
    found = [each.share for each in decided(rules, [0.75, 0.9, 0.8, 0.75, 0.7])]
    assert found == pytest.approx(shares)


def test_blocks_shrink_as_utilisation_rises() -> None:
    rules = replace(RULES, blocks="adaptive", capacity=100, block_size=50)
    sizes = [each.block_size for each in decided(rules, [0.1, 0.5, 0.7, 0.9])]
    assert sizes == [46, 20, 6, 1]
    assert decided(replace(rules, least=1), [0.7], workers=1)[0].block_size == 50
    resized = decided(rules, [0.9] * 3)[-1]
    assert resized == (3, 9, int(200 * (0.8 - 0.4) / 8), 0.0)
    assert decided(replace(rules, blocks="fixed"), [0.9])[0].block_size == 50


def test_a_worker_is_at_most_always_busy() -> None:
    _, decision = decide(
        replace(RULES, smoothing=1.0, shed="linear"),
        begin(RULES, 2),
        Measured(0, SECOND, (9 * SECOND, SECOND // 2), 0, 0, 0),
    )
    assert decision.share == 0.0


# ------------------------------------------------------------------------------- shedding


def test_draws_are_those_of_the_page() -> None:
    seqs = [0, 1, 2, 12345, -1, (1 << 62) + 1, (1 << 63) - 1, -(1 << 63)]
    for stream in "RS":
        found = draw(stream, np.array(seqs)).tolist()
        assert found == [draw_of(stream, seq) for seq in seqs]
    assert draw("R", np.array([0])).tolist() == [0.8833108082136426]
    many = draw("S", np.arange(100_000))
    assert abs(float(many.mean()) - 0.5) < 0.01
    assert 0 <= many.min() < many.max() < 1


def case_of(seed: int) -> Workload:
    """Return a case with decisions that are no reaction to anything."""
    case = random_case(seed, tuples=60, at_least=40)
    size = len(case.arrivals)
    choose = random.Random(seed)
    decisions = [
        [
            epoch,
            choose.randint(1, 5),
            choose.choice([1, 2, 5, 100]),
            choose.choice([0, 0.2, 0.6, 1]),
        ]
        for epoch in range(EPOCHS + 1)
        if choose.random() < 0.7
    ]
    return case.with_(
        cuts=tuple(size * n // EPOCHS for n in range(1, EPOCHS)),
        config={**case.config, "decisions": decisions},
        faults=(Fault("kill", seed % EPOCHS),),
    )


def broken() -> list[int]:
    """Return the seeds of cases with wrong results."""
    found = []
    for case in map(case_of, range(CASES)):
        trace = run_in_process(case, NETWORK)
        if (pairs(trace), set(trace.of(Rejected))) != (nested_loop(case), admitted(case)[1]):
            found.append(case.seed)
    return found


def test_what_was_not_shed_is_joined_exactly_once() -> None:
    assert not broken()
    met: Counter[str] = Counter()
    for case in map(case_of, range(CASES)):
        taken, rejected = admitted(case)
        known = {(event.stream, event.source_id) for own in taken.values() for event in own}
        met["shed"] += len(shed(case))
        met["shed, then admitted"] += sum((e.stream, e.source_id) in known for e in shed(case))
        met["other rejections"] += sum(each.reason != REASON_SHED for each in rejected)
        sizes = [each.workers for each in JoinConfig.from_json(case.config).decisions]
        met["out"] += any(a < b for a, b in pairwise(sizes))
        met["in"] += any(a > b for a, b in pairwise(sizes))
        met["pairs"] += sum(nested_loop(case).values())
    assert len(met) == 6
    assert all(met.values()), met


def test_a_draw_that_differs_by_attempt_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = random.Random(1)

    def anew(_stream: str, seq: Ints) -> Floats:
        return np.array([drawn.random() for _ in seq.tolist()])

    monkeypatch.setattr(admission, "draw", anew)
    assert broken()


def test_a_decision_that_is_taken_late_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(config: JoinConfig, epoch: int) -> Decision | None:
        return find_in_force(config, epoch - 1)

    monkeypatch.setattr(in_process, "find_in_force", late)
    assert broken()


def test_shed_arrivals_that_move_the_watermark_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    admit = admission.Intake.admit

    def late(self: admission.Intake, arrivals: admission.Arrivals) -> object:
        found = admit(self, arrivals)
        self._t_max_us = max([self._t_max_us, *arrivals.tuples.ts.tolist()])
        return found

    monkeypatch.setattr(admission.Intake, "admit", late)
    assert broken()


def test_a_resize_whose_merge_joins_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    merge = checkpoint._merge

    def silent(states: list[checkpoint.WorkerState], matcher: Matcher) -> object:
        state, found = merge(states, matcher)
        return state, [[] for _ in found]

    monkeypatch.setattr(checkpoint, "_merge", silent)
    assert broken()
