"""An event, as it arrives."""

from typing import NamedTuple


class Event(NamedTuple):
    """One arrival of one tuple of the stream.

    Two arrivals with the same ``source_id`` in the same task are deliveries of the same tuple:
    the first one counts, the others are redeliveries.
    """

    seq: int
    """Position in arrival order, 0..n-1."""
    source_id: int
    """Identity that the source gave the tuple (a signed 64-bit integer)."""
    key: str
    event_time_us: int
    """Event time, microseconds since the epoch."""
    value: float
    arrival_us: int
    """Arrival time, microseconds since the epoch, never decreasing with ``seq``."""
    stream: str = ""
    """Which of several streams, in rooms that have more than one (``join``: ``"R"``, ``"S"``)."""
