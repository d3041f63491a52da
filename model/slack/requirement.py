"""Required coverage: how much of a window its first answer must contain (docs/slack.md, section 5).

Source: sampling without replacement. The normal forms have the finite population correction; ranks
follow the hypergeometric distribution. Forms that need the values are in ``subsets``.

Rules of this file:

* What is exact on paper is exact here: shares written as decimals are multiplied as fractions,
  ranks are integers. Only probabilities are rounded.
* A requirement follows from what is known of a window at its judgement, and from nothing else.
* Everything but counts assumes that the missing tuples are as good as a random subset of the
  window. Nothing here can check that.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, isfinite, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.slack import subsets
from model.slack.subsets import Floats
from model.vocabulary import SlackConfig
from model.windows.aggregates import as_written

# ---------------------------------------------------------------------------------- which rule


class WindowFacts(NamedTuple):
    """The facts about one window that are known when it is judged."""

    total: int
    """N, at least 1."""
    cv_squared: float
    """Squared coefficient of variation of the values."""
    values: Sequence[float]
    """Values of the N tuples in any order, if ``SlackConfig.needs_values``."""
    has_negative: bool
    """True if one of the N values is negative."""


Requirement = Callable[[WindowFacts], int]
"""Function from the knowledge about a window to the number of tuples required, 0..N."""

ROUNDING = 1e-9
"""Margin that keeps a product from being rounded across an integer that it equals on paper."""


def level(config: SlackConfig) -> float:
    """Return the probability d of a miss that the requirement allows.

    Conformal control splits the budget: one half here, one half as its target rate of misses.
    """
    return config.delta / 2 if config.control == "conformal" else config.delta


def requirement_of(config: SlackConfig) -> Requirement:
    """Return the requirement that follows from the query's (eps, delta) or ``lambda_thr``."""
    requirement = _unclipped(config)
    needs_positive = config.aggregate == "sum" and config.lambda_thr is None

    def clipped(known: WindowFacts) -> int:
        if needs_positive and known.has_negative:
            return known.total
        required = requirement(known)
        return required if required < known.total else known.total

    return clipped


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
    if config.aggregate in ("min", "max"):
        return lambda _known: 0
    msg = f"no rule says which coverage the aggregate {config.aggregate!r} requires"
    raise ValueError(msg)


def _for_quantile(config: SlackConfig) -> Requirement:
    q = {"median": Fraction(1, 2), "quantile": as_written(config.q)}[config.aggregate]
    eps = as_written(config.eps)
    d = level(config)
    return lambda known: random_quantile(q, eps, d, known.total)


def _from_values(config: SlackConfig) -> Requirement:
    eps, d = config.eps, level(config)
    bound = {"sum": subsets.rigorous_sum, "avg": subsets.rigorous_average}[config.aggregate]
    return lambda known: bound(known.values, eps, d)


# ------------------------------------------------------- sums and averages, from their variation


def cv_squared_of(n: int, total: float, squares: float) -> float:
    """Return the squared coefficient of variation of n values.

    ``total`` is the sum of the values, ``squares`` the sum of their squares. If the estimate leaves
    float64, or if values cancel to a sum of 0, nothing is known about the values: infinity.
    """
    if total == 0 and squares == 0:
        return 0.0
    # A product that is 0 says nothing, like one that overflows.
    denominator = total * total
    estimate = n * squares / denominator - 1 if denominator else float("inf")
    return max(0.0, estimate) if isfinite(estimate) else float("inf")


def _for_sum(eps: float, z: float) -> Requirement:
    """Return the one-sided form for values >= 0; the sum is not rescaled.

    The missing share u of N tuples has mean u and variance cv^2 u (1-u) / N; the largest u with
    u + z * deviation <= eps solves (eps - u)^2 = a u (1-u), a = z^2 cv^2 / N. Fewer must be
    missing: with equal values, exactly that many make an error of eps.
    """

    def required(known: WindowFacts) -> int:
        a = z * z * known.cv_squared / known.total
        if not isfinite(a):
            return known.total
        root = sqrt(a * a + 4 * a * eps * (1 - eps))
        missing = (2 * eps + a - root) / (2 * (1 + a))
        return floor((1 - missing) * known.total + ROUNDING) + 1

    return required


def _for_average(eps: float, z: float) -> Requirement:
    """Return the two-sided form; an average needs at least one tuple."""

    def required(known: WindowFacts) -> int:
        total, spread = known.total, z * z * known.cv_squared
        if not isfinite(spread):
            return total
        return max(1, ceil(spread / (spread + total * eps * eps) * total - ROUNDING))

    return required


# --------------------------------------------------------------- medians and quantiles, from ranks

TOLERANCE = 1e-9
"""Relative; a probability that equals d on paper is not refused because of rounding."""
REMEMBERED = 1 << 16


@lru_cache(maxsize=REMEMBERED)
def random_quantile(q: Fraction, eps: Fraction, d: float, total: int) -> int:
    """Return the smallest n such that a failure has at most probability d for n and all above.

    That probability is not monotone in n, so the requirement holds for n and every larger number.
    """
    probability = failures(q, eps, total)
    refused = np.flatnonzero(probability > d * (1 + TOLERANCE))
    return int(refused[-1]) + 2 if refused.size else 1


def failures(q: Fraction, eps: Fraction, total: int) -> Floats:
    """Return, for n = 1..N, the probability that the answer is off by ceil(eps*N) ranks or more.

    The answer is the tuple of rank k = ceil(q*n) among the n that are present. It lies too high if
    fewer than k of the aim + off - 1 smallest tuples are present, too low if at least k of the
    aim - off smallest are.
    """
    aim, off = ceil(q * total), ceil(eps * total)
    ranks = np.array([-(-q.numerator * n // q.denominator) for n in range(1, total + 1)])
    probability = np.zeros(total)
    if aim + off <= total:
        probability += _fewer(total, aim + off - 1, ranks)
    if aim - off >= 1:
        # If n = N, fewer than k are never present, so this term counts down from 1.
        probability -= _fewer(total, aim - off, ranks)
    return probability


def _fewer(total: int, marked: int, ranks: NDArray[np.int64]) -> Floats:
    """Return P(H(N, K, n) < k_n) for n = 1..N, less its value for n = N.

    From n + 1 draws back to n at the same k: one marked tuple fewer is present if the last draw
    was marked and exactly k - 1 marked ones were drawn before. If k falls by one as well, the case
    of exactly k - 1 no longer counts.
    """
    n, x = np.arange(1, total), ranks[1:] - 1
    exactly = _hypergeometric(total, marked, n, x)
    falls = ranks[1:] - ranks[:-1]
    change = exactly * ((marked - x) / (total - n) - falls)
    return np.append(np.cumsum(change[::-1])[::-1], 0.0)


def _hypergeometric(total: int, marked: int, n: NDArray[np.int64], x: NDArray[np.int64]) -> Floats:
    """Return P(H(N, K, n) = x), element by element."""
    # Imported here because it is slow and most runs do not need it.
    from scipy.special import gammaln

    possible = (x <= marked) & (n - x <= total - marked) & (x <= n)
    n, x = n[possible], x[possible]

    def ln_choose(of: int, these: NDArray[np.int64]) -> Floats:
        logarithm: Floats = gammaln(of + 1) - gammaln(these + 1) - gammaln(of - these + 1)
        return logarithm

    exactly = np.zeros(possible.size)
    exactly[possible] = np.exp(
        ln_choose(marked, x) + ln_choose(total - marked, n - x) - ln_choose(total, n)
    )
    return exactly
