"""What is recorded of a run."""

from typing import NamedTuple

MILLISECOND_US = 1_000
END_US = (1 << 63) - 1
"""Watermark of a stream that has ended: above every event time."""
TIME_END_US = 1 << 61
"""Event times lie from 0 to below this."""

REASON_NOT_FINITE = "value is not a finite number"
REASON_LATE = "event time lies below the watermark of the sensor"


class Result(NamedTuple):
    """A tuple of a named stream that is computed: by a window or by arithmetic."""

    workflow: str
    name: str
    ts_us: int
    value: float


class Undefined(NamedTuple):
    """A time at which a statement had something to compute and got no finite number."""

    workflow: str
    name: str
    ts_us: int


class Rejected(NamedTuple):
    """An arrival that takes part in nothing, and why."""

    seq: int
    reason: str


class Hosted(NamedTuple):
    """A sensor whose tuples are sent to a worker."""

    worker: int
    sensor: str


WORDS: tuple[type, ...] = (Result, Undefined, Rejected, Hosted)
