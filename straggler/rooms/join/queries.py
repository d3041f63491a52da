"""Queries of room ``join`` on the command line: options, defaults by input, validation.

Conditions are text, for example ``key and r.pm25 within 2 of s.pm25``.
"""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, NamedTuple

import click

from model.vocabulary import Event, JoinConfig
from model.vocabulary.durations import parse_duration_us, write_duration
from model.vocabulary.join_conditions import GRAMMAR
from model.vocabulary.join_predicates import columns_of
from model.vocabulary.settings import settings_of
from model.vocabulary.workload import TIME_UNITS
from straggler.errors import UsageError
from straggler.options import PATH, QUERY, Arguments, Option, duration, in_options, setting_options
from straggler.rooms.join.conditions import Conditions
from straggler.rooms.join.limits import refuse_chain

BATCHES = 4
"""Default of ``--batches``."""
WORKERS = 3
"""Default number of workers, with one in the middle."""
BLOCK_SIZE = 64
CREDIT = 4


class Defaults(NamedTuple):
    """Default queries of an input; all conditions share one chain."""

    window: str
    conditions: tuple[str, ...]
    block_size: int = BLOCK_SIZE


OF_FILES = Defaults("5s", ("key",), 8)
BY_INPUT = {
    "flights": Defaults("0s", ("key",)),
    "january": Defaults("1h", ("key",)),
    "stations": Defaults("1h", ("value apart 10", "value within 1"), 16),
    "iot_umts": Defaults("5s", ("key",), 16),
    "beijing": Defaults("0s", ("key", "key and value >")),
}

_OWN = ("block_size", "credit", "idle_after_us")
_USUAL = {"block_size": f"by input, at most {BLOCK_SIZE}", "credit": str(CREDIT)}
OTHERS = {"window_us": "--window", "the name of a query": "--on"}


def options() -> Iterator[Option]:
    """Yield the options of a chain."""
    files = "with --s two files to join, instead of --input"
    yield Option("--r", files, type=PATH, metavar="FILE", section=QUERY)
    yield Option("--s", "the other file", type=PATH, metavar="FILE", section=QUERY)
    window = "largest distance in time of a pair (by input)"
    yield Option("--window", window, "window_us", type=duration, section=QUERY)
    conditions = f"{GRAMMAR}; a and b are columns of the files; may be repeated (key)"
    yield Option("--on", conditions, metavar="CONDITION", multiple=True, section=QUERY)
    known = settings_of(JoinConfig)
    own = {name: known[name] for name in _OWN}
    yield from setting_options(own, _USUAL, everyday=("block_size", "credit"))
    yield from _second_file_options()


def _second_file_options() -> Iterator[Option]:
    """Yield the options of file S, if its columns differ from those of file R."""
    rare: dict[str, Any] = {"section": QUERY, "is_rare": True}
    for name in ("event-time", "value", "key", "arrival", "id"):
        yield Option(f"--s-{name}", f"--{name} of file S (the same)", metavar="COLUMN", **rare)
    units = click.Choice(TIME_UNITS)
    yield Option("--s-time-unit", "--time-unit of file S (the same)", type=units, **rare)
    one = "--separator of file S (the same)"
    yield Option("--s-separator", one, metavar="CHARACTER", **rare)


def smallest_lateness(events: Sequence[Event]) -> int:
    """Return the smallest lateness (us) with which no event is late in its stream."""
    latest: dict[str, int] = {}
    lateness_us = 0
    for event in events:
        if isfinite(event.value):
            before_us = latest.setdefault(event.stream, event.event_time_us)
            lateness_us = max(lateness_us, before_us - event.event_time_us)
            latest[event.stream] = max(before_us, event.event_time_us)
    return lateness_us


def query(
    args: Arguments, defaults: Defaults, conditions: Conditions, events: Sequence[Event]
) -> JoinConfig:
    """Return the chain that the options describe, with the defaults of an input.

    Without ``--lateness`` it is the smallest with which none of the events is late.

    Raise :class:`UsageError` with one sentence that names the offending value.
    """
    given: dict[str, Any] = {
        "window_us": parse_duration_us(defaults.window),
        "lateness_us": smallest_lateness(events),
        "workers": WORKERS,
        "block_size": defaults.block_size,
        "credit": CREDIT,
    }
    for setting in (*given, "idle_after_us"):
        if (value := getattr(args, setting)) is not None:
            given[setting] = value
    try:
        config = JoinConfig(**conditions._asdict(), **given)
    except ValueError as error:
        raise UsageError(in_options(str(error), settings_of(JoinConfig), OTHERS)) from error
    refuse_chain("--workers", config.workers, "--window", config.window_us)
    return config


def refuse_keyless(config: JoinConfig, without_keys: Sequence[str]) -> None:
    """Refuse a condition on the key for streams without keys: it would match nothing, or all."""
    for name, predicate in config.queries:
        if any((stream, "key") in columns_of(predicate) for stream in without_keys):
            where = " and ".join(without_keys)
            raise UsageError(
                f"--on is {name!r}, but there are no keys in {where}: --key names a column,"
                " --on any joins every pair within the window"
            )


def describe(config: JoinConfig, is_asked: bool) -> str:
    """Return the queries in a few words: conditions, window, lateness, and other differences.

    ``is_asked`` says whether the user chose the lateness; otherwise nothing is late without
    ``idle_after_us``.
    """
    times = f"+-{write_duration(config.window_us)}"
    lateness = write_duration(config.lateness_us or 0)
    if config.idle_after_us is not None:  # tuples of an idle stream may be late
        times += f", lateness {lateness}, idle after {write_duration(config.idle_after_us)}"
    else:
        times += f", late after {lateness}" if is_asked else f", none late (lateness {lateness})"
    plain = {"workers": WORKERS, "credit": CREDIT}
    others = [
        f"{name}={getattr(config, name)}"
        for name, usual in plain.items()
        if getattr(config, name) != usual
    ]
    return ", ".join([" | ".join(name for name, _ in config.queries), times, *others])
