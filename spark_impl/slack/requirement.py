"""The required number of tuples in a window's first answer (docs/slack.md, section 5).

Rules of this file:

* Ranks are integers: ``q`` and ``e`` are exact fractions, and no rank is ever rounded from a float.
* For quantiles: with one tuple less, a tail of the hypergeometric distribution changes by a term
  that one probability gives. All probabilities of a window therefore follow from one running sum.
"""

from fractions import Fraction
from functools import lru_cache
from math import exp
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from model.vocabulary import SlackConfig
from spark_impl.runtime.arrays import Bools, Floats, Ints
from spark_impl.slack import missing

_ROUNDING = 1e-9
"""Margin that keeps an exact integer from being rounded the wrong way."""


def squared_cv(n: Ints, s1: Floats, s2: Floats) -> Floats:
    """Return the squared coefficient of variation, from the number, sum and squares of values.

    It is infinite if the estimate leaves float64, or if values cancel to a sum of 0.
    """
    with np.errstate(all="ignore"):
        estimate = n * s2 / (s1 * s1) - 1.0
    fits = np.isfinite(estimate)
    return np.where((s1 == 0) & (s2 == 0), 0.0, np.where(fits, np.maximum(estimate, 0.0), np.inf))


def needs_positive_values(config: SlackConfig) -> bool:
    """Return whether a window with a negative value requires all of its tuples."""
    return config.aggregate == "sum" and config.lambda_thr is None


def required_tuples(
    config: SlackConfig,
    total: Ints,
    cv2: Floats,
    values: Floats | None,
    has_negative: Bools | bool,
) -> Ints:
    """Return n_req of windows that a task judges one after the other; 0 if nothing is required.

    ``total`` is the number of known tuples of each (N, at least 1), ``cv2`` the squared coefficient
    of variation at its judgement. ``values`` is used if ``config.needs_values``: the values of the
    first window, largest first, then those of the next. ``has_negative`` says which windows have a
    negative value.
    """
    if config.lambda_thr is not None:
        return _share(total, config.lambda_thr)
    if config.aggregate == "count":
        wanted = total - _share(total, config.eps) + 1
    elif config.aggregate in ("min", "max"):
        return np.zeros(len(total), np.int64)
    elif config.aggregate in ("median", "quantile"):
        wanted = _for_rank(config, total)
    elif values is not None:
        wanted = missing.required_tuples(config, _level(config), total, values)
    elif config.aggregate == "sum":
        wanted = _for_sum(config, total, cv2)
    elif config.aggregate == "avg":
        wanted = _for_avg(config, total, cv2)
    else:
        msg = f"no rule says which coverage the aggregate {config.aggregate!r} requires"
        raise ValueError(msg)
    if needs_positive_values(config):
        wanted = np.where(has_negative, total, wanted)
    capped: Ints = np.minimum(wanted, total)
    return capped


def decimal(number: float) -> Fraction:
    """Return the decimal number that the float prints as, exactly."""
    return Fraction(repr(float(number)))


def _share(total: Ints, share: float) -> Ints:
    """Return ceil(share * N), with the share as the decimal number that it prints as."""
    exact = decimal(share)
    return np.array([_ceil(exact * n) for n in total.tolist()], np.int64)


def _level(config: SlackConfig) -> float:
    return config.delta / 2 if config.control == "conformal" else config.delta


def _for_rank(config: SlackConfig, total: Ints) -> Ints:
    q = {"median": Fraction(1, 2), "quantile": decimal(config.q)}[config.aggregate]
    e, d = decimal(config.eps), _level(config)
    return np.array([_exchangeable_requirement(q, e, d, n) for n in total.tolist()], np.int64)


def _for_sum(config: SlackConfig, total: Ints, cv2: Floats) -> Ints:
    e = config.eps
    z = NormalDist().inv_cdf(1 - _level(config))
    with np.errstate(all="ignore"):
        a = z * z * cv2 / total
        u = (2 * e + a - np.sqrt(a * a + 4 * a * e * (1 - e))) / (2 * (1 + a))
    u = np.where(np.isfinite(u), u, 0.0)  # a too large for float64: nothing may be missing
    # A loss of exactly u*N tuples is one tuple too many.
    return np.floor((1 - u) * total + _ROUNDING).astype(np.int64) + 1


