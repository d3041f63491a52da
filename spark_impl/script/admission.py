"""Which arrivals of a sensor are let in (docs/script.md, section 4)."""

from typing import NamedTuple

import numpy as np

from model.vocabulary.script import REASON_LATE, REASON_NOT_FINITE
from spark_impl.script.exact import Floats, Ints
from spark_impl.script.operations import Tuples

REASONS = (REASON_NOT_FINITE, REASON_LATE)
"""A rejected arrival has a position in this list."""


class Arrivals(NamedTuple):
    """Arrivals of one sensor, in their order."""

    seq: Ints
    source_id: Ints
    ts: Ints
    values: Floats


class Clock(NamedTuple):
    """Where a sensor stands."""

    latest_us: int = -1
    """Latest event time that was let in; -1 before that."""
    wm_us: int = 0


class Admitted(NamedTuple):
    """What became of some arrivals."""

    source_id: Ints
    tuples: Tuples
    """Those that were let in."""
    rejected: Ints
    """Arrival numbers."""
    reasons: Ints
    clock: Clock


def admit(arrivals: Arrivals, known: Ints, clock: Clock, lateness_us: int | None) -> Admitted:
    """Judge arrivals one after the other; ``known`` are the identities that were let in before.

    The deliveries of a tuple have the same event time, so identities that lie below the watermark
    need not be known: a redelivery is late there.
    """
    finite = np.isfinite(arrivals.values)
    ts = np.where(finite, arrivals.ts, -1)
    latest = np.maximum.accumulate(np.concatenate(([clock.latest_us], ts)))
    wm = np.full(len(ts), clock.wm_us)
    if lateness_us is not None:
        wm = np.maximum(wm, latest[:-1] - lateness_us)
    late = finite & (arrivals.ts < wm)
    candidates = np.flatnonzero(finite & ~late)
    ids = arrivals.source_id[candidates]
    first = np.zeros(len(ids), np.bool_)
    first[np.unique(ids, return_index=True)[1]] = True
    chosen = candidates[first & ~np.isin(ids, known)]
    after = Clock(int(latest[-1]), clock.wm_us)
    if lateness_us is not None:
        after = after._replace(wm_us=max(clock.wm_us, after.latest_us - lateness_us))
    refused = np.flatnonzero(~finite | late)
    return Admitted(
        arrivals.source_id[chosen],
        Tuples(arrivals.ts[chosen], arrivals.values[chosen] + 0.0),  # -0 counts as 0
        arrivals.seq[refused],
        np.where(finite[refused], REASONS.index(REASON_LATE), REASONS.index(REASON_NOT_FINITE)),
        after,
    )
