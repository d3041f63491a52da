"""Required coverage: how much of a window its first answer must contain (docs/slack.md, section 5).

Source: sampling without replacement, normal approximation with finite population correction.

Rules of this file:

* What is exact on paper is exact here: shares written as decimals are multiplied as fractions.
* The share missing from a *sum* is random only if the received tuples are as good as a random
  subset of the window. This file computes; whether that holds, it cannot know.
"""

from collections.abc import Callable
from math import ceil, isfinite, sqrt
from statistics import NormalDist

from model.slack.aggregates import as_written
from model.vocabulary import SlackConfig

Requirement = Callable[[int, float], int]
"""Tuples required, 0..N, from N and the squared coefficient of variation of the values."""

ROUNDING = 1e-9
"""Keeps a product that is an integer on paper from being rounded up."""


def level(config: SlackConfig) -> float:
    """Probability d of a miss that the requirement allows.

    Conformal control splits the budget: one half here, one half as its target rate of misses.
    """
    return config.delta / 2 if config.control == "conformal" else config.delta


def requirement_of(config: SlackConfig) -> Requirement:
    """The requirement that the query's (eps, delta) or ``lambda_thr`` amounts to."""
    requirement = _unclipped(config)

    def clipped(total: int, cv_squared: float) -> int:
        return min(max(requirement(total, cv_squared), 0), total)

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
        return lambda total, _: ceil(share * total)
    if config.aggregate == "count":
        eps = as_written(config.eps)
        return lambda total, _: total - ceil(eps * total) + 1
    if config.aggregate == "sum":
        return _for_sum(config.eps, NormalDist().inv_cdf(1 - level(config)))
    if config.aggregate == "avg":
        return _for_average(config.eps, NormalDist().inv_cdf(1 - level(config) / 2))
    return lambda _total, _cv_squared: 0


def _for_sum(eps: float, z: float) -> Requirement:
    """One-sided, values >= 0, not rescaled.

    The missing share u of N tuples has mean u and variance cv^2 u (1-u) / N; the largest u with
    u + z * deviation <= eps solves (eps - u)^2 = a u (1-u), a = z^2 cv^2 / N.
    """

    def required(total: int, cv_squared: float) -> int:
        a = z * z * cv_squared / total
        if not isfinite(a):
            return total
        root = sqrt(a * a + 4 * a * eps * (1 - eps))
        missing = (2 * eps + a - root) / (2 * (1 + a))
        return ceil((1 - missing) * total - ROUNDING)

    return required


def _for_average(eps: float, z: float) -> Requirement:
    """Two-sided; at least one tuple, or there is no average."""

    def required(total: int, cv_squared: float) -> int:
        spread = z * z * cv_squared
        if not isfinite(spread):
            return total
        return max(1, ceil(spread / (spread + total * eps * eps) * total - ROUNDING))

    return required
