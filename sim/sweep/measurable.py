"""What an experiment can run, by name: ``MEASURABLES`` of ``sim/ROOM/measurables.py``."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import NamedTuple, TypeAlias

import sim
from sim.settings import Setting, chosen

Settings: TypeAlias = Mapping[str, str]
Figures: TypeAlias = Mapping[str, float | int | str | None]
"""Figures by name; ``None``, or left out, for one of which nothing was seen."""


class Measurable(NamedTuple):
    """Something that gives figures for settings and a seed, the same every time.

    Functions are module-level ones, so that other processes can be told about them by name.
    """

    settings: Mapping[str, Setting]
    """Those there are, with their defaults."""
    measure: Callable[[Settings, int], Figures]
    """``ValueError`` with one sentence for a setting that cannot be."""
    fans: Mapping[str, Callable[[Settings, int, Sequence[str]], Sequence[Figures]]] = {}
    """By the name of a setting: figures for several of its values, in their order, on the same
    arrivals. They must be those that one value alone would give."""


def measurable(room: str, name: str) -> Measurable:
    """What room ``room`` calls ``name``; ``ValueError`` with a suggestion if there is no such."""
    return chosen("run", name, measurables(room))


def measurables(room: str) -> Mapping[str, Measurable]:
    """All of a room; ``ValueError`` for a room that does not exist or of which nothing can be."""
    chosen("room", room, dict.fromkeys(rooms()))
    found: Mapping[str, Measurable] = import_module(module_of(room)).MEASURABLES
    return found


def rooms() -> list[str]:
    """Rooms of which something can be measured."""
    names = [each.name for each in iter_modules(sim.__path__) if each.ispkg]
    return [name for name in names if find_spec(module_of(name)) is not None]


def module_of(room: str) -> str:
    """The module that says what can be measured of a room."""
    return f"sim.{room}.measurables"
