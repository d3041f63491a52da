"""Durations as people write them: ``500ms``, ``6h``, and Spark's intervals such as ``6 hours``.

A duration is such a text, a ``timedelta``, or a number in the unit in which its name ends, such as
``size_us``. Settings, arguments, options and conditions with a length of time are read here. Points
in time are read by ``iso_times`` in conditions of joins, by ``spark_impl/runtime/cell_times.py`` in
files and streams.
"""

import re
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

UNITS_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
TOO_LONG_US = 1 << 61
"""Upper bound of every time; beyond all calendars."""
LONGEST_US = 2**63 - 1
"""Longest duration in 64 bits, some 292,000 years."""
_WORDS_US = {
    "microsecond": 1,
    "millisecond": UNITS_US["ms"],
    "second": UNITS_US["s"],
    "minute": UNITS_US["min"],
    "hour": UNITS_US["h"],
    "day": UNITS_US["d"],
    "week": 7 * UNITS_US["d"],
}
"""Spark's units; months and years have no fixed length."""
_KNOWN_US = {**UNITS_US, **_WORDS_US, **{f"{name}s": us for name, us in _WORDS_US.items()}}
_ENDS_US = {"_us": 1, "_s": UNITS_US["s"]}
"""Units of numbers, by the end of their names."""
_PART = r"([+-]?\d+(?:\.\d+)?) *([a-z]+)"
_DURATION = re.compile(rf"(?:interval +)?{_PART}(?: +{_PART})*")


def parse_duration_us(text: str) -> int:
    """Read a duration as integer microseconds.

    Raise ``ValueError`` with one sentence for any other text, a missing unit, a fraction of a
    microsecond, or more than 64 bits.
    """
    words = text.strip().lower()
    parts = re.findall(_PART, words) if _DURATION.fullmatch(words) else []
    if not parts or any(unit not in _KNOWN_US for _, unit in parts):
        units = ", ".join(UNITS_US)
        msg = (
            f"{text!r} is not a duration: write a number and a unit ({units}), like 500ms or 6h,"
            " or an interval of Spark, like 6 hours"
        )
        raise ValueError(msg)
    duration_us = sum((Decimal(number) * _KNOWN_US[unit] for number, unit in parts), Decimal())
    if abs(duration_us) > LONGEST_US:
        msg = f"{text!r} is longer than {LONGEST_US:,} us, the longest duration there is"
        raise ValueError(msg)
    if duration_us != int(duration_us):
        msg = f"{text!r} is not a whole number of microseconds"
        raise ValueError(msg)
    return int(duration_us)


def duration_us(name: str, value: Any, in_us: str = "") -> int:
    """Return a text or a ``timedelta`` as microseconds.

    Raise ``ValueError`` with one sentence for any other value, for example a number, which has no
    unit: the argument ``in_us``, if there is one, takes it.
    """
    if isinstance(value, str):
        try:
            return parse_duration_us(value)
        except ValueError as error:
            msg = f"{name}: {error}"
            raise ValueError(msg) from error
    # Relative dates have no number of seconds, and arrays of pandas no single one.
    is_delta = hasattr(value, "total_seconds") and isinstance(value.days, int)
    if is_delta and not getattr(value, "nanoseconds", 0):  # of pandas
        duration_us: int = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        if abs(duration_us) <= LONGEST_US:
            return duration_us
        msg = f"{name} is {value}, longer than {LONGEST_US:,} us, the longest duration there is"
        raise ValueError(msg)
    msg = f"{name} is {value!r}; it must be a text such as '6 hours', or a timedelta"
    if in_us:
        msg += f"; {in_us} takes microseconds"
    raise ValueError(msg)


def in_unit_of_name(name: str, value: Any) -> Any:
    """Return a text or a ``timedelta`` in the unit in which ``name`` ends, ``_us`` or ``_s``.

    Any other value is returned as it is, and so is that of a name without such an end; of a list,
    each element counts. Raise ``ValueError`` with one sentence for a text that is no duration.
    """
    unit = next((us for end, us in _ENDS_US.items() if name.endswith(end)), None)
    if isinstance(value, tuple | list):
        return type(value)([in_unit_of_name(name, each) for each in value])
    if unit is None or not (isinstance(value, str) or hasattr(value, "total_seconds")):
        return value
    us = duration_us(name, value)
    return us if unit == 1 else us / unit


def resolve_times(given: Mapping[str, object], known: Collection[str]) -> dict[str, object]:
    """Return settings in which ``size="6 hours"`` has become ``size_us``, and others as they are.

    ``known`` are the names of all settings. Raise ``ValueError`` with one sentence for a value that
    is no duration, and for a time that is given twice.
    """
    found: dict[str, object] = {}
    for name, value in given.items():
        in_us = f"{name}_us"
        if name in known or in_us not in known:
            found[name] = value
        elif in_us in given:
            msg = f"{name} is {value!r} and {in_us} is {given[in_us]!r}; only one can be given"
            raise ValueError(msg)
        elif isinstance(value, tuple | list):
            found[in_us] = tuple(duration_us(name, each, in_us) for each in value)
        else:
            found[in_us] = None if value is None else duration_us(name, value, in_us)
    return found


def write_duration(duration_us: int) -> str:
    """Write microseconds in the largest unit that needs no fraction: ``5s``, ``1500ms``."""
    if duration_us == 0:
        return "0s"
    name = next(name for name, us in reversed(UNITS_US.items()) if duration_us % us == 0)
    return f"{duration_us // UNITS_US[name]}{name}"


def write_rough_duration(duration_us: int) -> str:
    """Write microseconds with their first three digits, rounded down: ``601s`` for 601.1 s."""
    return write_duration(duration_us - duration_us % 10 ** max(0, len(str(duration_us)) - 3))


def in_durations(sentence: str, given: Mapping[str, str]) -> str:
    """Return a refusal of a time in microseconds as one of a duration, under its name in ``given``.

    ``given`` maps names of settings, such as ``size_us``, to what their user wrote. A refusal of
    any other setting stays as it is.
    """
    name, _, rest = sentence.partition(" ")
    if name not in given:
        return sentence
    rest = re.sub(
        r"(^is |at most )(-?\d+)(?![.,\w])",
        lambda found: found[1] + write_duration(int(found[2])),
        rest,
    )
    rest = rest.replace("must be an integer", "must be a duration")
    return f"{given[name]} {rest}".replace("2^61", write_duration(TOO_LONG_US))
