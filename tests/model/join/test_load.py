"""Workers, shedding, block size and bandwidth: the statements of docs/join.md, sections 7 and 8."""

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.join.load import (
    Traffic,
    Watch,
    block_size,
    fullest,
    share_to_shed,
    shed_share,
    sheds,
    watch,
    workers_for,
)
from model.vocabulary.join_load import Limits

LIMITS = Limits(0.25, 0.75, 0.75)
SECOND = 1_000_000


def test_the_case_study_goes_from_4_to_8_and_back() -> None:
    assert workers_for(4, 0.75, LIMITS) == 8
    assert workers_for(8, 0.1875, LIMITS) == 4
    assert workers_for(1, 0.01, LIMITS) == 1


@given(st.integers(1, 64), st.floats(0.751, 1.0))
def test_scaling_out_adds_workers_and_comes_near_the_aim(m: int, tau: float) -> None:
    after = workers_for(m, tau, LIMITS)
    assert after > m
    assert abs(m * tau / after - LIMITS.aim) <= LIMITS.aim / (2 * after) + 1e-9


@given(st.integers(2, 64), st.floats(0.0, 0.249))
def test_scaling_in_removes_workers(m: int, tau: float) -> None:
    assert workers_for(m, tau, LIMITS) < m


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


@pytest.mark.parametrize("taus", [(0.0, 0.5, 0.5), (0.3, 0.5, 0.5), (0.1, 0.8, 0.7), (0.1, 1, 2)])
def test_impossible_limits_are_refused(taus: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="it must be 0 < tau0"):
        Limits(*taus)


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


def test_shedding_that_goes_on_below_tau1_sheds_its_base() -> None:
    assert share_to_shed(False, 0.72, 0.75, 0.1, 1, 0.05) == 0
    assert share_to_shed(True, 0.72, 0.75, 0.1, 1, 0.05) == 0.1
    assert share_to_shed(True, 0.70, 0.75, 0.1, 1, 0.05) == 0
    assert share_to_shed(False, 0.875, 0.75, 0.1, 1, 0.05) == pytest.approx(0.55)
    assert share_to_shed(True, 0.72, 0.75, 0.0, 1, 0.05) == 0


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


def test_a_fixed_block_size_sheds_without_need() -> None:
    assert fullest(0.7, 50, 400, 4) > 0.75
    assert fullest(0.7, block_size(0.7, 400, 4, 0.75, 50), 400, 4) <= 0.75


def test_the_promise_ends_where_a_block_is_a_single_tuple() -> None:
    assert block_size(0.74, 10, 4, 0.75, 50) == 1
    assert fullest(0.74, 1, 10, 4) > 0.75


@given(
    st.floats(1, 1e6),
    st.integers(2, 32),
    st.floats(1, 1e3),
    st.floats(0, 1e3),
    st.floats(1, 1e4),
    st.floats(0, 1e6),
)
def test_bandwidth_is_within_its_bound(
    rate: float, workers: int, length: float, header: float, zeta: float, out: float
) -> None:
    traffic = Traffic(rate, workers, length, header, 2, out)
    over = traffic.bytes_per_s(zeta) / traffic.least() - 1
    assert over <= traffic.overhead_bound(zeta) * (1 + 1e-9) + 1e-9


def test_a_single_worker_sends_nothing_and_a_chain_sends_over_each_boundary_once() -> None:
    assert block_size(0.9, 100, 1, 0.75, 64) == 64
    assert Traffic(1000, 1, 20, 40).bytes_per_s(10) == 0
    assert Traffic(1000, 3, 20, 40).bytes_per_s(10) == 1000 * 2 * (20 + 8)
