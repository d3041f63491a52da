"""Decisions of the model: which one is in force, draws, even resizing, and the controller."""

import pytest

from model.join import chain
from model.join.control import decide, decision_at, draw, start, utilisation
from model.join.rules import initial
from model.join.run import SeededRun
from model.join.state import ChainState, Lane, Worker
from model.vocabulary import JoinConfig
from model.vocabulary.join import NO_WATERMARK_US, And, Decision, R, S
from model.vocabulary.join_load import LoadRules, LoadState, Measured
from tests.model.join.strategies import workload

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
    setup = SeededRun(workload(1), {}, lambda n: 0).setup
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


def test_an_empty_chain_can_be_resized() -> None:
    setup = SeededRun(workload(1), {}, lambda n: 0).setup
    state, pairs = chain.resize(setup, initial(setup), 4)
    assert len(state.workers) == 4
    assert not pairs
    assert all(worker.r.wm_us == NO_WATERMARK_US for worker in state.workers)


# --------------------------------------------------------------------------------- the controller

RULES = LoadRules(
    0.2, 0.8, 0.9, 2, 3, least=2, most=6, shed="linear", blocks="adaptive", smoothing=0.5
)


def test_tau_is_the_mean_of_busy_shares_of_at_most_all_of_the_time() -> None:
    assert utilisation(Measured(0, 10, (5, 20, 0), 0, 0, 0)) == 0.5


def test_a_chain_starts_within_the_range_of_its_rules() -> None:
    assert start(RULES, 1) == LoadState(0, 2, 0.0, 0.0)
    assert start(RULES, 9).workers == 6


def test_a_load_that_stays_too_high_or_too_low_changes_the_workers_once() -> None:
    state, found = start(RULES, 2), []
    for epoch, tau in enumerate([1.0, 1.0, 1.0, 0.95, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1]):
        m = state.workers
        state, decision = decide(
            RULES, state, Measured(epoch, 1_000, (int(1_000 * tau),) * m, 9, 0, 0)
        )
        found.append(decision.workers)
        assert decision.epoch == epoch + 1
    assert found[0] == 2
    assert max(found) == 6
    assert found[-1] == 2


def test_workers_outside_of_the_range_of_new_rules_are_brought_into_it() -> None:
    state = LoadState(0, 8, 0.0, 0.0)
    after, decision = decide(RULES, state, Measured(0, 10, (5,) * 8, 0, 0, 0))
    assert after.workers == decision.workers == 6


def test_blocks_are_sized_for_the_workers_to_come() -> None:
    rules = LoadRules(
        0.2, 0.8, 0.9, 0, 0, least=1, most=9, capacity=10, blocks="adaptive", block_size=99
    )
    _, decision = decide(rules, start(rules, 2), Measured(0, 10, (10, 10), 0, 0, 0))
    # Two workers that are always busy become five with a utilisation of 0.4: 20 * 0.4 / 4.
    assert decision == Decision(1, 5, 2, 0.0)
