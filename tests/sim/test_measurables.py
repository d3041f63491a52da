"""Measurables other than timed runs, against results that need no simulation."""

import math

import numpy as np
import pytest

from model.vocabulary import JoinConfig
from model.vocabulary.join import Equi
from model.vocabulary.settings import read_settings
from sim.join.batches import BatchSettings, simulate_batches
from sim.join.measurables import RATE_SETTINGS, in_batches, lag_share, largest_rate
from sim.join.scenarios import Rates, waves
from sim.join.settings import from_settings as run_chain
from sim.join.tuning import ChainTuning, Costs
from sim.kernel.distributions import Constant
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.source import Source
from sim.script.measurables import MEASURABLES as OF_SCRIPTS
from sim.script.measurables import PLACEMENT, measure_placements
from sim.sweep.measurable import columns_at, measurable, measurables, rooms

CHAIN = {
    "scenario": "steady",
    "rate_r_hz": "40",
    "rate_s_hz": "40",
    "seconds": "6",
    "window_us": "1000000",
    "workers": "3",
    "tiers": "node",
    "speeds": "1",
    "blocks": "fixed",
    "block_size": "8",
    "capacity": "10000",
}


@pytest.mark.parametrize("room", rooms())
def test_the_default_of_every_setting_is_allowed_and_reads_back(room: str) -> None:
    for known in measurables(room).values():
        assert known.settings
        for name, each in known.settings.items():
            assert (each.name, each.help != "") == (name, True)
            assert each.read(each.write(each.default)) == each.default


# --------------------------------------------------------------------------------- over time


def test_a_moment_is_the_tenth_of_a_run_that_ends_there() -> None:
    series = {
        "time_us": np.arange(1.0, 101.0),
        "value": np.arange(1.0, 101.0),
        "seen": np.array([math.nan] * 99 + [7.0]),
    }
    assert columns_at(series, 0.1, 100.0)["value"] == pytest.approx(5.5)
    assert columns_at(series, 0.3, 100.0)["value"] == pytest.approx(25.5)
    assert columns_at(series, 1.0, 100.0) == {"time_us": 95.5, "value": 95.5, "seen": 7.0}
    assert columns_at(series, 0.5, 100.0)["seen"] is None


@pytest.mark.parametrize("room", ["join", "grouping"])
def test_several_moments_of_a_run_are_those_that_one_alone_gives(room: str) -> None:
    known = measurable(room, "moments")
    settings = {"join": CHAIN, "grouping": {"tuples": "2000"}}[room]
    several = known.fans["at"](settings, 1, ["0.5", "1"])
    assert several == [known.measure({**settings, "at": at}, 1) for at in ("0.5", "1")]
    assert several[0] != several[1]
    (second,) = known.fans["at_s"](settings, 1, ["0.1"])
    assert second == known.measure({**settings, "at_s": "0.1"}, 1)


# --------------------------------------------------------------------------------- the streams


def test_waves_have_the_requested_rate_on_average() -> None:
    plan = waves(Rates(100, 50, 40, amplitude=0.5, wave_us=10_000_000))
    events = [source.events for source in plan.sources]  # type: ignore[union-attr]  # it is of that kind here
    assert (sum(events[::2]), sum(events[1::2])) == (4_000, 2_000)
    assert set(events[::2]) == {750, 250}


# --------------------------------------------------------------------------------- chains


def test_blocks_of_one_tuple_have_one_tuple_on_average() -> None:
    found = run_chain({**CHAIN, "block_size": "1"}, 0).summary
    assert found["mean_block"] == 1
    assert float(found["hint_bytes_per_s"]) > 0


def test_a_chain_lags_by_the_work_that_it_would_leave_to_the_flush() -> None:
    """Two workers need 2.8 s for pairs that come in 2 s; small blocks hold most of them up."""
    slow = {"workers": "2", "seconds": "2", "window_us": "500000", "rate_r_hz": "450"}
    slow |= {"rate_s_hz": "450", "predicate": "equi", "keys": "64", "zipf": "0"}
    slow |= {"comparison_us": "1000", "lateness_us": "100000", "block_size": "2"}
    asked = {**CHAIN, **slow, "trigger_interval_us": "never"}
    assert lag_share(read_settings(asked, RATE_SETTINGS), 0) > 0.2


def test_batches_find_what_a_uniform_cut_leaves() -> None:
    """A batch of B has both of two tuples t apart with probability 1 - t/B.

    With t uniform up to a window of W = B that is half of the pairs.
    """
    asked = {**CHAIN, "seconds": "60", "predicate": "equi", "batch_us": "1000000"}
    assert in_batches(asked, 0)["found_share"] == pytest.approx(0.5, abs=0.02)


SAME = JoinConfig(1_000_000, (("same", Equi("key")),), workers=2)


