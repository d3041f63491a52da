from collections.abc import Callable
from itertools import islice
from math import inf, sqrt

import numpy as np
import pytest

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


def test_pareto_tail() -> None:
    samples = sample_us(Pareto(10.0, 2.0), np.random.default_rng(2), 100_000)
    assert samples.min() >= 10.0
    share = float((samples > 100.0).mean())
    assert abs(share - 0.01) < 6 * sqrt(0.01 * 0.99 / len(samples))
    assert mean_us(Pareto(10.0, 1.0)) == inf
    assert mean_us(Mixture(0.0, Pareto(10.0, 1.0), Constant(2.0))) == 2.0


def test_another_share_changes_only_choices_of_the_mixture() -> None:
    def draw(share: float) -> list[float]:
        mixture = Mixture(share, Exponential(9.0), Exponential(1.0))
        return list(sample_us(mixture, np.random.default_rng(5), 1_000))

    few, many = draw(0.1), draw(0.2)
    changed = sum(a != b for a, b in zip(few, many, strict=True))
    assert 50 < changed < 150


def test_randomness_needs_a_stream() -> None:
    assert list(islice(iterate_samples(Constant(2.0), None), 2)) == [2.0, 2.0]
    with pytest.raises(ValueError, match="needs a random stream"):
        iterate_samples(Exponential(1.0), None)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Constant(-1), "Constant.us is -1; it must be finite and at least 0"),
        (lambda: Constant(inf), "Constant.us is inf"),
        (lambda: Uniform(-1, 2), "Uniform.low_us is -1"),
        (lambda: Uniform(3, 2), "Uniform.high_us is 2"),
        (lambda: Exponential(0), "Exponential.mean_us is 0"),
        (lambda: Pareto(0, 1), "Pareto.minimum_us is 0"),
        (lambda: Pareto(1, -1), "Pareto.shape is -1"),
        (lambda: Lognormal(0, 1), "Lognormal.median_us is 0"),
        (lambda: Lognormal(1, -1), "Lognormal.sigma is -1"),
        (lambda: Mixture(1.5, Constant(1)), "Mixture.share is 1.5"),
    ],
)
def test_bad_parameters_are_named(build: Callable[[], Distribution], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
