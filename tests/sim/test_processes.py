"""The disorder processes: labelled, disordered, and independent of the values where they say so."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from model.vocabulary import Event
from sim.kernel.disorder import measure
from sim.kernel.distributions import FloatArray
from sim.kernel.log import simulate_arrivals
from sim.kernel.source import Source
from sim.scenarios import DEPENDENT, INDEPENDENT, MINUTE_US, PROCESSES, SECOND_US
from sim.windows.scenarios import SCENARIOS

TUPLES = 20_000
SEED = 3


def events_of(name: str) -> tuple[Event, ...]:
    plan = PROCESSES[name](SEED)
    sources = tuple(replace(s, events=TUPLES) for s in plan.sources if isinstance(s, Source))
    return simulate_arrivals(replace(plan, sources=sources), SEED).events


def delays_us(events: tuple[Event, ...]) -> FloatArray:
    return np.array([event.arrival_us - event.event_time_us for event in events], dtype=np.float64)


def test_there_are_enough_of_them_and_the_simulation_knows_them() -> None:
    assert len(INDEPENDENT) >= 6
    assert DEPENDENT not in INDEPENDENT
    assert set(PROCESSES) <= set(SCENARIOS)
    assert all(plan(0).name == f"{name}, simulated" for name, plan in PROCESSES.items())


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


def test_the_scenario_bursts_delays_a_fifth_by_a_second_and_one_source_by_three() -> None:
    plan = SCENARIOS["bursts"](SEED)
    events = simulate_arrivals(plan, SEED).events
    at_s = np.array([event.event_time_us - plan.epoch_us for event in events]) / SECOND_US
    is_held = delays_us(events) > 2 * SECOND_US
    first, second = (is_held[(at_s >= begin) & (at_s < end)] for begin, end in ((30, 50), (80, 90)))
    # Exponential delays exceed 2 s with probability exp(-2 s / mean).
    assert first.mean() == pytest.approx(np.exp(-2) / 5, rel=0.3)
    assert second.mean() == pytest.approx(np.exp(-2 / 3) / 4, rel=0.2)


def test_bursts_come_again_and_regimes_change() -> None:
    for name, first_us, period_us in (
        ("burst-train", MINUTE_US, 2 * MINUTE_US),
        ("regimes", 5 * MINUTE_US, 10 * MINUTE_US),
    ):
        events = events_of(name)
        epoch_us = PROCESSES[name](SEED).epoch_us
        at_us = np.array([event.event_time_us - epoch_us for event in events])
        length_us = 10 * SECOND_US if name == "burst-train" else 5 * MINUTE_US
        within = (at_us >= first_us) & ((at_us - first_us) % period_us < length_us)
        delay_us = delays_us(events)
        assert delay_us[within].mean() > 5 * delay_us[~within].mean()
        assert np.unique((at_us[within] - first_us) // period_us).size > 1
