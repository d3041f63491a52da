"""Tests whether values depend on delay: figures of each window, and the status of them all.

Source: docs/slack.md, section 5, last part. The figures are exact integers; only the status of the
assumption is a statistic.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from model.vocabulary.slack import MAX_CORRELATED
from spark_impl.runtime.arrays import Floats, Ints
from spark_impl.windows.panes import group_by_window, stable_order
from spark_impl.windows.room import WindowSettings

UNTESTED = "untested"
CONTRADICTED = "contradicted"
NOT_CONTRADICTED = "not contradicted"
_ENOUGH_WINDOWS = 20
_QUANTILE = 0.9995
"""Quantile of Student's t that leaves 0.1% on both sides together."""


class Figures(NamedTuple):
    """The figures of windows, ordered by index, then place; columns of equal length."""

    place: Ints
    j: Ints
    cross: Ints
    delay_spread: Ints
    value_spread: Ints


class AssumptionStatus(NamedTuple):
    """The evidence of corrected windows on whether values are independent of delay."""

    status: str
    """``untested``, ``contradicted`` or ``not contradicted``."""
    windows: int
    """Number of windows whose delays are not all equal, nor their values."""
    rho: float | None
    """Rank correlation of delay and value over these windows; None without any."""
    low: float | None
    """Lower limit of the interval with 99.9% confidence; None while untested."""
    high: float | None


def recorded_window(settings: WindowSettings, event_time_us: Ints) -> Ints:
    """Return for every tuple the only recorded window that may contain it."""
    last = event_time_us // settings.slide_us
    return last - last % -(-settings.size_us // settings.slide_us)


def correlate(
    settings: WindowSettings, place: Ints, seq: Ints, event_time_us: Ints, value: Floats
) -> Figures:
    """Return the figures of all recorded windows; the columns hold every tuple once."""
    spec = settings.windows
    j = recorded_window(settings, event_time_us)
    rows = np.flatnonzero(j * spec.slide_us + spec.size_us > event_time_us)
    rows = rows[np.argsort(seq[rows], kind="stable")]
    n_places = int(place.max(initial=0)) + 1
    j, place, window = group_by_window(j[rows], place[rows], n_places)
    rows = rows[stable_order(window, len(j))]
    n = np.bincount(window, minlength=len(j))
    few = n <= MAX_CORRELATED  # beyond, the sums might not fit
    rows = rows[np.repeat(few, n)]
    j, place, n = j[few], place[few], n[few]
    start, window = np.cumsum(n) - n, np.repeat(np.arange(len(n)), n)
    inside_us = event_time_us[rows] - np.repeat(j * spec.slide_us, n)
    delay = _largest_until(inside_us, window, spec.size_us) - inside_us
    x, y = (_balance(each, window, start, n) for each in (delay, value[rows]))
    sums = (np.add.reduceat(each, start) if len(start) else start for each in (x * y, x * x, y * y))
    return Figures(place, j, *sums)


def assess(cross: Floats, delay_spread: Floats, value_spread: Floats) -> AssumptionStatus:
    """Return the status that follows from the figures of windows, the latest revision of each."""
    varied = (delay_spread > 0) & (value_spread > 0)
    windows, c = int(varied.sum()), cross[varied]
    if not windows:
        return AssumptionStatus(UNTESTED, 0, None, None, None)
    scale = sqrt(delay_spread[varied].sum()) * sqrt(value_spread[varied].sum())
    rho = float(c.sum()) / scale
    if windows < _ENOUGH_WINDOWS:
        return AssumptionStatus(UNTESTED, windows, rho, None, None)
    # Imported here because it is slow to import and few processes need it.
    from scipy.special import stdtrit

    error = sqrt(windows * float(c.var(ddof=1))) / scale
    reach = float(stdtrit(windows - 1, _QUANTILE)) * error
    low, high = rho - reach, rho + reach
    word = NOT_CONTRADICTED if low <= 0 <= high else CONTRADICTED
    return AssumptionStatus(word, windows, rho, low, high)


def _largest_until(values: Ints, window: Ints, span: int) -> Ints:
    """Return the largest value (0 .. span - 1) of each tuple's window up to the tuple."""
    if span * len(values) >= 1 << 62:
        distinct, rank = np.unique(values, return_inverse=True)
        largest: Ints = distinct[_largest_until(rank, window, len(distinct))]
        return largest
    before = window * span  # a running maximum starts anew in each window
    return np.maximum.accumulate(before + values) - before


def _balance(values: Ints | Floats, window: Ints, start: Ints, n: Ints) -> Ints:
    """Return the number of smaller values in each tuple's window minus that of larger ones."""
    order = np.argsort(values)  # the order of equal values does not matter
    order = order[stable_order(window[order], len(n))]
    ordered = values[order]
    new = np.ones(len(values) + 1, np.bool_)  # the end is the first place of another run
    new[1:-1] = ordered[1:] != ordered[:-1]
    new[start] = True
    runs = np.flatnonzero(new)
    first, end = runs[:-1], runs[1:]
    out = np.empty(len(values), np.int64)
    out[order] = np.repeat(first + end, end - first)
    return out - np.repeat(2 * start + n, n)
