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
    inside = j * spec.slide_us + spec.size_us > event_time_us
    order = np.flatnonzero(inside)
    n_places = int(place.max()) + 1 if len(place) else 1
    j, place, window = group_by_window(j[order], place[order], n_places)
    n = np.bincount(window, minlength=len(j))
    start = np.cumsum(n) - n
    by_arrival = stable_order(window, len(j))
    backwards = np.diff(seq[order[by_arrival]]) < 0
    backwards[start[1:] - 1] = False  # from one window to the next
    if backwards.any():
        by_arrival = np.lexsort((seq[order], window))
    order = order[by_arrival]
    delay = _delays(event_time_us[order], start, n)
    small = np.repeat(n <= MAX_CORRELATED, n)  # beyond, the sums might not fit
    x = np.where(small, _balance(delay, start, n), 0)
    y = np.where(small, _balance(value[order], start, n), 0)
    sums = (np.add.reduceat(each, start) if len(start) else start for each in (x * y, x * x, y * y))
    found = (place, j, *sums)
    return Figures._make(column[n <= MAX_CORRELATED] for column in found)


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


def _delays(ts: Ints, start: Ints, n: Ints) -> Ints:
    """Return how far each tuple lies behind the largest event time before it in its window."""
    if not len(ts):
        return ts
    least = ts.min()
    span = int(ts.max()) - int(least) + 1
    if span * len(n) >= 1 << 62:  # windows very far apart
        times, rank = np.unique(ts, return_inverse=True)
        largest = times[_largest_before(rank, len(times), start, n)]
    else:
        largest = _largest_before(ts - least, span, start, n) + least
    delay: Ints = np.maximum(largest - ts, 0)
    return delay


def _largest_before(values: Ints, span: int, start: Ints, n: Ints) -> Ints:
    """Return the largest value (0 .. span - 1) before each in its window; its own at the first."""
    own = np.repeat(np.arange(len(n)) * span, n)  # a running maximum starts anew
    before = np.empty_like(values)
    before[1:] = (np.maximum.accumulate(own + values) - own)[:-1]
    before[start] = values[start]
    return before


def _balance(values: Ints | Floats, start: Ints, n: Ints) -> Ints:
    """Return the number of smaller values in each tuple's window minus that of larger ones."""
    window = np.repeat(np.arange(len(n)), n)
    order = np.argsort(values)  # the order of equal values does not matter
    order = order[stable_order(window[order], len(n))]
    ordered = values[order]
    new = np.ones(len(values), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    new[start] = True
    runs = np.flatnonzero(new)
    length = np.diff(runs, append=len(values))
    own = window[runs]
    smaller = runs - start[own]
    larger = n[own] - smaller - length
    out = np.empty(len(values), np.int64)
    out[order] = np.repeat(smaller - larger, length)
    return out
