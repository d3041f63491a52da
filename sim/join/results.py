"""Pairs that came out of a timed chain, and when."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sim.join.columns import IntArray
from sim.join.content import NONE, Found
from sim.kernel.distributions import FloatArray


class Emitted(NamedTuple):
    """Pairs that came out, and when."""

    at_us: float
    epoch: int
    found: Found


class Results(NamedTuple):
    """All pairs of a run, as columns."""

    at_us: FloatArray
    """Kernel time."""
    epoch: IntArray
    query: IntArray
    """Number of the query."""
    r: IntArray
    """By rank, as is ``s``."""
    s: IntArray


def gathered(emitted: Sequence[Emitted]) -> Results:
    """Everything that came out, in its order."""
    if not emitted:
        return Results(np.empty(0), NONE, NONE, NONE, NONE)
    at_us, epochs, parts = zip(*emitted, strict=True)
    queries, r, s = zip(*parts, strict=True)
    sizes = [len(each) for each in r]
    at, epoch, query = (np.repeat(each, sizes) for each in (at_us, epochs, queries))
    return Results(at, epoch, query, np.concatenate(r), np.concatenate(s))
