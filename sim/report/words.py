"""Readable names, units and numbers of results."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple


class Unit(NamedTuple):
    """The name of a figure with its unit, the unit's symbol, and its size in raw units."""

    label: str
    symbol: str = ""
    size: float = 1.0


_TIMES = (("s", 1e6), ("ms", 1e3))
_RATES = {"_mhz": 1e-6, "_per_s": 1.0, "_hz": 1.0}
"""Suffixes of names, each with the size of one per second in its raw unit."""
_ASIDE = re.compile(r" \([^)]*\)$")
_DURATION = re.compile(r"(\w+_us)( from)? ([\d.]+)(?: to ([\d.]+))?")


Names = Mapping[str, str]
"""Readable names of factors, measures and published numbers, by name in the experiment."""
NO_NAMES: Names = {}


def readable_name(name: str, names: Names = NO_NAMES) -> str:
    """Return the readable name of a setting or measure, without its unit."""
    if name in names:
        return names[name]
    for suffix in ("_us", *_RATES):
        name = name.removesuffix(suffix)
    return name.replace("_", " ")


def name_in_sentence(name: str, names: Names) -> str:
    """Return the name for a sentence, without the explanation or unit in parentheses at its end."""
    return _ASIDE.sub("", readable_name(name, names))


def unit_of(name: str, values: Sequence[float], names: Names = NO_NAMES) -> Unit:
    """Choose the unit of values: long times are not written in microseconds."""
    words = readable_name(name, names)
    for suffix, size in _RATES.items():
        if name.endswith(suffix):
            return Unit(f"{words} (1/s)", "/s", size)
    if not name.endswith("_us"):
        return Unit(words)
    largest = max(map(abs, values), default=0)
    for symbol, size in _TIMES:
        if largest >= size:
            return Unit(f"{words} ({symbol})", f" {symbol}", size)
    return Unit(f"{words} (µs)", " µs")


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


def levels_in_words(label: str, names: Names = NO_NAMES) -> str:
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


def values_in_words(values: Mapping[str, object], names: Names = NO_NAMES) -> str:
    """Return published numbers with their names and units."""
    parts = []
    for name, value in values.items():
        unit = unit_of(name, list(_numbers(value)), names)
        parts.append(f"{unit.label} {_value(value, unit)}")
    return "; ".join(parts)


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, int | float):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _numbers(each)


def _value(value: object, unit: Unit) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{_value(each, unit)} at {key}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(_value(each, unit) for each in value)
    return format_number(value / unit.size) if isinstance(value, int | float) else str(value)


def version(code: str) -> str:
    """Return a digest of sources, shortened; it still tells versions apart."""
    return code[:12]
