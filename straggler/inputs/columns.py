"""Description of an input file by its user: columns, form, and requirements on rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from model.vocabulary.durations import UNITS_US

MAX_FUTURE_US = UNITS_US["d"]
"""Default of the guard: how far an event time may lie beyond its arrival time."""
NO_GUARD_US = 1 << 60
"""A guard that no time within the years 1 to 9999 reaches."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns of a file, the form of the file, and requirements on its rows.

    ``None`` stands for the default name of a column, which is used if the file has it.
    """

    event_time: str | None = None
    """Default ``event_time``; required if ``needs_times``."""
    value: str | None = None
    """Default ``value``; required if ``needs_values``."""
    key: str | None = None
    """Default ``key``; without it every tuple has the key ``""``."""
    arrival: str | None = None
    """Default ``arrival_time``; without it rows arrive in file order, as early as possible."""
    id: str | None = None
    """Default: the number of the row, which in a CSV file is that of its line."""
    time_unit: str = "us"
    separator: str = ","
    """One character; followed by a blank, blanks before a cell are no part of it."""
    encoding: str = "utf-8"
    header: int | None = 1
    """Line from which on the first row names the columns; without it they are called 1, 2, ..."""
    max_future_us: int | None = None
    """Limit of event time minus arrival time; default: a day, if there are arrival times."""
    since_1970: bool = False
    """True if rows with an event time before 1970 are set aside."""
    needs_times: bool = True
    """True if event times are required; rows without them are a microsecond apart."""
    needs_values: bool = True
    """True if values are required; without a column of values every row has the value 1."""
    differences: Mapping[str, Any] = field(default_factory=dict)
    """Attributes that differ for the second of two files, by name."""
    options: str = "--"
    """Prefix of the command-line options that name the columns."""

    def of_s(self) -> "Columns":
        """Return the columns of the second of two files, that of stream S."""
        return replace(self, **self.differences, options="--s-")


DEFAULT_COLUMNS = Columns()
