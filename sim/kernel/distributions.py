"""Distributions of times as data (service times, intervals, delays), and draws from them.

Every parameter that ends in ``_us`` is in microseconds; samples are float microseconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from math import exp, inf, log
from typing import Any, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from model.vocabulary.settings import require
from sim.kernel.seeds import Seeds

FloatArray: TypeAlias = NDArray[np.float64]
AnyArray: TypeAlias = NDArray[Any]
"""Numbers or strings."""

_BLOCK = 256
"""Number of samples that :func:`iterate_samples` draws at a time."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant time."""

    us: float

    def __post_init__(self) -> None:
        require(0 <= self.us < inf, "Constant.us", self.us, "finite and at least 0")


@dataclass(frozen=True, slots=True)
class Uniform:
    """A uniform distribution from ``low_us`` to ``high_us``."""

    low_us: float
    high_us: float

    def __post_init__(self) -> None:
        require(0 <= self.low_us < inf, "Uniform.low_us", self.low_us, "finite and at least 0")
        good = self.low_us <= self.high_us < inf
        require(good, "Uniform.high_us", self.high_us, "finite and at least low_us")


@dataclass(frozen=True, slots=True)
class Exponential:
    """A memoryless distribution with mean ``mean_us``."""

    mean_us: float

    def __post_init__(self) -> None:
        require(0 < self.mean_us < inf, "Exponential.mean_us", self.mean_us, "finite and above 0")


@dataclass(frozen=True, slots=True)
class Pareto:
    """A Pareto distribution: P(X > x) = (minimum/x)^shape; no mean if ``shape`` <= 1."""

    minimum_us: float
    shape: float

    def __post_init__(self) -> None:
        good = 0 < self.minimum_us < inf
        require(good, "Pareto.minimum_us", self.minimum_us, "finite and above 0")
        require(0 < self.shape < inf, "Pareto.shape", self.shape, "finite and above 0")


@dataclass(frozen=True, slots=True)
class Lognormal:
    """A lognormal distribution: ``median_us`` * exp(``sigma`` * standard normal)."""

    median_us: float
    sigma: float

    def __post_init__(self) -> None:
        good = 0 < self.median_us < inf
        require(good, "Lognormal.median_us", self.median_us, "finite and above 0")
        require(0 <= self.sigma < inf, "Lognormal.sigma", self.sigma, "finite and at least 0")


@dataclass(frozen=True, slots=True)
class Mixture:
    """A mixture: ``rare`` with probability ``share``, else ``usual`` (by default no delay)."""

    share: float
    rare: "Distribution"
    usual: "Distribution" = Constant(0)

    def __post_init__(self) -> None:
        require(0 <= self.share <= 1, "Mixture.share", self.share, "between 0 and 1")


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of independent parts."""

    parts: "tuple[Distribution, ...]"


Distribution: TypeAlias = Constant | Uniform | Exponential | Pareto | Lognormal | Mixture | Sum


def sample_us(distribution: Distribution, rng: np.random.Generator, n: int) -> FloatArray:
    """Return ``n`` independent samples (us).

    A mixture draws both parts for every sample, so that a change of its share changes no other
    draw.
    """
    match distribution:
        case Constant(us):
            return np.full(n, us, dtype=np.float64)
        case Uniform(low_us, high_us):
            return rng.uniform(low_us, high_us, n)
        case Exponential(mean_us):
            return rng.exponential(mean_us, n)
        case Pareto(minimum_us, shape):
            return minimum_us * (1.0 + rng.pareto(shape, n))
        case Lognormal(median_us, sigma):
            return rng.lognormal(log(median_us), sigma, n)
        case Mixture(share, rare, usual):
            is_rare = rng.random(n) < share
            return np.where(is_rare, sample_us(rare, rng, n), sample_us(usual, rng, n))
        case Sum(parts):
            return sum((sample_us(part, rng, n) for part in parts), np.zeros(n))
    assert_never(distribution)


def mean_us(distribution: Distribution) -> float:
    """Return the expected value (us); infinite for a Pareto with shape <= 1."""
    match distribution:
        case Constant(us):
            return us
        case Uniform(low_us, high_us):
            return (low_us + high_us) / 2
        case Exponential(mean):
            return mean
        case Pareto(minimum_us, shape):
            return inf if shape <= 1 else minimum_us * shape / (shape - 1)
        case Lognormal(median_us, sigma):
            return median_us * exp(sigma**2 / 2)
        case Mixture(share, rare, usual):
            # A part that never occurs must not contribute inf * 0.
            parts = ((share, rare), (1 - share, usual))
            return sum(weight * mean_us(part) for weight, part in parts if weight > 0)
        case Sum(parts):
            return sum(mean_us(part) for part in parts)
    assert_never(distribution)


def draw_us(distribution: Distribution, seeds: Seeds, name: str, n: int) -> FloatArray:
    """Return ``n`` samples (us) from the stream ``name``; a constant opens no stream, for speed."""
    if isinstance(distribution, Constant):
        return np.full(n, distribution.us, dtype=np.float64)
    return sample_us(distribution, seeds.stream(name), n)


def iterate_samples(distribution: Distribution, rng: np.random.Generator | None) -> Iterator[float]:
    """Return an iterator of samples (us), drawn in blocks because that is several times faster.

    Raise ``ValueError`` for a random distribution without a generator.
    """
    if isinstance(distribution, Constant):
        return repeat(distribution.us)
    if rng is None:
        msg = f"{distribution} is random; it needs a random stream of its own"
        raise ValueError(msg)
    return _blocks(distribution, rng)


def _blocks(distribution: Distribution, rng: np.random.Generator) -> Iterator[float]:
    while True:
        yield from sample_us(distribution, rng, _BLOCK).tolist()
