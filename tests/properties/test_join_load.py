"""Load of a chain (docs/join.md, sections 7 and 8): what is shed, who comes and goes, and when.

Timed runs are judged moment by moment.
"""

from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from statistics import fmean

import numpy as np
import pytest

from model.checking.claims import Outcome
from model.join import control
from model.join.claims import judge
from model.vocabulary.join import STREAMS
from sim.join import ChainRun, from_settings
from sim.join.load import Sample
from spark_impl.join.admission import draw

# ------------------------------------------------------------------------------------- timed runs

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


def assert_all_hold(timed: ChainRun) -> None:
    for verdict in judge(timed.workload, timed.trace).verdicts:
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.witness)
    assert figure(timed, "results") > 0


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
TAU1, BASE, MARGIN = 0.8, 0.2, 0.1
SETTLED_US = 6_500_000, 11_500_000
"""Period in which the window of the heavy run is full and its tuples are spread.

Before it, the first tuples to expire leave neighbours that differ by more than a block.
"""


# --------------------------------------------------------------------------------------- shedding


def test_there_is_no_false_shedding() -> None:
    timed = run(**HEAVY, blocks="adaptive")
    first_us, last_us = SETTLED_US
    settled = [each for each in timed.samples if first_us <= each.at_us <= last_us]
    assert any(TAU1 / 2 < each.mean < each.fullest for each in settled)
    capacity = int(HEAVY["capacity"])
    for each in settled:
        if 2 * capacity * (TAU1 - each.mean) >= each.workers - 1:  # a block has a tuple at least
            assert each.fullest <= TAU1 + 1e-9, each


def test_nothing_is_shed_below_the_limit() -> None:
    timed = run(capacity=200, shed="linear")
    assert 0.4 < figure(timed, "peak_utilisation") <= 0.8
    assert figure(timed, "shed") == 0


def asked_share(before: Sample | None, smoothed: float, power: int) -> float:
    """Return the share to shed after a moment, by the formula of section 8."""
    if smoothed > TAU1:
        x = (min(smoothed, 1.0) - TAU1) / (1 - TAU1)
        return float(BASE + (1 - BASE) * x**power)
    goes_on = before is not None and before.share > 0 and smoothed > TAU1 - MARGIN
    return BASE if goes_on else 0.0


@pytest.mark.parametrize(("rule", "power"), [("linear", 1), ("quadratic", 2)])
def test_the_requested_share_is_shed_and_results_are_exact_over_the_rest(
    rule: str, power: int
) -> None:
    timed = run(**OVERLOAD, shed=rule, base=BASE, margin=MARGIN)
    before: Sample | None = None
    for moment in timed.samples:
        asked = asked_share(before, moment.smoothed, power)
        assert moment.share == pytest.approx(asked, abs=1e-9), moment
        before = moment
    moments = timed.samples
    assert any(BASE < moment.share < 1 for moment in moments)
    assert any(one.share > 0 == other.share for one, other in pairwise(moments)), "it never ends"
    last_us = timed.workload.arrivals[-1].arrival_us
    due = fmean(each.share for each in moments if each.at_us <= last_us) * figure(timed, "arrivals")
    assert figure(timed, "shed") == pytest.approx(due, rel=0.1)
    assert figure(timed, "arrivals") == figure(timed, "shed") + len(timed.workload.arrivals)
    assert_all_hold(timed)


def test_spark_s_workers_shed_what_the_model_sheds() -> None:
    numbers = [0, 1, 2, 3, 1 << 31, (1 << 40) + 7, (1 << 63) - 1]
    for stream in STREAMS:
        expected = [control.draw(stream, number) for number in numbers]
        assert draw(stream, np.array(numbers, np.int64)).tolist() == expected


# --------------------------------------------------------------------------------------- workers

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


# ------------------------------------------------------------------------------ bytes and latency


def test_bytes_are_those_of_the_formula() -> None:
    timed = run(block_size=4)
    assert figure(timed, "mean_block") > 0.9 * 4
    # A run may stay below it, because tuples that are dropped do not go all the way.
    share = figure(timed, "bytes_per_s") / figure(timed, "bytes_per_s_bound")
    assert 0.95 <= share <= 1 + 1e-9


def test_queries_share_the_bandwidth_and_chains_do_not() -> None:
    together = {count: run(queries=count) for count in (1, 4)}
    assert found(together[4]) > found(together[1])
    # Timing may change a few blocks.
    assert sent(together[4]) == pytest.approx(sent(together[1]), rel=0.05)
    chains = [run(queries=1, eps=50 + n) for n in range(4)]
    assert sum(map(found, chains)) == found(together[4])
    assert sum(map(sent, chains)) == pytest.approx(4 * sent(together[4]), rel=0.01)


def sent(timed: ChainRun) -> int:
    span_us = timed.workload.arrivals[-1].arrival_us - timed.plan.epoch_us
    return round(figure(timed, "bytes_per_s") * span_us / 1e6)


def found(timed: ChainRun) -> int:
    return int(figure(timed, "results"))
