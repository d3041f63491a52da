"""Days of time zones, which calendar windows count.

Source: docs/script.md, section 5.

Rules of this file:

* A day begins when the clock of its zone shows midnight for the first time, or skips it.
* Days are numbered from a Monday, so that multiples of seven days are weeks.
"""

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from model.vocabulary.script.config import MILLISECOND_US
from model.vocabulary.script.slices import Span
from model.vocabulary.script.tree import DAY_MS

DAY_US = DAY_MS * MILLISECOND_US
SECOND_US = 1_000_000
MONDAY = datetime(1970, 1, 5, tzinfo=UTC)
LAST = (datetime(9998, 12, 31, tzinfo=UTC) - MONDAY).days
"""Last day that the calendar knows; later days have 24 hours."""


def day_after(span: Span, stamp_us: int) -> int:
    """Return the first day after a stamp (us) at whose start a calendar window may end."""
    every = span.slide_ms // DAY_MS
    # Monday is day 4 of 1970, counted from 0, and no clock is two days away from UTC.
    day = (stamp_us // DAY_US - 6) // every * every
    while begin_us(span.zone, day) <= stamp_us:
        day += every
    return day


def days_before_us(span: Span, end_us: int) -> int:
    """Return the start (us) of the calendar window that ends at ``end_us``."""
    # A zone that skips a day has two that begin at once: the first one ends the window.
    return begin_us(span.zone, day_after(span, end_us - 1) - span.length_ms // DAY_MS)


def begin_us(zone: str, day: int) -> int:
    """Return the moment (us since 1970) at which a day begins in a zone."""
    known = min(day, LAST)
    return _begin_s(zone, known) * SECOND_US + (day - known) * DAY_US


@lru_cache(1 << 16)
def _begin_s(zone: str, day: int) -> int:
    clock = ZoneInfo(zone)
    midnight = (MONDAY + timedelta(days=day)).replace(tzinfo=None)
    first, second = (int(midnight.replace(tzinfo=clock, fold=fold).timestamp()) for fold in (0, 1))
    if first <= second:
        return first

    def is_over(moment_s: int) -> bool:
        return datetime.fromtimestamp(moment_s, clock).replace(tzinfo=None) >= midnight

    # The clock skips midnight: ``first`` is by the offset before, ``second`` by that after.
    return second + bisect_left(range(second, first), True, key=is_over)
