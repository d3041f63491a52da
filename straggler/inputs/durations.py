"""Durations as the command line writes them: ``500ms``, ``5s``, ``6h``."""

from model.vocabulary.durations import UNITS_US


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
