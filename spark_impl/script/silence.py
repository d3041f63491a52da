"""The arrival clock of all sensors, by which silent ones move on (docs/script.md, section 4).

A worker is sent the arrivals of its own sensors only, but the clock runs over those of all. So a
piece of a history is sent in two parts: the arrivals, each with the clock before it within the
piece, and for every worker the clock of the whole piece (:class:`Pieces`). A worker puts the pieces
behind one another, and behind those of earlier micro-batches.
"""

from typing import NamedTuple

import numpy as np

from spark_impl.runtime.arrays import Bools, Ints
from spark_impl.runtime.storage import InputProblem

NEVER = -(1 << 62)
"""Stands for a time before the first arrival; its distance to any other time fits into 64 bits."""
LIMIT_US = 1 << 61
"""Arrival times lie below this, on both sides of 1970."""


class Timeline(NamedTuple):
    """The clock after all arrivals so far."""

    clock_us: int = NEVER
    """A, the largest arrival time."""
    latest_us: int = NEVER
    """G, the largest event time."""
    origin_us: int = NEVER
    """The arrival time of the first arrival."""


class Pieces(NamedTuple):
    """Clocks of pieces of a history, in their order; a piece has at least one arrival."""

    first: Ints
    """Number of the first arrival."""
    last: Ints
    clock: Ints
    """A of the piece alone."""
    latest: Ints
    """G of the piece alone."""
    origin: Ints
    """The arrival time of the first arrival that counts."""


class Moments(NamedTuple):
    """The clock around some arrivals, with one element each."""

    at: Ints
    """A after the arrival. Within a piece: the arrival time."""
    before: Ints
    """A before the arrival; ``NEVER`` if it is the first one."""
    latest: Ints
    """G before the arrival."""


def moments_within(arrival_us: Ints, ts: Ints, counted: Bools) -> Moments:
    """Return the clock around the arrivals of a piece, of which ``counted`` ones move it."""
    before, latest = (
        np.maximum.accumulate(np.concatenate(([NEVER], np.where(counted, each, NEVER))))[:-1]
        for each in (arrival_us, ts)
    )
    return Moments(arrival_us, before, latest)


class Course:
    """The clock through the pieces of a micro-batch."""

    def __init__(self, before: Timeline, pieces: Pieces) -> None:
        """Raise :class:`InputProblem` if the arrivals of two pieces are not in order."""
        if (pieces.first[1:] <= pieces.last[:-1]).any():
            msg = "the history has parts in which seq does not begin above the part before"
            raise InputProblem(msg)
        self._first = pieces.first
        self._clock, self._latest = (
            np.maximum.accumulate(np.concatenate(([start], own)))
            for start, own in (
                (before.clock_us, pieces.clock),
                (before.latest_us, pieces.latest),
            )
        )
        origin_us = before.origin_us
        if origin_us == NEVER and len(pieces.origin):
            origin_us = int(pieces.origin[0])
        self.after = Timeline(int(self._clock[-1]), int(self._latest[-1]), origin_us)
        """The clock after the micro-batch."""

    def place(self, seq: Ints, within: Moments) -> Moments:
        """Return the clock around arrivals, from that within their pieces."""
        piece = np.maximum(np.searchsorted(self._first, seq, side="right") - 1, 0)
        before = np.maximum(within.before, self._clock[piece])
        latest = np.maximum(within.latest, self._latest[piece])
        return Moments(np.maximum(within.at, before), before, latest)


def idle_floors(
    moments: Moments, counted: Bools, last_us: int, idle_us: int, lateness_us: int
) -> tuple[Ints, int]:
    """Return the least watermark of a sensor before each of its arrivals, and its last moment.

    ``last_us`` is the last moment before them. A silence between two arrivals raises the watermark
    most just before the second one, because G never falls.
    """
    moved = np.where(counted, moments.at, NEVER)
    last = np.maximum.accumulate(np.concatenate(([last_us], moved)))
    silent = moments.before - last[:-1] > idle_us
    raised = np.where(silent, moments.latest - lateness_us, 0)
    return np.maximum.accumulate(raised), int(last[-1])
