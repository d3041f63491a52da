"""What the stream part keeps and emits of windows, as plain arrays.

Rules of this file:

* Nothing here computes. An array of records is a numpy structured array; its bytes are what the
  state store and the blocks between operators hold.
* A key is a number here, a position in the sorted list of keys that travels with the arrays.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from spark_impl.runtime.arrays import Floats, Ints, Records

PANE = np.dtype([("key", "<i8"), ("pane", "<i8"), ("lo", "<i8"), ("n", "<i8"), ("acc", "<f8")])
"""Tuples of one pane that count for the windows ``lo`` and later: how many, and their sum, minimum
or maximum; for rank aggregates one record a tuple with its value."""

IDENTITY = np.dtype([("source_id", "<i8"), ("limit", "<i8")])
"""A remembered identity and the watermark at which it is forgotten, microseconds."""

RESULT = np.dtype(
    [
        ("key", "<i8"),
        ("j", "<i8"),
        ("value", "<f8"),
        ("n_rcv", "<i8"),
        ("slack_us", "<i8"),
        ("wm_us", "<i8"),
    ]
)
LATE = np.dtype(
    [
        ("key", "<i8"),
        ("first", "<i8"),
        ("windows", "<i8"),
        ("source_id", "<i8"),
        ("event_time_us", "<i8"),
    ]
)
"""The late pairs of one tuple: the windows ``first``, ``first + 1``, ..., ``windows`` of them.

The closed windows among those of a tuple are always the earliest ones, so two numbers say it all
and a tuple that is late for fifty windows still is one record.
"""

REJECTED = np.dtype([("seq", "<i8"), ("source_id", "<i8"), ("reason", "<i8")])

NO_CLOCK = -(1 << 62)
"""Watermark and largest event time of a task that has accepted nothing."""


class Rows(NamedTuple):
    """Arrivals of one task, columns of equal length."""

    seq: Ints
    source_id: Ints
    key: Ints
    event_time_us: Ints
    value: Floats
    arrival_us: Ints
    flaw: Ints
    """0, or 1 + the position in ``blocks.FLAWS`` of why the arrival cannot be looked at."""

    def take(self, which: Any) -> "Rows":
        """The rows at some positions, under a mask, or of a slice."""
        return Rows._make(column[which] for column in self)


class Clock(NamedTuple):
    """Where one task stands."""

    seq: int = -1
    """Highest arrival number seen, rejected arrivals included."""
    t_max_us: int = NO_CLOCK
    wm_us: int = NO_CLOCK

    @property
    def is_running(self) -> bool:
        """Whether the task has accepted something."""
        return self.t_max_us != NO_CLOCK


class TaskState(NamedTuple):
    """Everything that a task remembers between two micro-batches."""

    memory: Any
    """What the room's rule remembers: a NamedTuple of numbers and arrays."""
    clock: Clock = Clock()
    keys: tuple[str, ...] = ()
    panes: Records = np.empty(0, PANE)
    identities: Records = np.empty(0, IDENTITY)
    """Sorted by ``source_id``."""


class Output(NamedTuple):
    """What one micro-batch of one task gave."""

    keys: tuple[str, ...]
    records: Mapping[str, Records]
    """By the table that they are for."""
    progress: Mapping[str, float]
    """Where the task stands."""
    active: bool
    """Whether the task accepted something or was flushed."""


def records(dtype: np.dtype[Any], size: int, /, **columns: Any) -> Records:
    """A structured array of ``size`` records filled from columns; missing ones are 0."""
    out = np.zeros(size, dtype)
    for name, column in columns.items():
        out[name] = column
    return out
