"""Named streams, distributions, and disorder: what is drawn, and that nothing else moves."""

from itertools import islice
from math import sqrt

import numpy as np
import pytest

from sim.kernel.disorder import (
    Burst,
    Disturbance,
    Gap,
    IntArray,
    Regime,
    disturb,
    present,
)
from sim.kernel.distributions import (
    Constant,
    Distribution,
    Exponential,
    Lognormal,
    Mixture,
    Pareto,
    Sum,
    Uniform,
    draw_us,
    iterate_samples,
    mean_us,
    sample_us,
)
from sim.kernel.seeds import Seeds

# ------------------------------------------------------------------------------------ named streams


def first_of(seed: int, name: str) -> list[int]:
    return list(Seeds(seed).stream(name).integers(0, 1_000_000, 4))


def test_a_stream_depends_on_seed_and_name_alone() -> None:
    alone = first_of(7, "network")
    crowded = Seeds(7)
    crowded.stream("another").random(1_000)
    assert crowded.stream("network").integers(0, 1_000_000, 4).tolist() == alone
    assert first_of(8, "network") != alone
    assert first_of(7, "cluster") != alone


def test_numbers_do_not_change_between_versions_and_platforms() -> None:
    assert first_of(7, "network") == [954748, 602447, 413026, 118160]


def test_a_name_is_given_once() -> None:
    seeds = Seeds(1)
    seeds.stream("service")
    with pytest.raises(ValueError, match="'service' is in use"):
        seeds.stream("service")


# ------------------------------------------------------------------------------------ distributions


ALL: tuple[Distribution, ...] = (
    Constant(3.0),
    Uniform(1.0, 3.0),
    Exponential(5.0),
    Pareto(2.0, 6.0),
    Lognormal(4.0, 0.5),
    Mixture(0.25, Exponential(8.0)),
    Sum((Constant(1.0), Exponential(2.0))),
)


@pytest.mark.parametrize("distribution", ALL, ids=lambda one: type(one).__name__)
def test_sample_mean_is_the_mean(distribution: Distribution) -> None:
    samples = sample_us(distribution, np.random.default_rng(1), 100_000)
    # Six standard errors: a correct sampler fails for one seed in about 10^9.
    assert abs(samples.mean() - mean_us(distribution)) <= 6 * samples.std() / sqrt(len(samples))
    assert samples.min() >= 0


@pytest.mark.parametrize("distribution", ALL, ids=lambda one: type(one).__name__)
def test_endless_and_named_samples_are_the_samples(distribution: Distribution) -> None:
    n = 256
    expected = sample_us(distribution, Seeds(3).stream("x"), n).tolist()
    assert list(islice(iterate_samples(distribution, Seeds(3).stream("x")), n)) == expected
    assert draw_us(distribution, Seeds(3), "x", n).tolist() == expected


def test_another_share_changes_only_choices_of_the_mixture() -> None:
    def draw(share: float) -> list[float]:
        mixture = Mixture(share, Exponential(9.0), Exponential(1.0))
        return list(sample_us(mixture, np.random.default_rng(5), 1_000))

    few, many = draw(0.1), draw(0.2)
    changed = sum(a != b for a, b in zip(few, many, strict=True))
    assert 50 < changed < 150


# ----------------------------------------------------------------------------------------- disorder


TIMES: IntArray = np.arange(10, dtype=np.int64) * 100


def delays(*disturbances: Disturbance) -> list[float]:
    return list(disturb(0, np.full(len(TIMES), 10.0), TIMES, disturbances, Seeds(1)))


BURST = Constant(50.0)


@pytest.mark.parametrize(
    ("disturbances", "expected"),
    [
        ([Burst(200, 300, 1.0, BURST)], [10] * 2 + [60] * 3 + [10] * 5),
        ([Burst(200, 300, 1.0, BURST, every_us=400)], [10] * 2 + [60] * 3 + [10] + [60] * 3 + [10]),
        # A regime replaces the ordinary delay, and a later one the earlier.
        (
            [Regime(300, Constant(20.0)), Regime(700, Constant(30.0))],
            [10] * 3 + [20] * 4 + [30] * 3,
        ),
        ([Burst(0, 1_000, 1.0, BURST, source=2)], [10] * 10),
        ([Burst(0, 1_000, 1.0, BURST, source=0)], [60] * 10),
    ],
)
def test_delays_of_a_source(disturbances: list[Disturbance], expected: list[int]) -> None:
    assert delays(*disturbances) == expected


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
