"""Tests whether values depend on delay: figures of each window, and the status of them all.

Source: docs/slack.md, section 5, last part. The figures are exact integers; only the status of the
assumption is a statistic.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from model.vocabulary.slack import MAX_CORRELATED
from spark_impl.runtime.arrays import Floats, Ints
from spark_impl.windows.room import WindowSettings

UNTESTED = "untested"
CONTRADICTED = "contradicted"
NOT_CONTRADICTED = "not contradicted"
_ENOUGH_WINDOWS = 20
_QUANTILE = 0.9995
"""Quantile of Student's t that leaves 0.1% on both sides together."""
_COMPARED = ("delay", "value")


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
    # Imported here because it is slow to import and few processes need it.
    import pandas as pd

    spec, window = settings.windows, ["j", "place"]
    columns = {"place": place, "seq": seq, "ts": event_time_us, "value": value}
    rows = pd.DataFrame({"j": recorded_window(settings, event_time_us), **columns})
    rows = rows[rows["j"] * spec.slide_us + spec.size_us > rows["ts"]].sort_values("seq")
    rows["n"] = rows.groupby(window)["ts"].transform("size")
    rows = rows[rows["n"] <= MAX_CORRELATED]  # beyond, the sums might not fit
    by_window = rows.groupby(window)
    rows["delay"] = by_window["ts"].cummax() - rows["ts"]
    # Of n values, those that are smaller minus those that are larger.
    x, y = ((2 * by_window[each].rank() - rows["n"] - 1).astype(np.int64) for each in _COMPARED)
    products = pd.DataFrame({"cross": x * y, "delay_spread": x * x, "value_spread": y * y})
    sums = products.groupby([rows[each] for each in window]).sum().reset_index()
    return Figures(*(sums[name].to_numpy() for name in Figures._fields))


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
