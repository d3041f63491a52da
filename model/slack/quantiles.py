"""Required coverage of medians and other quantiles: exact, from ranks alone (docs/slack.md, 5).

Source: the hypergeometric distribution.

Rules of this file:

* Ranks are integers, shares are fractions: only probabilities are rounded.
* Values play no part, so a requirement depends on N and is remembered.
* The probability of a failure is not monotone in n: a requirement holds from n on upwards.
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-9
"""A probability that equals the level on paper is not refused because of rounding."""
REMEMBERED = 1 << 16

Floats = NDArray[np.float64]


@lru_cache(maxsize=REMEMBERED)
def of_random_subsets(q: Fraction, eps: Fraction, d: float, total: int) -> int:
    """The smallest n from which on a failure has at most the probability d."""
    probability = failures(q, eps, total)
    refused = np.flatnonzero(probability > d * (1 + TOLERANCE))
    return int(refused[-1]) + 2 if refused.size else 1


@lru_cache(maxsize=REMEMBERED)
def against_an_adversary(q: Fraction, eps: Fraction, total: int) -> int:
    """The smallest n from which on no choice of the missing tuples makes a failure."""
    aim, off = ceil(q * total), ceil(eps * total)
    n = total
    while n >= 1:
        rank, missing = ceil(q * n), total - n
        if aim - rank >= off or rank + missing - aim >= off:
            break
        n -= 1
    return n + 1


def failures(q: Fraction, eps: Fraction, total: int) -> Floats:
    """For n = 1..N: probability that the answer from n tuples is off by ceil(eps*N) ranks or more.

    It is the tuple of rank k = ceil(q*n) among those that are there. It lies too high if fewer
    than k of the aim + off - 1 smallest tuples are there, too low if k of the aim - off smallest.
    """
    aim, off = ceil(q * total), ceil(eps * total)
    ranks = np.array([-(-q.numerator * n // q.denominator) for n in range(1, total + 1)])
    probability = np.zeros(total)
    if aim + off <= total:
        probability += _fewer(total, aim + off - 1, ranks)
    if aim - off >= 1:
        # Of all N tuples fewer than k never are there, so this one counts down from 1.
        probability -= _fewer(total, aim - off, ranks)
    return probability


def _fewer(total: int, marked: int, ranks: NDArray[np.int64]) -> Floats:
    """P(H(N, K, n) < k_n) for n = 1..N, less what it is for n = N.

    From n + 1 draws back to n at the same k: one marked less is there if the last draw was marked
    and exactly k - 1 marked ones were drawn before. Where k falls as well, by one, exactly k - 1
    are one too many.
    """
    n, x = np.arange(1, total), ranks[1:] - 1
    exactly = _hypergeometric(total, marked, n, x)
    falls = ranks[1:] - ranks[:-1]
    change = exactly * ((marked - x) / (total - n) - falls)
    return np.append(np.cumsum(change[::-1])[::-1], 0.0)


def _hypergeometric(total: int, marked: int, n: NDArray[np.int64], x: NDArray[np.int64]) -> Floats:
    """P(H(N, K, n) = x), element by element."""
    # Imported here: most runs do not need it, and it takes its time.
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
