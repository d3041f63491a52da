"""Readable names, units and numbers of results."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple


class Unit(NamedTuple):
    """The symbol of a unit, and its size in raw units."""

    symbol: str = ""
    size: float = 1.0


_TIMES = (("s", 1e6), ("ms", 1e3))
_RATES = {"_mhz": 1e-6, "_per_s": 1.0, "_hz": 1.0}
"""Suffixes of names, each with the size of one per second in its raw unit."""
_ASIDE = re.compile(r" \([^)]*\)$")
_DURATION = re.compile(r"(\w+_us)( from)? ([\d.]+)(?: to ([\d.]+))?")


Names = Mapping[str, str]
"""Readable names of factors and measures, by name in the experiment."""


def name_in_sentence(name: str, names: Names) -> str:
    """Return the readable name of a setting or measure for a sentence.

    Its unit, and the explanation in parentheses at its end, are left out.
    """
    if name in names:
        return _ASIDE.sub("", names[name])
    for suffix in ("_us", *_RATES):
        name = name.removesuffix(suffix)
    return name.replace("_", " ")


def unit_of(name: str, values: Sequence[float]) -> Unit:
    """Choose the unit of values: long times are not written in microseconds."""
    for suffix, size in _RATES.items():
        if name.endswith(suffix):
            return Unit("/s", size)
    if not name.endswith("_us"):
        return Unit()
    largest = max(map(abs, values), default=0)
    for symbol, size in _TIMES:
        if largest >= size:
            return Unit(f" {symbol}", size)
    return Unit(" µs")


def format_number(value: float) -> str:
    """Return a number with its significant digits."""
    if 1e3 <= abs(value) < 1e12:
        return f"{value:,.0f}"
    rounded = f"{value:.4g}"
    # Fixed notation: 0.00002 is easier to compare than 2e-05.
    return f"{Decimal(rounded):f}" if 1e-7 <= abs(value) < 1 else rounded


def with_limits(estimate: float, low: float, high: float, unit: Unit) -> str:
    """Return a number in its unit, with its confidence limits if they look different."""
    number, *limits = (format_number(value / unit.size) for value in (estimate, low, high))
    if limits == [number, number]:
        return f"{number}{unit.symbol}"
    return f"{number}{unit.symbol} ({' to '.join(limits)})"


def levels_in_words(label: str, names: Names) -> str:
    """Return readable levels from those of a sweep, such as ``window_us 500000, tag / shuffle``."""
    text = _DURATION.sub(lambda found: _duration(found, names), label)
    for name in names:
        text = re.sub(rf"(^|, ){name} ", rf"\g<1>{name_in_sentence(name, names)} ", text)
    return text.replace("_", " ")


def _duration(found: re.Match[str], names: Names) -> str:
    name, path, first, last = found.groups()
    values = [float(each) for each in (first, last) if each]
    unit = unit_of(name, values)
    numbers = " to ".join(format_number(value / unit.size) for value in values)
    return f"{name_in_sentence(name, names)}{path or ''} {numbers}{unit.symbol}"


def version(code: str) -> str:
    """Return a digest of sources, shortened; it still tells versions apart."""
    return code[:12]
