"""Days of time zones and windows of them by definition, with the standard library alone.

It follows docs/script.md, section 5.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

MONDAY = date(1970, 1, 5)
MINUTE_S = 60


@cache
def begin_s(zone: str, day: int) -> int:
    """Return the first second at which a zone's clock shows 00:00 of a day or later.

    Every minute is tried, and then every second.
    """
    found = MONDAY + timedelta(days=day)
    midnight = datetime(found.year, found.month, found.day, tzinfo=UTC)
    clock = ZoneInfo(zone)

    def has_begun(second: int) -> bool:
        return datetime.fromtimestamp(second, clock).replace(tzinfo=UTC) >= midnight

    about_s = int(midnight.timestamp())
    minutes = range(about_s - 26 * 3_600, about_s + 26 * 3_600, MINUTE_S)
    minute = next(each for each in minutes if has_begun(each))
    return next(each for each in range(minute - MINUTE_S + 1, minute + 1) if has_begun(each))


def changes(zone: str, year: int) -> list[int]:
    """Return the days of a year on which the clock of a zone changes."""
    first = (date(year, 1, 1) - MONDAY).days
    return [day for day in range(first, first + 366) if hours(zone, day) != 24]


def hours(zone: str, day: int) -> float:
    """Return how long a day is."""
    noon = datetime(1970, 1, 5, 12, tzinfo=UTC) + timedelta(days=day)
    near = (noon + timedelta(days=days) for days in (-1, 1))
    offsets = {each.astimezone(ZoneInfo(zone)).utcoffset() for each in near}
    return 24 if len(offsets) == 1 else (begin_s(zone, day + 1) - begin_s(zone, day)) / 3_600


def sums(
    zone: str, length: int, slide: int, days: range, pairs: Iterable[tuple[int, float]]
) -> Mapping[int, float]:
    """Return the sums of the windows that end with some days, by stamp (us)."""
    listed, found = [*pairs], dict[int, float]()
    for day in days:
        if day % slide == 0:
            low_us, high_us = (begin_s(zone, each) * 1_000_000 for each in (day - length, day))
            values = [value for ts_us, value in listed if low_us <= ts_us < high_us]
            if values:
                found.setdefault(high_us - 1_000, sum(values))
    return found
