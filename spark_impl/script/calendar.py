"""Windows counted in microseconds, or in days of a time zone (docs/script.md, section 5).

Rules of this file:

* A window counts ticks: microseconds, or the days of its zone. Its length and slide are numbers of
  ticks, and so are its ends. Everything else about windows is the same for both.
* A zone is asked for its offset at a moment, never for the moment of a wall clock: that one may be
  shown twice, or not at all.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from model.vocabulary.script.config import MILLISECOND_US
from model.vocabulary.script.slices import Comb, Span
from model.vocabulary.script.tree import DAY_MS
from spark_impl.runtime.arrays import Ints

DAY_US = DAY_MS * MILLISECOND_US
HOUR_S = 3_600
FAR_US = 1 << 62
"""A moment after all tuples, and after the windows in which they are."""
_FIRST = 4
"""Days from 1 January 1970 to Monday, 5 January 1970, which is day 0."""
_LAST = 2_932_527
"""Day 31 December 9998; later days have 24 hours."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Ticks(NamedTuple):
    """The ticks of windows with equal zones."""

    zone: str = ""

    def of(self, us: Ints) -> Ints:
        """Return the tick that contains each moment, at most about ``FAR_US``."""
        if not self.zone:
            return us
        us = np.minimum(us, FAR_US)
        # The day of UTC, the one before or the one after.
        day = us // DAY_US - _FIRST
        return np.asarray(day + (self.us(day + 1) <= us) - (self.us(day) > us), np.int64)

    def us(self, ticks: Ints) -> Ints:
        """Return the begin of each tick."""
        if not self.zone:
            return ticks
        days, places = np.unique(np.minimum(ticks, _LAST), return_inverse=True)
        begins = np.array([_begin_us(self.zone, day) for day in days.tolist()], np.int64)
        return np.asarray(begins[places] + np.maximum(ticks - _LAST, 0) * DAY_US, np.int64)

    def in_ms(self, span_ms: int) -> int:
        """Return the number of ticks in a length of time."""
        return span_ms // DAY_MS if self.zone else span_ms * MILLISECOND_US


def sizes(span: Span) -> tuple[Ticks, int, int]:
    """Return the ticks of a window, and its length and slide in them."""
    ticks = Ticks(span.zone)
    return ticks, ticks.in_ms(span.length_ms), ticks.in_ms(span.slide_ms)


def last_cuts(comb: Comb, ts: Ints) -> Ints:
    """Return the last cut of a comb that is not after each stamp."""
    ticks = Ticks(comb.zone)
    at, every, first = ticks.of(ts), ticks.in_ms(comb.every_ms), ticks.in_ms(comb.first_ms)
    return ticks.us(at - (at - first) % every)


@lru_cache(1 << 16)
def _begin_us(zone: str, day: int) -> int:
    """Return the first moment at which the clock of a zone shows 00:00 of a day or later (us)."""
    midnight_s = (day + _FIRST) * 24 * HOUR_S
    low, high = midnight_s - 16 * HOUR_S, midnight_s + 16 * HOUR_S  # farther than any zone is
    before_s, after_s = _offset_s(zone, low), _offset_s(zone, high)
    if before_s == after_s:
        return (midnight_s - before_s) * 1_000_000
    while high - low > 1:  # until the offset changes at high
        middle = (low + high) // 2
        low, high = (middle, high) if _offset_s(zone, middle) == before_s else (low, middle)
    is_before = midnight_s - before_s < high
    return (midnight_s - before_s if is_before else max(high, midnight_s - after_s)) * 1_000_000


def _offset_s(zone: str, moment_s: int) -> int:
    """Return how far the clock of a zone is ahead of UTC at a moment."""
    moment = (_EPOCH + timedelta(seconds=moment_s)).astimezone(ZoneInfo(zone))
    offset = moment.utcoffset()
    assert offset is not None
    return int(offset.total_seconds())
