"""Engines of a chain: its index and the handshake join; and the smallest chain."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.join.run import run as model_run
from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import Equi, R, Rejected, S
from model.vocabulary.settings import read_settings
from sim.join import ChainRun, simulate
from sim.join.content import Index, RankArray
from sim.join.demand import BUSY_MAX, Demand, Hardware, hardware_of
from sim.join.handshake import HandshakeChain
from sim.join.planning import (
    NoChain,
    find_chain,
    least_work,
    link_share,
    passing_times_us,
    try_chain,
)
from sim.join.settings import SETTINGS, config_of, plan_of
from sim.join.tuning import ChainTuning, Costs, as_on_spark
from sim.kernel.link import Tier
from tests.sim.calibrations import CALIBRATION
from tests.sim.test_join import found

# ---------------------------------------------------------------------------------------- the index


def held(ranks: list[int]) -> RankArray:
    return RankArray(np.array(ranks, dtype=np.int64))


def test_pairs_come_in_the_order_of_the_ranks_that_were_given() -> None:
    """Sorts may put equal values in any order, and the order may differ between processors."""
    rng = np.random.default_rng(3)
    index = Index(JoinConfig(100, (("q", Equi("key")),)))
    for stream in (R, S):
        keys = rng.choice(["", "a", "ä", "b"], 60).tolist()
        events = [Event(n, n, key, n // 3, 1.0, n, stream) for n, key in enumerate(keys)]
        index.add(stream, 0, events, 0)
    block, store = list(range(20, 5, -1)), list(range(60))
    index.join(R, held(block).as_ranks(), held(store).as_ranks())
    (found,) = index.take()
    places = [
        (s, block.index(r)) for r, s in zip(found.r_ids.tolist(), found.s_ids.tolist(), strict=True)
    ]
    assert places == sorted(places)
    assert len(places) > 100


# ------------------------------------------------------------------------------- the handshake join


SMALL = {"seconds": "6", "rate_r_hz": "30", "rate_s_hz": "30", "predicate": "equi"}


def run(settings: dict[str, str], seed: int = 1) -> ChainRun:
    values = read_settings({**SMALL, **settings}, SETTINGS)
    return simulate(plan_of(values), config_of(values), seed, machine=HandshakeChain)


@given(
    st.integers(0, 10_000),
    st.fixed_dictionaries(
        {
            "scenario": st.sampled_from(["steady", "bursts", "waves", "racing"]),
            "workers": st.sampled_from(["1", "2", "3", "5"]),
            "window_us": st.sampled_from(["1", "200000", "2000000"]),
            "lateness_us": st.sampled_from(["0", "200000", "never"]),
            "trigger_interval_us": st.sampled_from(["never", "1000000"]),
            "loss": st.sampled_from(["0", "0.1"]),
            "speeds": st.sampled_from(["1", "1,0.1"]),
            "message_us": st.sampled_from(["5", "3000"]),
            "faults": st.sampled_from(["none", "fail worker-0 1500000 500000"]),
        }
    ),
)
def test_a_handshake_join_finds_what_the_model_finds(seed: int, settings: dict[str, str]) -> None:
    timed = run({**settings, "seconds": "3"}, seed)
    trace = model_run(timed.workload)
    assert found(timed.trace) == found(trace)
    assert timed.trace.of(Rejected) == trace.of(Rejected)


# ----------------------------------------------------- the smallest chain, against closed forms


FAST = Tier(10.0, 10_000.0)
COMPARING = Hardware(FAST, 0.0, Costs(0.0, 1.0, 0.0))
"""Workers that do nothing but compare."""
DEMAND = Demand(2_000.0, 10_000_000, 60_000_000, 0.1)
"""Two workers' comparisons: 1000^2 * 2 * 10 s * 0.1 pairs a second, 1 us each."""


