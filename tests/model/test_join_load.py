"""Workers that come and go, shed and send larger blocks: statements of docs/join.md by hand."""

from itertools import pairwise, product

import pytest

from model.join import chain
from model.join.control import decide, decision_at, draw, start
from model.join.load import (
    Watch,
    block_size,
    fullest,
    shed_share,
    sheds,
    watch,
    workers_for,
)
from model.join.run import SeededRun
from model.join.state import ChainState, Lane, Worker
from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import And, Decision, R, S
from model.vocabulary.join_load import Limits, LoadRules, Measured

# ------------------------------------------------------------------------- workers that come and go


CONFIG = JoinConfig(
    5, (("all", And()),), 3, 7, decisions=(Decision(2, 4, 5, 0.5), Decision(3, 1, 9, 0.0))
)


def test_a_decision_holds_until_the_next_one() -> None:
    found = [decision_at(CONFIG, epoch)[1:] for epoch in range(5)]
    assert found == [(3, 7, 0.0), (3, 7, 0.0), (4, 5, 0.5), (1, 9, 0.0), (1, 9, 0.0)]


def test_draws_are_uniform_and_those_of_the_streams_differ() -> None:
    draws = [draw(stream, seq) for seq in range(5_000) for stream in (R, S)]
    assert len(set(draws)) == len(draws)
    assert all(0 <= each < 1 for each in draws)
    assert sum(each < 0.25 for each in draws) / len(draws) == pytest.approx(0.25, abs=0.02)
    assert draw(R, 0) == (0xE220A8397B1DCDAF >> 11) / 2**53  # the published generator from state 0


def resized(before: int, after: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the stores of R and S of each worker; worker n held tuple n of both streams."""
    arrivals = tuple(Event(n, n, "a", n, 0.0, n, "RS"[n % 2]) for n in range(20))
    workload = Workload("join", arrivals, JoinConfig(5, (("all", And()),)).to_json())
    setup = SeededRun(workload, {}, lambda n: 0).setup
    content = setup.content
    assert isinstance(content, tuple)
    workers = tuple(Worker(Lane((n,)), Lane((n,))) for n in range(before))
    channels = ((),) * (before - 1)
    state, _ = chain.resize(setup, ChainState(workers, channels, channels), after)
    assert (len(state.right), len(state.left), state.changes) == (after - 1, after - 1, 0)
    return [(worker.r.store, worker.s.store) for worker in state.workers]


def test_fewer_workers_are_neighbours_merged_evenly() -> None:
    # The older tuples of R are further right, those of S further left.
    assert resized(4, 2) == [((1, 0), (0, 1)), ((3, 2), (2, 3))]
    assert resized(5, 3) == [((0,), (0,)), ((2, 1), (1, 2)), ((4, 3), (3, 4))]
    assert resized(3, 1) == [((2, 1, 0), (0, 1, 2))]


def test_more_workers_are_parts_with_s_at_the_left_and_r_at_the_right() -> None:
    assert resized(2, 4) == [((), (0,)), ((0,), ()), ((), (1,)), ((1,), ())]
    assert resized(2, 3) == [((0,), (0,)), ((), (1,)), ((1,), ())]
    assert resized(1, 3) == [((), (0,)), ((), ()), ((0,), ())]
    assert resized(3, 3) == [((0,), (0,)), ((1,), (1,)), ((2,), (2,))]


def test_blocks_are_sized_for_the_workers_to_come() -> None:
    rules = LoadRules(
        0.2, 0.8, 0.9, 0, 0, least=1, most=9, capacity=10, blocks="adaptive", block_size=99
    )
    _, decision = decide(rules, start(rules, 2), Measured(0, 10, (10, 10), 0, 0, 0))
    # Two workers that are always busy become five with a utilisation of 0.4: 20 * 0.4 / 4.
    assert decision == Decision(1, 5, 2, 0.0)


# --------------------------------------------------------------------------------------------- load


LIMITS = Limits(0.25, 0.75, 0.75)
SECOND = 1_000_000


def test_the_case_study_goes_from_4_to_8_and_back() -> None:
    assert workers_for(4, 0.75, LIMITS) == 8
    assert workers_for(8, 0.1875, LIMITS) == 4
    assert workers_for(1, 0.01, LIMITS) == 1


def test_a_change_waits_and_a_calm_moment_starts_the_wait_anew() -> None:
    seen, workers, at = Watch(), 4, []
    for second in range(100):
        tau = 0.5 if second == 20 else 0.8
        seen, after = watch(seen, second * SECOND, workers, tau, LIMITS)
        if after != workers:
            at.append((second, after))
            break
    assert at == [(51, 9)]
    seen = Watch()
    for second in range(301):
        seen, after = watch(seen, second * SECOND, 8, 0.1875, LIMITS)
        assert (after == 4) == (second == 300)


@pytest.mark.parametrize("power", [1, 2])
def test_shedding_starts_at_tau1_with_its_base_and_ends_at_1(power: int) -> None:
    assert shed_share(0.75, 0.75, 0.1, power) == 0
    assert shed_share(0.7500001, 0.75, 0.1, power) == pytest.approx(0.1, abs=1e-5)
    assert shed_share(1.0, 0.75, 0.1, power) == 1
    assert shed_share(0.875, 0.75, 0.0, power) == 0.5**power


def test_hysteresis_keeps_shedding_from_chattering() -> None:
    def switches(margin: float) -> int:
        did, count = False, 0
        for n in range(100):
            now = sheds(did, 0.75 + (0.01 if n % 2 else -0.01), 0.75, margin)
            count += now != did
            did = now
        return count

    assert switches(0.0) == 99
    assert switches(0.05) == 1


def loads(workers: int, zeta: int) -> list[tuple[int, ...]]:
    """Return all loads of a chain with 0 to 12 tuples each; neighbours differ by at most zeta."""
    return [
        each
        for each in product(range(13), repeat=workers)
        if all(abs(a - b) <= zeta for a, b in pairwise(each))
    ]


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_no_worker_is_above_tau1_while_the_mean_is_not(workers: int) -> None:
    capacity, tau1 = 16, 0.75
    reached = 0
    for zeta in range(1, 9):
        for load in loads(workers, zeta):
            mean = sum(load) / workers / capacity
            if zeta == block_size(mean, capacity, workers, tau1, 8) and 2 * capacity * (
                tau1 - mean
            ) >= (workers - 1):
                assert max(load) / capacity <= fullest(mean, zeta, capacity, workers) <= tau1
                reached += max(load) / capacity == tau1
    assert reached
