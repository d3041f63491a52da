"""Required coverage: how much of a window its first answer must contain (docs/slack.md, section 5).

Source: sampling without replacement; the normal forms have the finite population correction.

Rules of this file:

* What is exact on paper is exact here: shares written as decimals are multiplied as fractions.
* A requirement follows from what is known of a window at its judgement, and from nothing else.
* Whether the missing tuples are as good as a random subset of the window, which everything but
  ``adversarial`` sampling assumes, this file cannot know.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, floor, isfinite, sqrt
from statistics import NormalDist
from typing import NamedTuple

from model.slack import quantiles, subsets
from model.vocabulary import SlackConfig
from model.windows.aggregates import as_written


class Known(NamedTuple):
    """What is known of a window at its judgement."""

    total: int
    """N, at least 1."""
    cv_squared: float = 0.0
    """Squared coefficient of variation of the values."""
    values: Sequence[float] = ()
    """Of the N tuples in any order, where ``SlackConfig.needs_values`` asks for them."""
    seed: tuple[int, int] = (0, 0)
    """(task, order of the judgement)."""


Requirement = Callable[[Known], int]
"""Tuples required, 0..N."""

ROUNDING = 1e-9
"""Keeps a product that is an integer on paper from being rounded to its other side."""


def level(config: SlackConfig) -> float:
    """Probability d of a miss that the requirement allows.

    Conformal control splits the budget: one half here, one half as its target rate of misses.
    """
    return config.delta / 2 if config.control == "conformal" else config.delta


def requirement_of(config: SlackConfig) -> Requirement:
    """The requirement that the query's (eps, delta) or ``lambda_thr`` amounts to."""
    requirement = _unclipped(config)

    def clipped(known: Known) -> int:
        required = requirement(known)
        return 0 if required < 0 else required if required < known.total else known.total

    return clipped


def cv_squared_of(config: SlackConfig, n: int, total: float, squares: float) -> float:
    """Squared coefficient of variation: the setting, or from count, sum and sum of squares.

    Where the sums leave float64 nothing is known about the values: infinity.
    """
    if config.cv is not None:
        return config.cv * config.cv
    if total == 0:
        return 0.0
    # A product that underflows to 0 divides like one that overflows: it says nothing.
    denominator = total * total
    estimate = n * squares / denominator - 1 if denominator else float("inf")
    return max(0.0, estimate) if isfinite(estimate) else float("inf")


def _unclipped(config: SlackConfig) -> Requirement:
    if config.lambda_thr is not None:
        share = as_written(config.lambda_thr)
        return lambda known: ceil(share * known.total)
    if config.aggregate == "count":
        eps = as_written(config.eps)
        return lambda known: known.total - ceil(eps * known.total) + 1
    if config.aggregate in ("median", "quantile"):
        return _for_quantile(config)
    if config.needs_values:
        return _from_values(config)
    if config.aggregate == "sum":
        return _for_sum(config.eps, NormalDist().inv_cdf(1 - level(config)))
    if config.aggregate == "avg":
        return _for_average(config.eps, NormalDist().inv_cdf(1 - level(config) / 2))
    return lambda _known: 0


def _for_quantile(config: SlackConfig) -> Requirement:
    q = Fraction(1, 2) if config.aggregate == "median" else as_written(config.q)
    eps = as_written(config.eps)
    if config.sampling == "adversarial":
        return lambda known: quantiles.against_an_adversary(q, eps, known.total)
    d = level(config)
    return lambda known: quantiles.of_random_subsets(q, eps, d, known.total)


def _from_values(config: SlackConfig) -> Requirement:
    eps, d, is_sum = config.eps, level(config), config.aggregate == "sum"
    if config.sampling == "adversarial":
        against = subsets.adversarial_sum if is_sum else subsets.adversarial_average
        return lambda known: against(known.values, eps)
    if config.method == "permutation":
        return lambda known: subsets.permuted_sum(known.values, eps, d, known.seed)
    bound = subsets.rigorous_sum if is_sum else subsets.rigorous_average
    return lambda known: bound(known.values, eps, d)


def _for_sum(eps: float, z: float) -> Requirement:
    """One-sided, values >= 0, not rescaled.

    The missing share u of N tuples has mean u and variance cv^2 u (1-u) / N; the largest u with
    u + z * deviation <= eps solves (eps - u)^2 = a u (1-u), a = z^2 cv^2 / N. Less than that may
    be missing: of equal values exactly so many are an error of eps.
    """

    def required(known: Known) -> int:
        a = z * z * known.cv_squared / known.total
        if not isfinite(a):
            return known.total
        root = sqrt(a * a + 4 * a * eps * (1 - eps))
        missing = (2 * eps + a - root) / (2 * (1 + a))
        return floor((1 - missing) * known.total + ROUNDING) + 1

    return required


def _for_average(eps: float, z: float) -> Requirement:
    """Two-sided; at least one tuple, or there is no average."""

    def required(known: Known) -> int:
        total, spread = known.total, z * z * known.cv_squared
        if not isfinite(spread):
            return total
        return max(1, ceil(spread / (spread + total * eps * eps) * total - ROUNDING))

    return required
