"""Micro-batches: where a trigger cuts the arrivals of a run."""

from collections.abc import Sequence

import numpy as np

from model.vocabulary import Event
from sim.distributions import require


def cut(
    arrivals: Sequence[Event], start_us: int, trigger_interval_us: int
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Micro-batches of a trigger: positions of the cuts, and the kernel time each batch ends at.

    An arrival at the very moment of a trigger belongs to the next batch; a trigger that finds
    nothing makes no batch. Raises ``ValueError`` for an interval that is not positive.
    """
    require(trigger_interval_us > 0, "trigger_interval_us", trigger_interval_us, "above 0")
    if not arrivals:
        return (), ()
    times_us = np.array([event.arrival_us - start_us for event in arrivals], dtype=np.int64)
    triggers, firsts = np.unique(times_us // trigger_interval_us + 1, return_index=True)
    ends_us = (triggers * trigger_interval_us).astype(np.float64)
    return tuple(firsts[1:].tolist()), tuple(ends_us.tolist())