@pytest.mark.parametrize("workers", [1, 2, 3, 5, 8])
def test_pairs_pass_when_the_arithmetic_of_stores_says(workers: int) -> None:
    """Step through the time that a worker holds a tuple in hundredths."""
    waits = []
    for age in range(1, 100 * workers, 2):
        wait = 0
        while (age + wait) // 100 + wait // 100 < workers - 1:
            wait += 1
        waits.append(wait / 100 / workers)
    expected = np.percentile(waits, (50, 99)) * 1e6
    assert passing_times_us(workers, 1e6) == pytest.approx(expected, abs=4e4)


@pytest.mark.parametrize("work", [0.5, 1.8, 3.6])
def test_the_smallest_chain_is_that_of_an_ideal_chain(work: float) -> None:
    """Comparisons are spread evenly but for chance: one worker more than ideal is allowed."""
    demand = replace(DEMAND, selectivity=0.05 * work)
    assert least_work(demand, COMPARING) == pytest.approx(work)
    ideal = ceil(work / BUSY_MAX)
    found = find_chain(demand, COMPARING, 1)
    assert found.chain.workers in (ideal, ideal + 1)
    assert found.chain.busiest * found.chain.workers == pytest.approx(work, rel=0.15)
    assert (found.smaller is None) == (found.chain.workers == 1)


@pytest.mark.long
def test_smaller_blocks_are_taken_if_large_ones_leave_stores_uneven() -> None:
    """A window holds 400 tuples: blocks of 256 leave nearly all of them at one worker."""
    demand = Demand(200.0, 2_000_000, 60_000_000, 1.0)
    hardware = COMPARING._replace(costs=Costs(0.0, 80.0, 0.0))
    assert try_chain(demand, hardware, 4, 256, 1).p99_us is None
    found = find_chain(demand, hardware, 1)
    assert found.chain.workers == 4
    assert found.chain.block_size < 256


def test_full_links_are_named() -> None:
    """Each boundary carries half of 2,000 tuples of 100 bytes a second: 0.8 Mb/s."""
    hardware = COMPARING._replace(link=Tier(200.0, 0.5))
    assert link_share(DEMAND, hardware, 10**9) == pytest.approx(1.6)
    with pytest.raises(NoChain, match="of each link"):
        find_chain(DEMAND, hardware, 1)


def test_a_latency_below_the_passing_time_has_no_chain() -> None:
    with pytest.raises(NoChain, match="pass each other after up to 4"):
        find_chain(replace(DEMAND, latency_us=2_000_000), COMPARING, 1)


def test_epochs_take_their_time() -> None:
    """Starts of 0.5 s: a tenth of the time is gone, and pairs come out at the end of an epoch."""
    few = replace(DEMAND, selectivity=0.04)
    steady, by_epochs = (
        try_chain(few, COMPARING._replace(epoch_us=epoch_us), 1, 64, 1) for epoch_us in (0, 5e5)
    )
    assert steady.p50_us is not None
    assert by_epochs.p50_us is not None
    assert by_epochs.p50_us - steady.p50_us == pytest.approx(2.5e6 + 5e5 + 0.9 * BUSY_MAX * 5e6)
    nearly_all = replace(DEMAND, selectivity=0.0455)
    with_epochs = try_chain(nearly_all, COMPARING._replace(epoch_us=5e5), 1, 64, 1)
    assert (with_epochs.p50_us, try_chain(nearly_all, COMPARING, 1, 64, 1).lacks) == (None, "")


@pytest.mark.parametrize("window_us", [1, 150, 1_000_000, 3_600_000_000])
def test_workers_on_spark_say_how_far_they_are_several_times_a_window(window_us: int) -> None:
    config = JoinConfig(window_us, (("same", Equi("key")),), workers=3, block_size=16)
    tuning = as_on_spark(ChainTuning(), config, 1_000.0)
    assert 1 <= tuning.hint_us <= max(1, window_us / 10)


def test_a_calibration_sets_costs_links_and_speed() -> None:
    found = hardware_of(CALIBRATION)
    assert found == Hardware(Tier(2.0, 2.0), 2.0, Costs(2.0, 2.0, 2.0), 2.0, 0.5)
    assert hardware_of(CALIBRATION, 7.0).link == Tier(2.0, 7.0)
