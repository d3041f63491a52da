"""The arrays and the state of a task's stream part, in rooms ``slack`` and ``watermark``.

An array of records is a numpy structured array. A key is a number: its position in the sorted list
of keys that travels with the arrays.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from spark_impl.runtime.arrays import Bools, Column, Floats, Ints, Records

PANE = np.dtype([("key", "<i8"), ("pane", "<i8"), ("lo", "<i8"), ("n", "<i8"), ("acc", "<f8")])
"""Tuples of one pane that count for the windows ``lo`` and later: their number and their sum,
minimum or maximum, 0 for counts. Rank aggregates have one record for each tuple, with its value."""

IDENTITY = np.dtype([("source_id", "<i8"), ("limit", "<i8")])
"""A known identity, and the watermark (us) at which it is forgotten."""

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
"""The stream's answer for a window, with slack and watermark when it closed."""

LATE = np.dtype(
    [
        ("key", "<i8"),
        ("first", "<i8"),
        ("windows", "<i8"),
        ("source_id", "<i8"),
        ("event_time_us", "<i8"),
    ]
)
"""The late pairs of one tuple: ``windows`` windows from ``first`` on.

The closed windows of a tuple are always its earliest ones, so two numbers describe them all: a
tuple that is late for fifty windows takes one record.
"""

REJECTED = np.dtype(
    [
        ("seq", "<i8"),
        ("source_id", "<i8"),
        ("reason", "<i8"),
        ("key", "<i8"),
        ("event_time_us", "<i8"),
        ("value", "<f8"),
    ]
)
"""A rejected arrival; ``reason`` is the code of :func:`spark_impl.windows.arrivals.reject`.

The event time is :data:`NO_CLOCK` if the windows of the arrival are unknown.
"""

NO_CLOCK = -(1 << 62)
"""Watermark and largest event time of a task without accepted tuples; no event time."""
INSERTED = -1
"""Key of a row that is no tuple but a watermark from upstream, in ``event_time_us``; ``arrival_us``
holds the largest event time upstream."""

Memory: TypeAlias = Any  # each room has a NamedTuple of its own, of numbers and arrays
"""The state of a room's rule between two micro-batches."""


class Rows(NamedTuple):
    """Arrivals of one task; columns of equal length."""

    seq: Ints
    source_id: Ints
    key: Ints
    event_time_us: Ints
    value: Floats
    arrival_us: Ints
    flaw: Ints
    """0, or 1 + the position in ``arrival_files.FLAWS`` of the arrival's first flaw."""

    def take(self, rows: Ints | Bools | slice) -> "Rows":
        """Return the rows at some positions, under a mask, or of a slice."""
        return Rows._make(column[rows] for column in self)

    def part(self, start: int, stop: int) -> "Rows":
        """Return the rows from ``start`` on, up to ``stop`` or the end."""
        return self.take(slice(start, stop))


class Clock(NamedTuple):
    """The position of one task in its stream."""

    seq: int = -1
    """Highest arrival number seen, rejected arrivals included."""
    t_max_us: int = NO_CLOCK
    wm_us: int = NO_CLOCK

    @property
    def is_running(self) -> bool:
        """True if the task has accepted something."""
        return self.t_max_us != NO_CLOCK


class TaskState(NamedTuple):
    """The state of a task between two micro-batches."""

    memory: Memory
    clock: Clock = Clock()
    keys: tuple[str, ...] = ()
    panes: Records = np.empty(0, PANE)
    identities: Records = np.empty(0, IDENTITY)
    """Sorted by ``source_id``."""


class Taken(NamedTuple):
    """Numbers of arrivals of a task in one micro-batch, without those that it refused."""

    accepted: int = 0
    """Arrivals that belong to some window."""
    redelivered: int = 0
    """Arrivals whose identity the task knew."""
    unasked: int = 0
    """Arrivals between windows that leave gaps."""
    opened: int = 0
    """Arrivals that are in an open window afterwards, minus those that were before."""
    late: int = 0
    """Arrivals all of whose windows were closed."""


class Output(NamedTuple):
    """The output of one micro-batch of one task."""

    keys: tuple[str, ...]
    records: Mapping[str, Records]
    """Records by the table to which they belong."""
    progress: Mapping[str, float]
    """The task's row of the table ``progress``, without grouping columns and task."""
    active: bool
    """True if the task accepted something or was flushed."""
    taken: Taken = Taken()


def fill_records(dtype: "np.dtype[np.void]", size: int, /, **columns: Column | float) -> Records:
    """Return ``size`` records filled from columns; missing columns are 0."""
    out = np.zeros(size, dtype)
    for name, column in columns.items():
        out[name] = column
    return out


def join_records(dtype: "np.dtype[np.void]", parts: Iterable[Records]) -> Records:
    """Return the records of all parts, of one dtype; the result may be one of the parts.

    They are joined as bytes, because numpy compares the fields of all dtypes in Python.
    """
    filled = [part for part in parts if len(part)]
    if len(filled) == 1:
        return filled[0]
    if not filled:
        return np.empty(0, dtype)
    whole = np.dtype((np.void, dtype.itemsize))
    return np.concatenate([part.view(whole) for part in filled]).view(dtype)
