"""Points in time as ISO 8601 texts, by arithmetic: ``datetime`` has a clock and ends in 9999.

Conditions of joins read times with it. Cells of files and streams are read by
``spark_impl/runtime/cell_times.py``, lengths of time by ``durations``.
"""

import re

DAY_US = 86_400_000_000
_ISO = re.compile(
    r"([+-]?\d{4,6})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?"
    r"(?:Z|([+-])(\d\d):?(\d\d))?"
)
_DAYS_IN_400_YEARS = 146_097
_DAYS_TO_1970 = 719_468
"""Days from 1 March of year 0, where the arithmetic begins, to the epoch."""


def parse_time_us(text: str) -> int:
    """Read a date, or a date and a time, as microseconds since the epoch; without a zone it is UTC.

    Raise ``ValueError`` with one sentence for any other text.
    """
    found = _ISO.fullmatch(text.strip())
    if found is None:
        msg = f"{text!r} is not a time: write it like 2014-03-01T00:30:00Z"
        raise ValueError(msg)
    year, month, day, hour, minute, second = (int(each or 0) for each in found.groups()[:6])
    fraction, sign, ahead_h, ahead_min = found.groups()[6:]
    ahead = int(ahead_h or 0) * 60 + int(ahead_min or 0)
    days = _days(year, month, day)
    is_date = _date(days) == (year, month, day)
    if not is_date or hour > 23 or max(minute, second, int(ahead_min or 0)) > 59 or ahead > 1439:
        msg = f"{text!r} is not a time: there is no such day, hour, minute, second or zone"
        raise ValueError(msg)
    minutes = hour * 60 + minute - (-ahead if sign == "-" else ahead)
    micros = int((fraction or "").ljust(6, "0"))
    return days * DAY_US + (minutes * 60 + second) * 1_000_000 + micros


def write_time(time_us: int) -> str:
    """Write microseconds since the epoch in UTC, with as few digits as needed."""
    days, rest_us = divmod(time_us, DAY_US)
    year, month, day = _date(days)
    seconds, micros = divmod(rest_us, 1_000_000)
    minutes, second = divmod(seconds, 60)
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    clock = f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}T{clock}{fraction}Z"


def _days(year: int, month: int, day: int) -> int:
    """Return the days since the epoch; years begin in March, so that a leap day ends one."""
    year -= month <= 2
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    leap_days = year // 4 - year // 100 + year // 400
    return 365 * year + leap_days + day_of_year - _DAYS_TO_1970


def _date(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a number of days since the epoch."""
    cycle, day = divmod(days + _DAYS_TO_1970, _DAYS_IN_400_YEARS)
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    in_month = day - (153 * month + 2) // 5 + 1
    return cycle * 400 + year + (month >= 10), (month + 2) % 12 + 1, in_month
