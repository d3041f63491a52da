"""Measurables, which experiments run by name: ``MEASURABLES`` of ``sim/ROOM/measurables.py``."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import sim
from model.vocabulary.settings import Setting, look_up
from sim.kernel.distributions import FloatArray
from sim.kernel.run import TimedRun

Settings: TypeAlias = Mapping[str, str]
Figures: TypeAlias = Mapping[str, float | int | str | None]
"""Figures by name; ``None``, or no entry, for a figure without observations."""


class Measurable(NamedTuple):
    """A procedure that gives figures for settings and a seed, the same every time."""

    settings: Mapping[str, Setting]
    """Known settings with their defaults."""
    measure: Callable[[Settings, int], Figures]
    """Function to call; raises ``ValueError`` with one sentence for an impossible setting."""
    fans: Mapping[str, Callable[[Settings, int, Sequence[str]], Sequence[Figures]]] = {}
    """Functions that measure several values of one setting on the same arrivals, by the name of
    that setting. The figures, in the order of the values, must equal those of separate runs."""
    example: Mapping[str, str] = {}
    """Settings of a run in which unequal workers, tiers, bursts and faults can be seen."""
    fit: Callable[[Settings, str], Settings] = lambda example, _: example
    """Function that fits the example to another ``scenario``."""


def measurable(room: str, name: str) -> Measurable:
    """Return a measurable of ``room``; raise ``ValueError`` with a suggestion if unknown."""
    return look_up("run", name, measurables(room))


def measurables(room: str) -> Mapping[str, Measurable]:
    """Return all measurables of a room; raise ``ValueError`` if it is unknown or has none."""
    look_up("room", room, dict.fromkeys(rooms()))
    found: Mapping[str, Measurable] = import_module(module_of(room)).MEASURABLES
    return found


def rooms() -> list[str]:
    """Return the rooms that have measurables."""
    names = [each.name for each in iter_modules(sim.__path__) if each.ispkg]
    return [name for name in names if find_spec(module_of(name)) is not None]


def module_of(room: str) -> str:
    """Return the name of the module that declares the measurables of a room."""
    return f"sim.{room}.measurables"


def summaries(
    from_settings: Callable[[Settings, int], TimedRun],
    known: Mapping[str, Setting],
    example: Settings,
    **more: Any,
) -> Measurable:
    """Return a measurable of the summary of a timed run; ``more`` are further fields of it."""

    def measure(texts: Settings, seed: int) -> Figures:
        return from_settings(texts, seed).summary

    return Measurable(known, measure, example=example, **more)


# ---------------------------------------------------------------------- moments of a timed run

AT = "at"
MOMENT = Setting(
    "moment, as a share of the run", above=0, at_most=1, name=AT, kind=float, default=1.0
)
AT_S = "at_s"
SECOND = Setting("moment, in seconds", above=0, name=AT_S, kind=float, default=1.0)
TENTH = 0.1
SECOND_US = 1e6


def moments(
    from_settings: Callable[[Settings, int], TimedRun], known: Mapping[str, Setting]
) -> Measurable:
    """Return a measurable of the columns of a run's series at one moment.

    A moment is a share of the run, ``at``, above 0 and up to 1, or a number of seconds, ``at_s``,
    which is the same time in every run. The figure of a column is its mean over the tenth of the
    run, or of a second, that ends at the moment; rows without a value are left out.
    """
    several = {name: partial(_measure_moments, from_settings, name) for name in (AT, AT_S)}
    settings = {**known, AT: MOMENT, AT_S: SECOND}
    return Measurable(settings, partial(_measure_moment, several), several)


def _measure_moment(
    several: Mapping[str, Callable[[Settings, int, Sequence[str]], Sequence[Figures]]],
    settings: Settings,
    seed: int,
) -> Figures:
    if AT in settings and AT_S in settings:
        msg = f"{AT} and {AT_S} are both a moment; give one of them"
        raise ValueError(msg)
    name = AT_S if AT_S in settings else AT
    return several[name](settings, seed, [settings.get(name, MOMENT.write(MOMENT.default))])[0]


def _measure_moments(
    from_settings: Callable[[Settings, int], TimedRun],
    name: str,
    settings: Settings,
    seed: int,
    texts: Sequence[str],
) -> list[Figures]:
    """Measure all moments on the same run."""
    moments = [float({AT: MOMENT, AT_S: SECOND}[name].read(text)) for text in texts]
    others = {key: text for key, text in settings.items() if key not in (AT, AT_S)}
    series = from_settings(others, seed).series
    whole_us = series["time_us"][-1] if name == AT else SECOND_US
    return [columns_at(series, moment, whole_us) for moment in moments]


def columns_at(series: Mapping[str, FloatArray], moment: float, whole_us: float) -> Figures:
    """Return the mean of every column over the tenth of ``whole_us`` that ends at ``moment``."""
    share = series["time_us"] / whole_us
    # The tolerance is for shares such as 0.3, which no float equals.
    rows = (share > moment - TENTH + 1e-9) & (share <= moment + 1e-9)
    return {name: _mean(column[rows]) for name, column in series.items()}


def _mean(values: FloatArray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
