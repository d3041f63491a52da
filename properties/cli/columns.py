"""Options that name the columns of a user's file, and the unit of its times."""

from collections.abc import Iterator
from typing import Any

import click

from properties.data.tables import TIME_UNITS, Columns
from properties.errors import UsageError
from properties.options import Arguments, Option

SECTION = "columns of a file"


def column_options() -> Iterator[Option]:
    """Yield an option for each column."""
    for flag, help, default, is_rare in (
        ("--event-time", "event times (event_time)", None, False),
        ("--value", "values (value)", "value", False),
        ("--key", "keys (key, if the file has it)", None, False),
        ("--arrival", "arrival times (arrival_time, if the file has it)", None, True),
        ("--id", "identities, to recognise redeliveries", None, True),
    ):
        common: dict[str, Any] = {"section": SECTION, "is_rare": is_rare}
        yield Option(flag, help, metavar="COLUMN", default=default, **common)
    units = click.Choice(TIME_UNITS)
    yield Option("--time-unit", "unit of times (us)", type=units, default="us", section=SECTION)
    one = "one character, or tab (,)"
    yield Option(
        "--separator", one, metavar="CHARACTER", default=",", section=SECTION, is_rare=True
    )


def columns_of(args: Arguments) -> Columns:
    """Return the columns that the options name; raise :class:`UsageError` for a bad separator."""
    separator = "\t" if args.separator in {"tab", "\\t"} else args.separator
    if len(separator) != 1:
        raise UsageError(f"--separator is {separator!r}; it must be one character, or tab")
    return Columns(
        args.event_time, args.value, args.key, args.arrival, args.id, args.time_unit, separator
    )
