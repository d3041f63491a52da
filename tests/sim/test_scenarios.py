"""The scenarios: figures that they are fitted to, and what delays follow."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats

from model.vocabulary import Event
from sim.kernel.distributions import FloatArray
from sim.kernel.log import simulate_arrivals
from sim.kernel.source import Source
from sim.scenarios import PROCESSES, SECOND_US, umts
from sim.sweep.statistics import mean_interval
from tests.sim.disorder import DEPENDENT, INDEPENDENT, Disorder, measure

SEEDS = range(20)


DEVICES = [8, *(pytest.param(each, marks=pytest.mark.long) for each in (7, 9))]


@cache
def runs(devices: int) -> list[Disorder]:
    """Simulate a number of devices, one run per seed."""
    return [measure(simulate_arrivals(umts(seed, devices), seed).events) for seed in SEEDS]


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize(
    ("name", "target_us", "tolerance"),
    [
        ("delay_p50_us", 107_000, 0.10),
        ("delay_p99_us", 306_000, 0.05),
        ("delay_max_us", 4_700_000, 0.20),
    ],
)
def test_delays(devices: int, name: str, target_us: float, tolerance: float) -> None:
    """The mean over seeds is within the tolerance of the target, with confidence 0.999.

    The tolerances are how far the three recorded sessions lie from each other.
    """
    values = [getattr(run, name) for run in runs(devices)]
    interval = mean_interval(values, 0.999)
    assert target_us * (1 - tolerance) <= interval.low, interval
    assert interval.high <= target_us * (1 + tolerance), interval


@pytest.mark.parametrize("devices", DEVICES)
def test_lateness(devices: int) -> None:
    shares = [run.late_share for run in runs(devices)]
    assert all(0.16 <= share <= 0.34 for share in shares), shares
    assert all(run.late_share_within_keys <= 0.0007 for run in runs(devices))


# ------------------------------------------------------------------------------- disorder processes


TUPLES = 20_000
SEED = 3


def events_of(name: str) -> tuple[Event, ...]:
    plan = PROCESSES[name](SEED)
    sources = tuple(replace(s, events=TUPLES) for s in plan.sources if isinstance(s, Source))
    return simulate_arrivals(replace(plan, sources=sources), SEED).events


def delays_us(events: tuple[Event, ...]) -> FloatArray:
    return np.array([event.arrival_us - event.event_time_us for event in events], dtype=np.float64)


@pytest.mark.parametrize("name", INDEPENDENT)
def test_tuples_are_late_and_values_have_nothing_to_do_with_it(name: str) -> None:
    events = events_of(name)
    assert measure(events).late_share > 0.1
    found = stats.spearmanr(delays_us(events), [event.value for event in events])
    # 20,000 independent pairs: six processes, and a false alarm once in 10,000 runs of all.
    assert found.pvalue > 1e-4 / len(INDEPENDENT)


def test_delays_follow_values_in_the_dependent_process() -> None:
    events = events_of(DEPENDENT)
    delay_us, value = delays_us(events), np.array([event.value for event in events])
    assert stats.spearmanr(delay_us, value).statistic > 0.9
    # Without the value's part an exponential delay with mean 0.5 s is left.
    left = delay_us - value * 10 * SECOND_US / 1_000_000
    assert left.mean() == pytest.approx(SECOND_US / 2, rel=0.05)