def test_jobs_take_the_time_of_their_largest_task() -> None:
    source = Source(4, Constant(1_000), keys=("a",))
    plan = Plan(
        (source, source),
        cluster=Cluster((Worker(1.0), Worker(0.5)), Constant(100.0)),
        tuning=ChainTuning(Costs(message_us=7.0, comparison_us=10.0, result_us=1.0)),
    )
    run = simulate_batches(plan, SAME, BatchSettings(batch_us=10_000, job_us=500.0), 0)
    # All 8 tuples are in the first batch. The slower worker maps half of them; the faster one has
    # the only key, and finds 16 pairs in 16 comparisons.
    assert run.over_us == [10_000 + 500 + 2 * (7 + 4 * 100) + (7 + 8 * 100 + 16 * 11)]
    assert run.lag_us == run.over_us[0] - run.span_us


def test_a_job_begins_when_the_one_before_it_is_over() -> None:
    source = Source(40, Constant(1_000), keys=("a",))
    cluster = Cluster((Worker(), Worker()), Constant(0.0))
    plan = Plan((source, source), cluster=cluster, tuning=ChainTuning(Costs(0.0, 0.0, 0.0)))
    run = simulate_batches(plan, SAME, BatchSettings(batch_us=10_000, job_us=25_000.0), 0)
    # A job takes 25 ms, a batch 10 ms: no job but the first one waits for its batch.
    assert len(run.over_us) >= 4
    assert run.over_us == [10_000 + 25_000 * (job + 1) for job in range(len(run.over_us))]


def test_jobs_wait_for_each_other() -> None:
    asked = {**CHAIN, "predicate": "equi", "batch_us": "1000000", "limit": "batches-lag"}
    costly = {**asked, "limit_share": "0.05", "tuple_us": "1000", "message_us": "0"}
    found = largest_rate({**costly, "comparison_us": "0", "result_us": "0", "zipf": "0"}, 0)
    # A tuple costs 1 ms in either stage, spread over three workers; the keys, 8 by 3, are not
    # spread evenly: 3 keys of 8 instead of 8/3. That is 333 + 375 us, so 1,412 a second.
    assert float(found["largest_rate_hz"]) == pytest.approx(1_412 / 2, rel=0.12)


# ------------------------------------------------------------------------------------------ scripts


SMALL_SCRIPTS = {"sensors": "8", "rates_hz": "5", "seconds": "6", "workers": "2"}
SHARED = {"scenario": "shared", "sensors": "16", "rates_hz": "20"}
SENSOR_HZ = 72_000
"""Tuples of one sensor of 20 Hz in an hour."""


def test_each_named_placement_has_its_figures() -> None:
    ways = ["by-unit", "by-sensor"]
    found = measure_placements(SMALL_SCRIPTS, 3, ways)
    assert [each["placement"] for each in found] == ways
    alone = [OF_SCRIPTS["sim"].measure({**SMALL_SCRIPTS, PLACEMENT: way}, 3) for way in ways]
    assert list(found) == alone


def test_a_union_is_computed_where_all_of_it_is_sent() -> None:
    # Of 16 sensors eight are in one union: whole, one worker has them, and nothing is sent twice.
    found = OF_SCRIPTS["communication"].measure({**SHARED, "together": "8"}, 1)
    assert found["predicted_per_hour"] == 16 * SENSOR_HZ
    assert found["largest_over_even"] == 2
    baseline = {**SHARED, "together": "8", PLACEMENT: "by-sensor"}
    sent = OF_SCRIPTS["communication"].measure(baseline, 1)["predicted_per_hour"]
    assert sent == 16 * SENSOR_HZ / float(str(found["sent_over_baseline"]))


def test_lines_are_counted() -> None:
    found = OF_SCRIPTS["lines"].measure({"workflow": "printed"}, 1)
    # Seven statements; two imports, a function of four lines and one of eight.
    assert (found["script_lines"], found["program_lines"]) == (7, 2 + 4 + 8)
    for style, program_lines in (("alone", 10 * 14), ("together", 2 + 4 + 10 * 8)):
        many = {"workflow": "printed", "queries": "10", "style": style}
        found = OF_SCRIPTS["lines"].measure(many, 1)
        assert (found["script_lines"], found["program_lines"]) == (10 * 7, program_lines)
    every = OF_SCRIPTS["lines"].measure({}, 1)
    assert every["workflows"] == 6
    with pytest.raises(ValueError, match="workflow is 'printd'"):
        OF_SCRIPTS["lines"].measure({"workflow": "printd"}, 1)


def test_windows_that_share_panes_keep_less() -> None:
    small = {"scenario": "spans", "sensors": "1", "rates_hz": "2", "seconds": "24"}
    kept = OF_SCRIPTS["memory"].measure({**small, "disorder": "calm", "lateness_us": "0"}, 0)
    # A tuple every 0.5 s, panes of a second: a window of 10 s every second needs up to ten of them
    # and serves all others; 2 + 1 + 3 + 10 + 2 panes at most if each window has its own.
    names = ("shared", "own", "tuple")
    shared, own, tuples = (float(str(kept[f"{name}_numbers"])) for name in names)
    assert 6 * 8 <= shared <= 6 * 11
    assert shared < own <= 6 * 18
    assert tuples <= 2 * 2 * (2 + 4 + 6 + 10 + 10)
