"""Queries of room ``join`` on the command line: options, defaults by input, validation.

Conditions are text, for example ``key and value within 2``.
"""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, NamedTuple, assert_never

import click

from model.vocabulary import Event, JoinConfig
from model.vocabulary.durations import parse_duration_us, write_duration
from model.vocabulary.join import (
    COLUMNS,
    OPERATORS,
    And,
    Apart,
    Band,
    Equi,
    Ineq,
    Predicate,
)
from model.vocabulary.settings import nearest, settings_of
from straggler.errors import UsageError
from straggler.inputs.columns import TIME_UNITS
from straggler.options import PATH, QUERY, Arguments, Duration, Option, in_options, setting_options
from straggler.rooms.join.limits import refuse_chain

ANY = "any"
_AND = " and "
_NEAR, _FAR = "within", "apart"
GRAMMAR = (
    f"write {' or '.join(COLUMNS)} (the same in both), value {_NEAR} 2, value {_FAR} 2,"
    f" value < (R's against S's; {' '.join(OPERATORS)}), several with{_AND}between, or {ANY}"
)
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


OF_FILES = (Defaults("5s", ("key",), 8),)
BY_INPUT = {
    "flights": (Defaults("0s", ("key",)),),
    "january": (Defaults("1h", ("key",)),),
    "stations": (Defaults("1h", ("value apart 10", "value within 1"), 16),),
    "iot_umts": (Defaults("5s", ("key",), 16),),
    "beijing": (Defaults("0s", ("key", "key and value >")),),
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
    yield Option("--window", window, "window_us", type=Duration(), section=QUERY)
    conditions = f"{GRAMMAR}; may be repeated, all share one chain (key)"
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


def needs_values(args: Arguments) -> bool:
    """Say whether a condition compares values; by default none does, for two files."""
    return any("value" in text.split() for text in args.on or ())


def queries(
    args: Arguments, input_name: str | None, events: Sequence[Event]
) -> Iterator[JoinConfig]:
    """Yield the chains for an input that the options describe (``None``: for two files).

    Without ``--lateness`` it is the smallest with which none of the events is late.

    Raise :class:`UsageError` with one sentence that names the offending value.
    """
    defaults = OF_FILES if input_name is None else BY_INPUT[input_name]
    lateness_us = smallest_lateness(events)
    configs = [_config(args, each, lateness_us) for each in defaults]
    # Options may have made them the same.
    yield from dict.fromkeys(configs)


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


def _config(args: Arguments, defaults: Defaults, lateness_us: int) -> JoinConfig:
    try:
        conditions = [parse_condition(text) for text in args.on or defaults.conditions]
    except ValueError as error:
        raise UsageError(f"--on: {error}") from error
    given = {
        "window_us": parse_duration_us(defaults.window),
        "lateness_us": lateness_us,
        "workers": WORKERS,
        "block_size": defaults.block_size,
        "credit": CREDIT,
    }
    for setting in (*given, "idle_after_us"):
        if (value := getattr(args, setting)) is not None:
            given[setting] = value
    named = tuple((write_condition(condition), condition) for condition in conditions)
    try:
        config = JoinConfig(queries=named, **given)  # type: ignore[arg-type]  # the fields are given by name
    except ValueError as error:
        raise UsageError(in_options(str(error), settings_of(JoinConfig), OTHERS)) from error
    refuse_chain("--workers", config.workers, "--window", config.window_us)
    return config


def refuse_keyless(config: JoinConfig, without_keys: Sequence[str]) -> None:
    """Refuse a condition on the key for streams without keys: it would match nothing, or all."""
    for name, predicate in config.queries:
        parts = predicate.parts if isinstance(predicate, And) else (predicate,)
        columns = {part.column for part in parts if isinstance(part, Equi)}
        columns |= {part.left for part in parts if isinstance(part, Ineq)}
        if "key" in columns and without_keys:
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


# ------------------------------------------------------------------------------------ conditions


def parse_condition(text: str) -> Predicate:
    """Parse a condition; raise ``ValueError`` with one sentence for anything else."""
    if text.strip() == ANY:
        return And()
    parts = tuple([_parse_part(text, part.split()) for part in text.split(_AND)])
    return parts[0] if len(parts) == 1 else And(parts)


def _parse_part(text: str, words: list[str]) -> Predicate:
    column, relation, number = (*words, "", "", "")[:3]
    if column not in COLUMNS or len(words) > 3:
        hint = nearest(column, COLUMNS)
        msg = f"{text!r} is not a condition: {GRAMMAR}{hint}"
        raise ValueError(msg)
    if len(words) == 1:
        return Equi(column)
    if len(words) == 2 and relation in OPERATORS:
        return Ineq(column, relation, column)
    if len(words) == 3 and relation in (_NEAR, _FAR):
        try:
            eps = float(number)
        except ValueError:
            msg = f"{number!r} in {text!r} is not a number"
            raise ValueError(msg) from None
        return Band(column, eps) if relation == _NEAR else Apart(column, eps)
    msg = f"{text!r} is not a condition: {GRAMMAR}"
    raise ValueError(msg)


def write_condition(predicate: Predicate) -> str:
    """Return a condition as text that :func:`parse_condition` parses, if the grammar allows it."""
    match predicate:
        case And(parts):
            return _AND.join(map(write_condition, parts)) or ANY
        case Equi(column):
            return column
        case Ineq(left, op):
            return f"{left} {op}"
        case Band(column, eps) | Apart(column, eps):
            relation = _NEAR if isinstance(predicate, Band) else _FAR
            short = f"{eps:g}"
            return f"{column} {relation} {short if float(short) == eps else eps}"
    assert_never(predicate)
