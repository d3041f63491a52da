"""Arrivals as columns: made once, at the start of a run."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from model.vocabulary import Event
from sim.kernel.distributions import FloatArray

IntArray: TypeAlias = NDArray[np.int64]
KINDS: tuple[Any, ...] = (np.int64, np.int64, np.int64, np.float64, np.int64, np.object_, np.int64)


class Columns(NamedTuple):
    """Arrivals by position, or the admitted tuples of one stream by rank."""

    source_id: IntArray
    key: IntArray
    """Number of the key in the order of code points."""
    event_us: IntArray
    value: FloatArray
    arrival_us: IntArray
    """Since the start of the run."""
    stream: NDArray[Any]
    """Of strings."""
    epoch: IntArray

    def taken(self, rows: NDArray[Any]) -> "Columns":
        """These rows, in this order."""
        return Columns(*[column[rows] for column in self])

    def put(self, row: int, others: "Columns") -> None:
        """Write others over the rows from this one on."""
        for column, new in zip(self, others, strict=True):
            column[row : row + len(new)] = new


def empty(size: int) -> Columns:
    """Room for so many rows."""
    return Columns(*[np.zeros(size, dtype=kind) for kind in KINDS])


def columns_of(
    arrivals: Sequence[Event], epochs: Sequence[int] | IntArray, start_us: int
) -> Columns:
    """What arrives in a run that starts at this moment, with the epoch of each arrival."""
    if not arrivals:
        return empty(0)
    _, ids, names, event_us, values, at_us, streams = zip(*arrivals, strict=True)
    numbers = {name: number for number, name in enumerate(sorted(set(names)))}
    key = [numbers[name] for name in names]
    columns = (ids, key, event_us, values, at_us, streams, epochs)
    arrived = Columns(*[np.array(*each) for each in zip(columns, KINDS, strict=True)])
    return arrived._replace(arrival_us=arrived.arrival_us - start_us)
