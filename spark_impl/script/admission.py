"""Which arrivals of a sensor are let in (docs/script.md, section 4)."""

from typing import NamedTuple

import numpy as np

from model.vocabulary import ScriptConfig
from model.vocabulary.script import REASON_LATE, REASON_NOT_FINITE
from spark_impl.runtime.arrays import Bools, Floats, Ints
from spark_impl.script.arithmetic import Tuples
from spark_impl.windows.disorder import inversions, sizes, wait_us

REASONS = (REASON_NOT_FINITE, REASON_LATE)
"""A rejected arrival has a position in this list."""


class Arrivals(NamedTuple):
    """Arrivals of one sensor, in their order."""

    seq: Ints
    source_id: Ints
    ts: Ints
    values: Floats


class Waiting(NamedTuple):
    """How far behind the latest tuple of its sensor a tuple may lie."""

    longest_us: int | None = None
    """``None``: as far as it likes."""
    watermark: str = "fixed"
    """Always the longest, or by the disorder of the last arrivals."""
    cluster: int = 50
    """How many arrivals these are."""


def waiting_of(config: ScriptConfig) -> Waiting:
    """What a set of workflows asks for."""
    return Waiting(config.lateness_us, config.watermark, config.cluster)


class Clock(NamedTuple):
    """Where a sensor stands."""

    latest_us: int = -1
    """Latest event time that it has had; -1 before that."""
    wm_us: int = 0
    inv: int = 0
    """Pairs of the cluster that are out of order."""
    cluster: Ints = np.empty(0, np.int64)
    """Event times of the last arrivals, in their order, if the watermark follows their disorder."""


class Admitted(NamedTuple):
    """What became of some arrivals."""

    source_id: Ints
    tuples: Tuples
    """Those that were let in."""
    rejected: Ints
    """Arrival numbers."""
    reasons: Ints
    clock: Clock


def admit(arrivals: Arrivals, known: Ints, clock: Clock, waiting: Waiting) -> Admitted:
    """Judge arrivals one after the other; ``known`` are the identities that were let in before.

    The deliveries of a tuple have the same event time, so identities that lie below the watermark
    need not be known: a redelivery is late there.
    """
    finite = np.isfinite(arrivals.values)
    if waiting.watermark == "fixed":
        wm, after = _fixed(arrivals.ts, finite, clock, waiting.longest_us)
    else:
        again = np.flatnonzero(finite)
        again = again[~_new(arrivals.source_id[again], known)]
        wm, after = _by_disorder(arrivals.ts, finite, again, clock, waiting)
    late = finite & (arrivals.ts < wm)
    candidates = np.flatnonzero(finite & ~late)
    chosen = candidates[_new(arrivals.source_id[candidates], known)]
    refused = np.flatnonzero(~finite | late)
    return Admitted(
        arrivals.source_id[chosen],
        Tuples(arrivals.ts[chosen], arrivals.values[chosen] + 0.0),  # -0 counts as 0
        arrivals.seq[refused],
        np.where(finite[refused], REASONS.index(REASON_LATE), REASONS.index(REASON_NOT_FINITE)),
        after,
    )


def _new(ids: Ints, known: Ints) -> Bools:
    """Which are neither known nor a repetition."""
    first = np.zeros(len(ids), np.bool_)
    first[np.unique(ids, return_index=True)[1]] = True
    return first & ~np.isin(ids, known)


def _fixed(ts: Ints, finite: Bools, clock: Clock, longest_us: int | None) -> tuple[Ints, Clock]:
    """The watermark before each arrival, and where the sensor stands after them."""
    latest = np.maximum.accumulate(np.concatenate(([clock.latest_us], np.where(finite, ts, -1))))
    wm = np.full(len(latest), clock.wm_us)
    if longest_us is not None:
        wm = np.maximum(wm, latest - longest_us)
    return wm[:-1], clock._replace(latest_us=int(latest[-1]), wm_us=int(wm[-1]))


def _by_disorder(
    ts: Ints, finite: Bools, again: Ints, clock: Clock, waiting: Waiting
) -> tuple[Ints, Clock]:
    """The same, where the last arrivals say how long to wait.

    ``again`` are redeliveries. Those that are late count in the cluster, and which are depends on
    what counted before them: they are guessed, until the guess is what follows from it. A guess
    that is right up to some redelivery yields one that is right for the next one, too.
    """
    recognised = again
    while True:
        counted = finite.copy()
        counted[recognised] = False
        stands, after = _followed(ts[counted], clock, waiting)
        wm = stands[np.cumsum(counted) - counted]
        found = again[ts[again] >= wm[again]]
        if np.array_equal(found, recognised):
            return wm, after
        recognised = found


def _followed(times: Ints, clock: Clock, waiting: Waiting) -> tuple[Ints, Clock]:
    """The watermark before the first of some arrivals that count, and after each of them."""
    assert waiting.longest_us is not None  # the configuration says so
    if not len(times):
        return np.array([clock.wm_us]), clock
    before = clock.cluster
    inv = inversions(waiting.cluster, before, clock.inv, times)
    n = sizes(waiting.cluster, len(before), len(times))
    wait = wait_us(waiting.watermark, waiting.longest_us, inv, n)
    latest = np.maximum(np.maximum.accumulate(times), clock.latest_us)
    wm = np.maximum.accumulate(np.concatenate(([clock.wm_us], latest - wait)))
    cluster = np.concatenate((before, times))[-waiting.cluster :]
    return wm, Clock(int(latest[-1]), int(wm[-1]), int(inv[-1]), cluster)
