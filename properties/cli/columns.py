"""Columns of a user's file, as options: what they are called, and how its times are written."""

import argparse

from properties.data.tables import TIME_UNITS, Columns
from properties.errors import UsageError


def add_columns(parser: argparse.ArgumentParser) -> None:
    """One option a column."""
    group = parser.add_argument_group("columns of a file")
    group.add_argument("--event-time", metavar="COLUMN", help="(event_time)")
    group.add_argument("--value", metavar="COLUMN", default="value", help="(value)")
    group.add_argument("--key", metavar="COLUMN", help="(key, if there is one)")
    group.add_argument("--arrival", metavar="COLUMN", help="(arrival_time, if there is one)")
    group.add_argument("--id", metavar="COLUMN", help="identity, to recognise redeliveries")
    group.add_argument("--time-unit", choices=TIME_UNITS, default="us", help="(us)")
    group.add_argument("--separator", default=",", help="one character, or tab (,)")


def columns_of(args: argparse.Namespace) -> Columns:
    """What the options say; :class:`UsageError` for a separator that is none."""
    separator = "\t" if args.separator in {"tab", "\\t"} else args.separator
    if len(separator) != 1:
        raise UsageError(f"--separator is {separator!r}; it must be one character, or tab")
    return Columns(
        args.event_time, args.value, args.key, args.arrival, args.id, args.time_unit, separator
    )
