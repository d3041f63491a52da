"""Options of inputs: names, queries on them, and the columns and form of a user's file."""

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import click

from model.vocabulary.workload import TIME_UNITS
from straggler.errors import UsageError
from straggler.inputs.columns import NO_GUARD_US, Columns
from straggler.inputs.text_files import is_stream
from straggler.options import LATENESS, QUERY, Arguments, Option, duration
from straggler.rooms import Room

SECTION = "columns of a file"
_COLUMNS = (
    ("--event-time", "event times (event_time)", False),
    ("--value", "values (value)", False),
    ("--key", "keys (key, if the file has it)", False),
    ("--arrival", "arrival times (arrival_time, if the file has it)", True),
    ("--id", "identities, to recognise redeliveries", True),
)
_NAMES = tuple(flag[2:].replace("-", "_") for flag, _, _ in _COLUMNS)
_OF_FILE = (*_NAMES, "time_unit", "separator")
"""Options that may differ between two files of one comparison."""


def _max_future(text: str) -> int:
    """Return a duration, or ``none``, in microseconds."""
    try:
        found = NO_GUARD_US if text == "none" else duration(text)
    except click.BadParameter as error:
        raise click.BadParameter(f"{error.message}, or none") from error
    if found < 0:
        raise click.BadParameter(f"{text!r} is negative; write a duration >= 0, or none")
    return found


def _header(text: str) -> int:
    """Return the number of a line, or 0 for ``none``."""
    if text == "none":
        return 0
    if not re.fullmatch(r"[1-9]\d{0,8}", text, re.ASCII):
        raise click.BadParameter(f"{text!r} is neither the number of a line nor none")
    return int(text)


def input_options(rooms: Sequence[Room]) -> Iterator[Option]:
    """Yield the options of inputs, of files, and of the rooms' queries."""
    inputs = "; ".join(dict.fromkeys(room.inputs for room in rooms))
    yield Option("--input", f"{inputs}; repeatable", multiple=True, metavar="NAME|PATH")
    yield Option("--seed", "seed of simulated inputs (0)", type=int, default=0, metavar="N")
    usual = ", ".join(dict.fromkeys(str(room.batches) for room in rooms))
    batches = f"number of equal micro-batches, at most one per row ({usual})"
    yield Option("--batches", batches, type=int, metavar="N", is_rare=True)
    for room in rooms:
        for option in map(copy, _query_options(room)):
            # The queries of all rooms do not fit a screen.
            option.is_rare = option.is_rare or len(rooms) > 1
            yield option
    yield from column_options()


def _query_options(room: Room) -> Iterator[Option]:
    yield from room.options()
    if room.workers is not None:
        yield LATENESS
        yield Option(
            "--workers", f"number of workers ({room.workers})", type=int, metavar="N", section=QUERY
        )


def column_options() -> Iterator[Option]:
    """Yield an option for each column, and those for the form of the file."""
    for flag, help, is_rare in _COLUMNS:
        yield Option(flag, help, metavar="COLUMN", section=SECTION, is_rare=is_rare)
    units = click.Choice(TIME_UNITS)
    yield Option("--time-unit", "unit of times (us)", type=units, section=SECTION)
    rare: dict[str, Any] = {"section": SECTION, "is_rare": True}
    yield Option(
        "--separator", "one character, also with a blank, or tab (,)", metavar="CHARACTER", **rare
    )
    yield Option("--encoding", "encoding of a CSV file (utf-8)", metavar="NAME", **rare)
    header = "line of the header, or none: columns are then called 1, 2, ... (1)"
    yield Option("--header", header, type=_header, metavar="LINE", **rare)
    guard = "how far an event time may lie beyond its arrival, or none (1d)"
    yield Option("--max-future", guard, type=_max_future, metavar="DURATION", **rare)


def columns_of(args: Arguments) -> Columns:
    """Return the columns that the options name; raise :class:`UsageError` for a bad option."""
    given = _given(args, "")
    if args.header is not None:
        given["header"] = args.header or None
    if args.encoding is not None:
        given["encoding"] = _encoding(args.encoding)
    return Columns(
        **given,
        max_future_us=args.max_future,
        differences=_given(args, "s_"),
    )


def refuse_numbers(args: Arguments) -> None:
    """Raise :class:`UsageError` for an impossible seed or number of micro-batches."""
    if args.seed < 0:
        raise UsageError(f"--seed is {args.seed}; it must be an integer >= 0")
    if args.batches is not None and args.batches < 1:
        raise UsageError(f"--batches is {args.batches}; it must be an integer >= 1")


def refuse_streams(args: Arguments, rooms: int) -> None:
    """Raise :class:`UsageError` for standard input or a pipe that would be read twice."""
    for name in args.input:
        if is_stream(Path(name)) and (rooms > 1 or args.input.count(name) > 1):
            why = "every room reads its input" if rooms > 1 else "it is named twice"
            raise UsageError(f"--input {name!r} is a pipe, which can be read once, and {why}")


def _given(args: Arguments, prefix: str) -> dict[str, Any]:
    values: Mapping[str, Any] = vars(args)
    given = {name: values.get(prefix + name) for name in _OF_FILE}
    if given["separator"] is not None:
        flag = f"--{prefix}separator".replace("_", "-")
        given["separator"] = _separator(flag, given["separator"])
    return {name: value for name, value in given.items() if value is not None}


def _separator(flag: str, text: str) -> str:
    separator = "\t" if text in {"tab", "\\t"} else text
    if not re.fullmatch(r'[^"\r\n\0] ?', separator):
        raise UsageError(f"{flag} is {text!r}; it must be one character, also with a blank, or tab")
    return separator


def _encoding(name: str) -> str:
    try:
        codecs.lookup(name)
        b"".decode(name)
    except (LookupError, ValueError) as error:
        raise UsageError(f"--encoding is {name!r}; there is no such encoding of text") from error
    return name
