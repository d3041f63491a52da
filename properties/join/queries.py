"""Queries of room ``join`` on the command line: options, defaults by input, validation."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from model.vocabulary import JoinConfig
from model.vocabulary.join import And, Equi, Ineq
from model.vocabulary.settings import settings_of
from properties.data.durations import parse_duration_us, write_duration
from properties.errors import UsageError
from properties.join.conditions import GRAMMAR, parse_condition, write_condition
from properties.join.limits import refuse_chain
from properties.options import add_setting_options, in_options

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
    lateness: str
    block_size: int = BLOCK_SIZE


OF_FILES = (Defaults("5s", ("key",), "5s", 8),)
BY_INPUT = {
    # No flight is delayed by a day, so none is rejected; an hour would reject many.
    "flights": (Defaults("0s", ("key",), "24h"),),
    "january": (Defaults("1h", ("key",), "1h"),),
    "stations": (Defaults("1h", ("value apart 10", "value within 1"), "3h", 16),),
    "iot_umts": (Defaults("5s", ("key",), "1s", 16),),
    "beijing": (Defaults("0s", ("key", "key and value >"), "2h"),),
}

_OWN = ("block_size", "credit")
_USUAL = {"block_size": f"by input, at most {BLOCK_SIZE}", "credit": str(CREDIT)}
OTHERS = {"window_us": "--window", "the name of a query": "--on"}


def add_options(group: argparse._ArgumentGroup) -> None:
    """Add the options of a chain, except for its window."""
    files = "two files to join, R and S, with the columns named above"
    group.add_argument("--r", type=Path, metavar="FILE", help=files)
    group.add_argument("--s", type=Path, metavar="FILE", help="the other file")
    group.add_argument(
        "--on",
        action="append",
        metavar="CONDITION",
        help=f"{GRAMMAR}; may be repeated, all share one chain (key)",
    )
    known = settings_of(JoinConfig)
    add_setting_options(group, {name: known[name] for name in _OWN}, _USUAL)


def queries(args: argparse.Namespace, input_name: str | None) -> Iterator[JoinConfig]:
    """Yield the chains for an input that the options describe (``None``: for two files).

    Raise :class:`UsageError` with one sentence that names the offending value.
    """
    defaults = OF_FILES if input_name is None else BY_INPUT[input_name]
    configs = [_config(args, each) for each in defaults]
    # Options may have made them the same.
    yield from dict.fromkeys(configs)


def _config(args: argparse.Namespace, defaults: Defaults) -> JoinConfig:
    try:
        conditions = [parse_condition(text) for text in args.on or defaults.conditions]
    except ValueError as error:
        raise UsageError(f"--on: {error}") from error
    given = {
        "window_us": parse_duration_us(defaults.window),
        "lateness_us": parse_duration_us(defaults.lateness),
        "workers": WORKERS,
        "block_size": defaults.block_size,
        "credit": CREDIT,
    }
    for setting in given:
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


def describe(config: JoinConfig) -> str:
    """Return the queries in a few words: conditions, window, lateness, and other differences."""
    times = f"+-{write_duration(config.window_us)}"
    if config.lateness_us is not None:
        times += f", late after {write_duration(config.lateness_us)}"
    plain = {"workers": WORKERS, "credit": CREDIT}
    others = [
        f"{name}={getattr(config, name)}"
        for name, usual in plain.items()
        if getattr(config, name) != usual
    ]
    return ", ".join([" | ".join(name for name, _ in config.queries), times, *others])
