"""Durations as people write them: ``500ms``, ``5s``, ``6h``."""

import re
from decimal import Decimal

UNITS_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
LONGEST_US = 2**63 - 1
"""Longest duration in 64 bits, some 292,000 years."""
_DURATION = re.compile(r"([+-]?\d+(?:\.\d+)?) *([a-z]*)")


def parse_duration_us(text: str) -> int:
    """Read a duration as integer microseconds.

    Raise ``ValueError`` with one sentence for any other text, a missing unit, a fraction of a
    microsecond, or more than 64 bits.
    """
    match = _DURATION.fullmatch(text.strip().lower())
    unit_us = UNITS_US.get(match.group(2)) if match else None
    if match is None or unit_us is None:
        units = ", ".join(UNITS_US)
        msg = f"{text!r} is not a duration: write a number and a unit ({units}), like 500ms or 6h"
        raise ValueError(msg)
    duration_us = Decimal(match.group(1)) * unit_us
    if abs(duration_us) > LONGEST_US:
        msg = f"{text!r} is longer than {LONGEST_US:,} us, the longest duration there is"
        raise ValueError(msg)
    if duration_us != int(duration_us):
        msg = f"{text!r} is not a whole number of microseconds"
        raise ValueError(msg)
    return int(duration_us)


def write_short(duration_us: float) -> str:
    """Write microseconds with three digits, in the largest unit in which that is at least 1."""
    units = reversed(UNITS_US.items())
    name, us = next((each for each in units if abs(duration_us) >= each[1]), ("us", 1))
    number = duration_us / us
    digits = 0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 2
    return f"{number:,.{digits}f}{name}"


def write_duration(duration_us: int) -> str:
    """Write microseconds in the largest unit that needs no fraction: ``5s``, ``1500ms``."""
    if duration_us == 0:
        return "0s"
    name = next(name for name, us in reversed(UNITS_US.items()) if duration_us % us == 0)
    return f"{duration_us // UNITS_US[name]}{name}"
