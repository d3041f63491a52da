"""Options that name the columns of a user's file, and the unit of its times."""

import argparse

from properties.data.tables import TIME_UNITS, Columns
from properties.errors import UsageError


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add an option for each column."""
    group = parser.add_argument_group("columns of a file")
    group.add_argument("--event-time", metavar="COLUMN", help="event times (event_time)")
    group.add_argument("--value", metavar="COLUMN", default="value", help="values (value)")
    group.add_argument("--key", metavar="COLUMN", help="keys (key, if the file has it)")
    group.add_argument(
        "--arrival", metavar="COLUMN", help="arrival times (arrival_time, if the file has it)"
    )
    group.add_argument("--id", metavar="COLUMN", help="identities, to recognise redeliveries")
    group.add_argument("--time-unit", choices=TIME_UNITS, default="us", help="unit of times (us)")
    group.add_argument("--separator", default=",", help="one character, or tab (,)")


def columns_of(args: argparse.Namespace) -> Columns:
    """Return the columns that the options name; raise :class:`UsageError` for a bad separator."""
    separator = "\t" if args.separator in {"tab", "\\t"} else args.separator
    if len(separator) != 1:
        raise UsageError(f"--separator is {separator!r}; it must be one character, or tab")
    return Columns(
        args.event_time, args.value, args.key, args.arrival, args.id, args.time_unit, separator
    )
