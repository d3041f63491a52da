"""How many tuples the first answer of a quantile needs (docs/slack.md, section 5).

Rules of this file:

* Ranks are integers: ``q`` and ``e`` are exact fractions, and no rank is ever rounded from a float.
* With ``n`` tuples fewer by one, a tail of the hypergeometric distribution changes by a term that
  one probability gives. So all probabilities of a window come out of one running sum from above.
"""

from fractions import Fraction
from functools import lru_cache
from math import exp
from typing import NamedTuple

import numpy as np

from spark_impl.runtime.arrays import Floats, Ints

_EQUAL = 1 + 1e-9
"""A probability that equals its limit on paper is not refused for a rounding error."""
_FIRST_BLOCK = 512


class _Aim(NamedTuple):
    """What an answer has to hit: rank ``r0`` of ``total``, off by fewer than ``c`` ranks."""

    q: Fraction
    total: int
    r0: int
    c: int

    def rank(self, n: int) -> int:
        """The rank that the answer from ``n`` tuples has among them."""
        return _ceil(self.q * n)

    def ranks(self, least: int, most: int) -> Ints:
        """The same for ``least .. most`` tuples."""
        top, bottom = self.q.numerator, self.q.denominator
        return np.array([-(-top * n // bottom) for n in range(least, most + 1)], np.int64)

    @property
    def marks(self) -> tuple[int, ...]:
        """Tuples below the ranks that are too high, and tuples that are too low; if there are."""
        too_high, too_low = self.r0 + self.c, self.r0 - self.c
        return (
            *((too_high - 1,) if too_high <= self.total else ()),
            *((too_low,) if too_low >= 1 else ()),
        )


@lru_cache(maxsize=1 << 16)
def exchangeable(q: Fraction, e: Fraction, d: float, total: int) -> int:
    """n_req when the missing tuples are a simple random subset of the ``total``."""
    aim = _Aim(q, total, _ceil(q * total), _ceil(e * total))
    hi = _certain_from(aim, d)
    tails = [_tail(aim, marked, hi) for marked in aim.marks]
    size = _FIRST_BLOCK
    while hi > 1:
        lo = max(1, hi - size)
        steps = [_steps(aim, marked, lo, hi) for marked in aim.marks]
        paths = [tail + np.cumsum(step) for tail, step in zip(tails, steps, strict=True)]
        bad = np.flatnonzero(sum(paths, np.zeros(hi - lo)) > d * _EQUAL)
        if len(bad):
            return hi - int(bad[0])
        tails = [float(path[-1]) for path in paths]
        hi, size = lo, 2 * size
    return 1


@lru_cache(maxsize=1 << 16)
def adversarial(q: Fraction, e: Fraction, total: int) -> int:
    """n_req whichever tuples are missing."""
    aim = _Aim(q, total, _ceil(q * total), _ceil(e * total))
    # off by up to max(q, 1-q) * m - 1 ranks with m missing, so more than 2c + 2 are too many
    lo = max(1, total - 2 * aim.c - 2)
    n = np.arange(lo, total + 1)
    k = aim.ranks(lo, total)
    bad = np.flatnonzero((aim.r0 - k >= aim.c) | (k + (total - n) - aim.r0 >= aim.c))
    return lo + int(bad[-1]) + 1 if len(bad) else lo


def _ceil(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)


def _certain_from(aim: _Aim, d: float) -> int:
    """A number of tuples from which on Serfling's inequality keeps the probability below ``d``.

    It bounds each tail by exp(-2 n t^2 / (1 - (n-1)/N)) if the share of marked tuples lies ``t``
    from ``q``, the share that the answer asks for; the bound falls with n.
    """
    total = aim.total
    gaps = [float(Fraction(marked, total) - aim.q) for marked in aim.marks]

    def certain(n: int) -> bool:
        rest = 1 - (n - 1) / total
        return sum(exp(-2 * n * t * t / rest) for t in gaps) * _EQUAL <= d

    lo, hi = 1, total
    if not certain(total):
        return total
    while lo < hi:
        middle = (lo + hi) // 2
        lo, hi = (lo, middle) if certain(middle) else (middle + 1, hi)
    return lo


def _log_choose(n: Ints, k: Ints) -> Floats:
    # Imported here: few queries need it, and every process that works on one would wait for it.
    from scipy.special import gammaln

    out: Floats = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return out


def _probability(aim: _Aim, marked: int, n: Ints, x: Ints) -> Floats:
    """P(H = x) when ``n`` of the tuples are drawn and ``marked`` of all are marked."""
    rest = aim.total - marked
    possible = (x >= 0) & (x <= marked) & (n - x >= 0) & (n - x <= rest)
    out = np.zeros(len(n))
    n, x = n[possible], x[possible]
    total, all_marked, all_rest = (np.full(len(n), each) for each in (aim.total, marked, rest))
    log = _log_choose(all_marked, x) + _log_choose(all_rest, n - x) - _log_choose(total, n)
    out[possible] = np.exp(log)
    return out


def _is_high(aim: _Aim, marked: int) -> bool:
    """Whether these marks are the tuples below the ranks that are too high."""
    return marked >= aim.r0


def _tail(aim: _Aim, marked: int, n: int) -> float:
    """Probability to be off on the side that ``marked`` stands for, with ``n`` tuples."""
    k = aim.rank(n)
    x = np.arange(k) if _is_high(aim, marked) else np.arange(k, min(n, marked) + 1)
    return float(_probability(aim, marked, np.full(len(x), n), x).sum())


def _steps(aim: _Aim, marked: int, lo: int, hi: int) -> Floats:
    """By how much the tail grows from hi to hi - 1, from hi - 1 to hi - 2, ..., to lo tuples.

    Drawing one tuple more takes P(H_n = x) * (marked - x) / (N - n) out of P(H_n <= x); a rank less
    takes P(H_n = x) out of it.
    """
    n = np.arange(hi - 1, lo - 1, -1)
    k = aim.ranks(lo, hi)[::-1]
    x = k[:-1] - 1
    change = (marked - x) / (aim.total - n) - (k[1:] < k[:-1])
    grown = _probability(aim, marked, n, x) * change
    return grown if _is_high(aim, marked) else -grown