def _for_avg(config: SlackConfig, total: Ints, cv2: Floats) -> Ints:
    z = NormalDist().inv_cdf(1 - _level(config) / 2)
    spread = z * z * cv2
    with np.errstate(all="ignore"):
        share = spread / (spread + total * (config.eps * config.eps))
    share = np.where(np.isfinite(share), share, 1.0)
    return np.maximum(np.ceil(share * total - _ROUNDING).astype(np.int64), 1)


_EQUAL = 1 + 1e-9
"""Factor that lets a probability equal its limit in spite of a rounding error."""
_FIRST_BLOCK = 512


class _Aim(NamedTuple):
    """The ranks that an answer may have: rank ``r0`` of ``total``, off by fewer than ``c``."""

    q: Fraction
    total: int
    r0: int
    c: int

    def rank(self, n: int) -> int:
        """Return the rank of the answer from ``n`` tuples among them."""
        return _ceil(self.q * n)

    def ranks(self, least: int, most: int) -> Ints:
        """Return the rank of the answer from each of ``least .. most`` tuples."""
        top, bottom = self.q.numerator, self.q.denominator
        return np.array([-(-top * n // bottom) for n in range(least, most + 1)], np.int64)

    @property
    def marks(self) -> tuple[int, ...]:
        """Number of tuples below the ranks that are too high, and of those too low, if any."""
        too_high, too_low = self.r0 + self.c, self.r0 - self.c
        return (
            *((too_high - 1,) if too_high <= self.total else ()),
            *((too_low,) if too_low >= 1 else ()),
        )


@lru_cache(maxsize=1 << 16)
def _exchangeable_requirement(q: Fraction, e: Fraction, d: float, total: int) -> int:
    """Return n_req if the missing tuples are a simple random subset of the ``total``."""
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


def _ceil(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)


def _certain_from(aim: _Aim, d: float) -> int:
    """Return a number of tuples from which Serfling's inequality keeps the probability below ``d``.

    The inequality bounds each tail by exp(-2 n t^2 / (1 - (n-1)/N)) if the share of marked tuples
    differs by ``t`` from ``q``, the rank of the answer; the bound falls with n.
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


def _log_choose(n: int, k: Ints) -> Floats:
    """Return log(n! / k! / (n - k)!), -inf unless ``0 <= k <= n``."""
    # Imported here because it is slow to import and few queries need it.
    from scipy.special import gammaln

    out: Floats = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return out


def _probability(aim: _Aim, marked: int, n: Ints, x: Ints) -> Floats:
    """Return P(H = x) if ``n`` tuples are drawn and ``marked`` of all tuples are marked."""
    log = _log_choose(marked, x) + _log_choose(aim.total - marked, n - x)
    out: Floats = np.exp(log - _log_choose(aim.total, n))
    return out


def _is_high(aim: _Aim, marked: int) -> bool:
    """Return whether the marked tuples are those below the ranks that are too high."""
    return marked >= aim.r0


def _tail(aim: _Aim, marked: int, n: int) -> float:
    """Return the probability to be off on the side of ``marked``, with ``n`` tuples."""
    k = aim.rank(n)
    x = np.arange(k) if _is_high(aim, marked) else np.arange(k, min(n, marked) + 1)
    return float(_probability(aim, marked, np.full(len(x), n), x).sum())


def _steps(aim: _Aim, marked: int, lo: int, hi: int) -> Floats:
    """Return how much the tail grows from hi to hi - 1, from hi - 1 to hi - 2, ..., to lo tuples.

    One more tuple drawn removes P(H_n = x) * (marked - x) / (N - n) from P(H_n <= x); one rank less
    removes P(H_n = x) from it.
    """
    n = np.arange(hi - 1, lo - 1, -1)
    k = aim.ranks(lo, hi)[::-1]
    x = k[:-1] - 1
    change = (marked - x) / (aim.total - n) - (k[1:] < k[:-1])
    grown = _probability(aim, marked, n, x) * change
    return grown if _is_high(aim, marked) else -grown
