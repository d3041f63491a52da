"""Test the assumption that delay and value are independent (docs/slack.md, section 5).

Source: Kendall's scores of ranks, from comparing all pairs; Student's t over windows, because
tuples of one window depend on one another and windows hardly do.

Rules of this file:

* Sums of scores are integers and stay exact; only figures computed from them are rounded.
* An assumption is never confirmed: it is untested, contradicted, or not contradicted.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import sqrt
from typing import NamedTuple

from model.vocabulary import Event, SlackConfig
from model.vocabulary.slack import MAX_CORRELATED
from model.vocabulary.windows import Correlation
from model.windows.correction import Scorer
from model.windows.state import Scores

UNTESTED = "untested"
CONTRADICTED = "contradicted"
NOT_CONTRADICTED = "not contradicted"

ENOUGH_WINDOWS = 20
"""Least number of windows for a statement."""
QUANTILE = 0.9995
"""Quantile of Student's t at either end of the interval."""

# ------------------------------------------------------------------------------------ one window


def is_recorded(config: SlackConfig, start_us: int, n: int) -> bool:
    """Return whether corrections of this window record its correlation.

    Every ceil(W/s)-th window of at most MAX_CORRELATED tuples does, so these windows are disjoint.
    """
    every = (config.size_us - 1) // config.slide_us + 1
    return (start_us // config.slide_us) % every == 0 and n <= MAX_CORRELATED


def scored(config: SlackConfig) -> Scorer:
    """Return the function that scores a window for its correction."""

    def scores(start_us: int, tuples: Sequence[Event]) -> Scores | None:
        return scores_of(tuples) if is_recorded(config, start_us, len(tuples)) else None

    return scores


def scores_of(tuples: Sequence[Event]) -> Scores:
    """Score delays against values of a window's tuples, given in order of arrival."""
    times_us = [event.event_time_us for event in tuples]
    newest_us = accumulate(times_us, max)
    delays = _scores([newest - own for newest, own in zip(newest_us, times_us, strict=True)])
    values = _scores([event.value for event in tuples])
    cross = sum(x * y for x, y in zip(delays, values, strict=True))
    return Scores(len(tuples), cross, sum(x * x for x in delays), sum(y * y for y in values))


def _scores(numbers: Sequence[float]) -> list[int]:
    """Return, for each number, how many others are smaller less how many are larger."""
    in_order = sorted(range(len(numbers)), key=lambda position: numbers[position])
    scores = [0] * len(numbers)
    first = 0
    while first < len(in_order):
        last = first
        while last < len(in_order) and numbers[in_order[last]] == numbers[in_order[first]]:
            last += 1
        for position in in_order[first:last]:
            scores[position] = first - (len(in_order) - last)
        first = last
    return scores


# ----------------------------------------------------------------------------------- all windows


class Assumption(NamedTuple):
    """The result of testing the assumption on all corrected windows."""

    status: str
    """``untested``, ``contradicted`` or ``not contradicted``."""
    rho: float | None
    """Rank correlation of delay and value; None without a usable window."""
    low: float | None
    """Lower end of the interval of ``rho``; None, like ``high``, with fewer than two windows."""
    high: float | None
    windows: int
    """Number B of usable windows: those with a spread of both delays and values."""


def status_of(correlations: Iterable[Correlation]) -> Assumption:
    """Summarise the recorded correlations, with the latest revision of each window."""
    latest: dict[tuple[int, int, str], Correlation] = {}
    for correlation in sorted(correlations, key=lambda step: step.revision):
        latest[correlation[:3]] = correlation
    usable = [each for each in latest.values() if each.delay_spread and each.value_spread]
    windows = len(usable)
    if not usable:
        return Assumption(UNTESTED, None, None, None, 0)
    scale = sqrt(
        sum(each.delay_spread for each in usable) * sum(each.value_spread for each in usable)
    )
    total = sum(each.cross for each in usable)
    rho = total / scale
    if windows == 1:
        return Assumption(UNTESTED, rho, None, None, 1)
    # B * variance, with B - 1. Integers keep it exact up to the division.
    squares = sum((windows * each.cross - total) ** 2 for each in usable)
    reach = _student_t(windows - 1) * sqrt(squares / (windows * (windows - 1))) / scale
    low, high = rho - reach, rho + reach
    if windows < ENOUGH_WINDOWS:
        status = UNTESTED
    else:
        status = CONTRADICTED if low > 0 or high < 0 else NOT_CONTRADICTED
    return Assumption(status, rho, low, high, windows)


def _student_t(degrees: int) -> float:
    # Imported here because it is slow and most runs do not need it.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, QUANTILE))
