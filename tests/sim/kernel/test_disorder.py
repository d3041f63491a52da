import numpy as np
import pytest

from model.vocabulary import Event
from sim.kernel.disorder import (
    Burst,
    Disorder,
    Disturbance,
    Gap,
    IntArray,
    Regime,
    Straggler,
    check_disturbance,
    disturb,
    measure,
    present,
)
from sim.kernel.distributions import Constant, Exponential
from sim.kernel.seeds import Seeds

TIMES: IntArray = np.arange(10, dtype=np.int64) * 100


def delays(*disturbances: Disturbance, source: int = 0, seed: int = 1) -> list[float]:
    ordinary = np.full(len(TIMES), 10.0)
    return list(disturb(source, ordinary, TIMES, disturbances, Seeds(seed)))


def test_no_disturbance() -> None:
    assert delays() == [10.0] * 10


def test_a_burst_delays_what_is_created_in_it() -> None:
    expected = [10.0] * 2 + [60.0] * 3 + [10.0] * 5
    assert delays(Burst(200, 300, 1.0, Constant(50.0))) == expected


def test_a_burst_may_come_again_and_again() -> None:
    again = Burst(200, 200, 1.0, Constant(50.0), every_us=300)
    expected = [10.0] * 2 + [60.0] * 2 + [10.0] + [60.0] * 2 + [10.0] + [60.0] * 2
    assert delays(again) == expected


def test_a_burst_hits_its_share() -> None:
    times = np.arange(10_000, dtype=np.int64)
    burst = Burst(0, 10_000, 0.3, Constant(50.0))
    hit = disturb(0, np.zeros(10_000), times, (burst,), Seeds(1)) > 0
    assert abs(hit.mean() - 0.3) < 6 * np.sqrt(0.3 * 0.7 / 10_000)  # six standard errors


def test_a_regime_replaces_the_ordinary_delay_and_a_later_one_the_earlier() -> None:
    changed = delays(Regime(300, Constant(20.0)), Regime(700, Constant(30.0)))
    assert changed == [10.0] * 3 + [20.0] * 4 + [30.0] * 3


def test_a_straggler_is_one_source() -> None:
    straggler = Straggler(source=1, factor=3.0, extra_us=5)
    assert delays(straggler) == [10.0] * 10
    assert delays(straggler, source=1) == [35.0] * 10


def test_one_source_or_all() -> None:
    burst = Burst(0, 1_000, 1.0, Constant(50.0), source=2)
    assert delays(burst) == [10.0] * 10
    assert delays(burst, source=2) == [60.0] * 10


def test_a_gap_has_no_tuples() -> None:
    gaps = (Gap(100, 200), Gap(500, 100, source=3))
    assert np.flatnonzero(~present(0, TIMES, gaps)).tolist() == [1, 2]
    assert np.flatnonzero(~present(3, TIMES, gaps)).tolist() == [1, 2, 5]
    assert delays(*gaps) == [10.0] * 10


def test_a_disturbance_moves_no_number_of_another() -> None:
    first = Burst(0, 500, 0.5, Exponential(100.0))
    second = Burst(500, 500, 0.5, Exponential(100.0))
    both = delays(first, second)
    assert both[:5] == delays(first)[:5]
    longer = Burst(500, 400, 0.5, Exponential(70.0))
    assert delays(first, longer)[:5] == both[:5]


def event(seq: int, event_time_us: int, arrival_us: int, key: str = "a") -> Event:
    return Event(seq, seq, key, event_time_us, 1.0, arrival_us)


def test_measuring() -> None:
    arrivals = (
        event(0, 100, 110),
        event(1, 300, 320, "b"),
        event(2, 200, 330),  # late, but not behind its own key
        event(3, 300, 340, "b"),  # a tie is not late
        event(4, 150, 350),  # late within its key, too
    )
    # Delays 10, 20, 130, 40, 200: the 99% point lies 4% of the way back from 200 to 130.
    assert measure(arrivals) == Disorder(5, 0.4, 0.2, 40.0, 200.0 - 0.04 * 70.0, 200.0)
    assert measure(()).tuples == 0


@pytest.mark.parametrize(
    ("disturbance", "message"),
    [
        (Burst(-1, 1, 0.5, Constant(1)), r"burst.start_us is -1; it must be at least 0"),
        (Burst(0, 0, 0.5, Constant(1)), r"burst.length_us is 0; it must be above 0"),
        (Burst(0, 1, 1.5, Constant(1)), r"burst.share is 1.5; it must be between 0 and 1"),
        (Burst(0, 1, 0.5, Constant(1), every_us=0), r"burst.every_us is 0; it must be above 0"),
        (Gap(0, 1, source=2), r"gap.source is 2; it must be a source, 0..1"),
        (Straggler(0, factor=0), r"straggler.factor is 0; it must be above 0"),
        (Straggler(0, extra_us=-1), r"straggler.extra_us is -1; it must be at least 0"),
        (Regime(-5, Constant(1)), r"regime.start_us is -5; it must be at least 0"),
    ],
)
def test_bad_values_are_named(disturbance: Disturbance, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_disturbance(disturbance, sources=2)
