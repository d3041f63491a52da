"""Refusal of settings and workloads that would take all day, or all memory, to run."""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import TypeVar

from model.vocabulary import Workload
from model.vocabulary.durations import LONGEST_US
from model.vocabulary.settings import JsonObject
from straggler.errors import UsageError

ConfigT = TypeVar("ConfigT")


def read_config(read: Callable[[JsonObject], ConfigT], workload: Workload) -> ConfigT:
    """Return the query of a stored workload; raise :class:`UsageError` if it has none."""
    try:
        return read(workload.config)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from error


def refuse_larger(settings: Mapping[str, str], largest: Mapping[str, float]) -> None:
    """Raise :class:`UsageError` for a setting above its limit."""
    for key, text in settings.items():
        if key in largest and _parse(text) > largest[key]:
            raise UsageError(f"{key} is {text}; at most {largest[key]} is allowed")


def refuse_long_times(settings: Mapping[str, str]) -> None:
    """Raise :class:`UsageError` for a time beyond the longest duration."""
    for key, text in settings.items():
        number = _parse(text)
        if key.endswith("_us") and isfinite(number) and abs(number) > LONGEST_US:
            raise UsageError(f"{key} is {text}; it must be at most {LONGEST_US}")


def _parse(text: str) -> float:
    """Return ``text`` as a number; 0 for any other text, which its setting refuses."""
    try:
        return float(text)
    except ValueError:
        return 0.0
