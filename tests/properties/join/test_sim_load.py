"""Load, bandwidth, latency and size of a chain in time (docs/join.md, sections 7 and 8)."""

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest

from model.checking.claims import Outcome
from model.join.claims import judge
from model.vocabulary.join import Match
from sim.join import ChainRun, from_settings
from sim.kernel.link import Tiers

CALM: Mapping[str, float | str] = {
    "scenario": "steady",
    "seconds": 20,
    "rate_r_hz": 100,
    "rate_s_hz": 100,
    "window_us": 2_000_000,
    "blocks": "fixed",
    "capacity": 1_000,
    "tiers": "node",
    "speeds": "1",
    "trigger_interval_us": "never",
}
"""Far from any limit; all arrivals are one epoch, which ends with the last of them."""


def run(**settings: object) -> ChainRun:
    given = {**CALM, **settings}
    return _run(tuple([(key, str(given[key])) for key in sorted(given)]))


@cache
def _run(settings: tuple[tuple[str, str], ...]) -> ChainRun:
    """Run once for all tests that look at the same run."""
    return from_settings(dict(settings), seed=1)


def figure(timed: ChainRun, name: str) -> float:
    return float(timed.summary[name])


def results(timed: ChainRun) -> list[tuple[str, int, int]]:
    """Return the matches without their epochs."""
    return sorted(match[:3] for match in timed.trace.of(Match))


def assert_all_hold(timed: ChainRun) -> None:
    for verdict in judge(timed.workload, timed.trace).verdicts:
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.witness)
    assert figure(timed, "results") > 0


# ------------------------------------------------------------------------------------------ load

HEAVY: Mapping[str, float | str] = {
    "rate_r_hz": 400,
    "rate_s_hz": 40,
    "window_us": 5_000_000,
    "seconds": 12,
    "workers": 8,
    "capacity": 400,
    "block_size": 50,
    "control_us": 100_000,
    "hint_us": 10_000,
}
"""Mean utilisation about 0.7, nearly all of it R; one epoch."""


OVERLOAD: Mapping[str, float | str] = {"capacity": 105, "seconds": 30}


@pytest.mark.parametrize("rule", ["linear", "quadratic"])
def test_results_are_exact_over_what_was_not_shed(rule: str) -> None:
    timed = run(**OVERLOAD, shed=rule)
    assert figure(timed, "shed") > 0
    assert figure(timed, "arrivals") == figure(timed, "shed") + len(timed.workload.arrivals)
    assert_all_hold(timed)
    unshed = run(**OVERLOAD)
    assert figure(timed, "mean_utilisation") < figure(unshed, "mean_utilisation")


def test_nothing_is_shed_below_the_limit() -> None:
    timed = run(capacity=200, shed="linear")
    assert 0.4 < figure(timed, "peak_utilisation") <= 0.8
    assert figure(timed, "shed") == 0


def test_shedding_is_switched_less_often_with_a_margin() -> None:
    def switches(margin: float) -> int:
        timed = run(**OVERLOAD, shed="linear", base=0.2, margin=margin)
        sheds = timed.series["shed"] > 0
        return int((sheds[1:] != sheds[:-1]).sum())

    assert switches(0.0) > 2 * switches(0.1) > 0


CASE_STUDY: Mapping[str, float | str] = {
    "scenario": "doubling",
    "seconds": 1_200,
    "rate_r_hz": 5,
    "rate_s_hz": 5,
    "window_us": 16_000_000,
    "capacity": 100,
    "scale": "yes",
    "blocks": "adaptive",
    "intake_us": 200_000,
    "trigger_interval_us": 5_000_000,
}
"""Twice the load in the second quarter of twenty minutes; four workers at half of tau1."""


def test_four_workers_become_eight_and_four_again() -> None:
    timed = run(**CASE_STUDY)
    assert timed.summary["resized"] == "4 to 8, 8 to 4"
    assert_all_hold(timed)
    minutes, workers = timed.series["time_us"] / 60e6, timed.series["workers"]
    out, back = minutes[workers == 8][0], minutes[workers == 8][-1]
    assert 5 + 0.5 <= out <= 6.5, "the load doubles after 5 minutes, for 30 s it is watched"
    assert 10 + 5 <= back <= 16.5, "it halves after 10 minutes, for 5 min it is watched"


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_the_largest_sustainable_rate_grows_with_the_workers(workers: int) -> None:
    def shed(rate_hz: float) -> float:
        size = {"workers": workers, "rate_r_hz": rate_hz, "rate_s_hz": rate_hz}
        timed = run(**size, shed="linear", capacity=100, block_size=8, seconds=15)
        return figure(timed, "shed")

    # 2 * rate * window tuples are held by m workers of 100, up to tau1 = 0.8 each.
    largest_hz = 0.8 * 100 * workers / (2 * 2.0)
    assert shed(0.8 * largest_hz) == 0
    assert shed(1.3 * largest_hz) > 0


# ----------------------------------------------------------------------------- latency, pausing


def test_results_come_later_over_farther_tiers() -> None:
    latencies = [
        figure(
            run(
                tiers=tier,
                window_us=100_000,
                lateness_us=50_000,
                rate_r_hz=200,
                rate_s_hz=200,
                seconds=2,
                block_size=1,
                eps=1_000,
                intake_us=1_000,
                hint_us=2_000,
            ),
            "mean_latency_us",
        )
        for tier in Tiers._fields
    ]
    assert latencies == sorted(latencies)
    assert latencies[3] > latencies[0] + Tiers().elsewhere.latency_us


def test_a_pause_of_the_intake_keeps_the_state_small() -> None:
    racing = {"scenario": "racing", "seconds": 40}
    free, paused = run(**racing), run(**racing, pace_us=100_000)
    assert figure(free, "intake_pauses") == 0
    assert figure(paused, "intake_pauses") > 0
    assert 2 * figure(paused, "peak_held") < figure(free, "peak_held")
    assert results(free) == results(paused)


def test_a_failure_costs_time_and_no_result() -> None:
    epochs = {"trigger_interval_us": 10_000_000}
    calm, failed = run(**epochs), run(**epochs, faults="fail worker-0 15000000 1000000")
    assert figure(failed, "failures") == 1
    assert figure(failed, "arrivals_taken_again") > 0
    assert results(calm) == results(failed)
    # The formula does not know of tuples that cross twice.
    assert "bytes_per_s_bound" in calm.summary
    assert "bytes_per_s_bound" not in failed.summary
    assert np.nanmax(failed.series["waiting"]) > np.nanmax(calm.series["waiting"])
