"""Admission of the arrivals of a sensor: a late one is rejected (docs/script.md, section 4)."""

from typing import NamedTuple

import numpy as np

from model.vocabulary import ScriptConfig
from model.vocabulary.script.config import REASON_LATE, REASON_NOT_FINITE
from spark_impl.runtime.arrays import Bools, Floats, Ints
from spark_impl.script.arithmetic import Tuples
from spark_impl.script.silence import NEVER, Moments, Timeline, idle_floors
from spark_impl.windows.disorder import cluster_sizes, count_inversions, wait_us

REASONS = (REASON_NOT_FINITE, REASON_LATE)
"""Reasons of rejections; a record holds the position in this list."""
LATE = REASONS.index(REASON_LATE)


class Arrivals(NamedTuple):
    """Arrivals of one sensor, in their order."""

    seq: Ints
    source_id: Ints
    ts: Ints
    values: Floats
    moments: Moments | None = None
    """The clock around each arrival, if sensors may be idle."""


class Clock(NamedTuple):
    """The progress of one sensor."""

    latest_us: int = -1
    """Latest event time so far; -1 before the first one."""
    wm_us: int = 0
    inv: int = 0
    """Number of pairs in the cluster that are out of order."""
    last_us: int = NEVER
    """The arrival clock at the last arrival, if sensors may be idle."""
    cluster: Ints = np.empty(0, np.int64)
    """Event times of the last arrivals, in their order, if the watermark follows their disorder."""

    def follow(self, timeline: Timeline, config: ScriptConfig) -> "Clock":
        """Return the progress after the clock of all sensors has moved on."""
        assert config.idle_after_us is not None  # a clock has come
        assert config.lateness_us is not None  # the configuration says so
        last_us = max(self.last_us, timeline.origin_us)
        if timeline.clock_us - last_us <= config.idle_after_us:
            return self
        return self._replace(wm_us=max(self.wm_us, timeline.latest_us - config.lateness_us))


class Admitted(NamedTuple):
    """The outcome of some arrivals."""

    source_id: Ints
    tuples: Tuples
    """The admitted tuples."""
    rejected: Ints
    """Positions of the rejected arrivals."""
    reasons: Ints
    redelivered: int
    """Number of arrivals whose identity was admitted before."""
    clock: Clock


def admit(
    arrivals: Arrivals, known: Ints, clock: Clock, config: ScriptConfig, origin_us: int = NEVER
) -> Admitted:
    """Admit or reject arrivals, at least one, one after the other.

    ``origin_us`` is the arrival time of the first arrival of all sensors. ``known`` are the
    identities that were admitted before. All deliveries of a tuple have the same
    event time, so identities below the watermark need not be known: a redelivery is late there.
    """
    finite = np.isfinite(arrivals.values)
    least = np.zeros(len(arrivals.ts), np.int64)
    if config.idle_after_us is not None:
        assert arrivals.moments is not None  # the router says so
        assert config.lateness_us is not None  # the configuration says so
        before_us = max(clock.last_us, origin_us)
        least, last_us = idle_floors(
            arrivals.moments, finite, before_us, config.idle_after_us, config.lateness_us
        )
        clock = clock._replace(last_us=last_us)
    if config.watermark == "fixed":
        wm, after = _fixed(arrivals.ts, finite, clock, config.lateness_us)
        wm = np.maximum(wm, least)
    else:
        again = np.flatnonzero(finite)
        again = again[~_new(arrivals.source_id[again], known)]
        wm, after = _by_disorder(arrivals.ts, finite, again, clock, config, least)
    after = after._replace(wm_us=max(after.wm_us, int(least[-1])))
    late = finite & (arrivals.ts < wm)
    candidates = np.flatnonzero(finite & ~late)
    chosen = candidates[_new(arrivals.source_id[candidates], known)]
    refused = np.flatnonzero(~finite | late)
    return Admitted(
        arrivals.source_id[chosen],
        Tuples(arrivals.ts[chosen], arrivals.values[chosen] + 0.0),  # -0 counts as 0
        refused,
        np.where(finite[refused], LATE, REASONS.index(REASON_NOT_FINITE)),
        len(candidates) - len(chosen),
        after,
    )


def _new(ids: Ints, known: Ints) -> Bools:
    """Return which identities are neither known nor repeated."""
    first = np.zeros(len(ids), np.bool_)
    first[np.unique(ids, return_index=True)[1]] = True
    return first & ~np.isin(ids, known)


def _fixed(ts: Ints, finite: Bools, clock: Clock, longest_us: int | None) -> tuple[Ints, Clock]:
    """Return the watermark before each arrival, and the clock after them."""
    latest = np.maximum.accumulate(
        np.concatenate(([clock.latest_us], np.where(finite, ts, clock.latest_us)))
    )
    wm = np.full(len(latest), clock.wm_us)
    if longest_us is not None:
        wm = np.maximum(wm, latest - longest_us)
    return wm[:-1], clock._replace(latest_us=int(latest[-1]), wm_us=int(wm[-1]))


def _by_disorder(
    ts: Ints, finite: Bools, again: Ints, clock: Clock, config: ScriptConfig, least: Ints
) -> tuple[Ints, Clock]:
    """Return the watermarks and the clock if the disorder of recent arrivals decides the wait.

    ``least`` are watermarks below which none lies. ``again`` are redeliveries. The late ones count
    in the cluster, and which ones are late depends on the earlier arrivals in it. So they are
    guessed, again and again until a guess agrees with its result. A guess that is right up to some
    redelivery makes the next one right, too.
    """
    recognised = again
    while True:
        counted = finite.copy()
        counted[recognised] = False
        stands, after = _followed(ts[counted], clock, config)
        wm = np.maximum(stands[np.cumsum(counted) - counted], least)
        found = again[ts[again] >= wm[again]]
        if np.array_equal(found, recognised):
            return wm, after
        recognised = found


def _followed(times: Ints, clock: Clock, config: ScriptConfig) -> tuple[Ints, Clock]:
    """Return the watermark before the first of some counted arrivals and after each of them."""
    assert config.lateness_us is not None  # the configuration says so
    if not len(times):
        return np.array([clock.wm_us]), clock
    before = clock.cluster
    inv = count_inversions(config.cluster, before, clock.inv, times)
    n = cluster_sizes(config.cluster, len(before), len(times))
    wait = wait_us(config.watermark, config.lateness_us, inv, n)
    latest = np.maximum(np.maximum.accumulate(times), clock.latest_us)
    wm = np.maximum.accumulate(np.concatenate(([clock.wm_us], latest - wait)))
    cluster = np.concatenate((before, times))[-config.cluster :]
    return wm, Clock(int(latest[-1]), int(wm[-1]), int(inv[-1]), clock.last_us, cluster)
