"""Plans arrivals: rejects flawed ones, drops redeliveries, and remembers identities.

A redelivery is dropped, or handled as a new tuple if its identity was forgotten. This depends on
the watermark before it, and so on the wait. A plan *assumes* that no identity is forgotten during
the plan. For each dropped arrival it names the watermark at which the assumption would be wrong.
"""

from typing import NamedTuple

import numpy as np

from model.vocabulary.windows import REASON_NOT_FINITE
from spark_impl.runtime.arrays import Ints, Records
from spark_impl.windows.records import IDENTITY, INSERTED, NO_CLOCK, Clock, Rows, fill_records
from spark_impl.windows.room import WindowSettings

REASONS = (REASON_NOT_FINITE,)


class Plan(NamedTuple):
    """Arrivals taken as accepted, one entry each, and redeliveries to drop."""

    rows: Rows
    first: Ints
    last: Ints
    t_max: Ints
    dropped: Ints
    """Positions of the dropped arrivals among all arrivals."""
    dropped_after: Ints
    """Number of accepted arrivals before each dropped one."""
    dropped_limit: Ints
    """The watermark at which the earlier delivery is forgotten."""

    @property
    def size(self) -> int:
        """Number of arrivals taken as accepted."""
        return len(self.t_max)


def reject(rows: Rows) -> Ints:
    """Return the number of each arrival's reason for rejection, 0 if it is accepted.

    A reason has 1 + its position in :data:`REASONS`, and flaws have the numbers that follow. The
    first one that applies counts, flaws before reasons.
    """
    out = np.zeros(len(rows.seq), np.int64)
    out[~np.isfinite(rows.value)] = 1
    flawed = rows.flaw > 0
    out[flawed] = len(REASONS) + rows.flaw[flawed]
    return out


def plan(settings: WindowSettings, clock: Clock, identities: Records, rows: Rows) -> Plan:
    """Return a plan of some arrivals that follow ``clock``."""
    dropped = limit = np.empty(0, np.int64)
    if settings.dedup:
        known = np.full(len(rows.seq), NO_CLOCK, np.int64)
        tuples = _tuples(settings, rows)
        known[tuples] = _known_limit(settings, identities, rows.take(tuples))
        drop = known > clock.wm_us
        dropped = np.flatnonzero(drop)
        limit = known[dropped]
        if len(dropped):
            rows = rows.take(~drop)
    ts, spec = rows.event_time_us, settings.windows
    first, last = (ts - spec.size_us) // spec.slide_us + 1, ts // spec.slide_us
    if settings.upstreams:
        inserted = rows.key == INSERTED
        last[inserted] = first[inserted] - 1  # a watermark joins no window and misses none
        ts = np.where(inserted, NO_CLOCK, ts)
    return Plan(
        rows,
        first=first,
        last=last,
        t_max=np.maximum(np.maximum.accumulate(ts), clock.t_max_us),
        dropped=dropped,
        dropped_after=dropped - np.arange(len(dropped)),
        dropped_limit=limit,
    )


def first_mistake(chosen: Plan, wm: Ints, start: int) -> int | None:
    """Return the first dropped arrival whose identity is already forgotten, None without any.

    ``wm`` holds the watermarks after the accepted arrivals ``start``, ``start + 1``, ... The result
    is a position in ``dropped``.
    """
    if not len(chosen.dropped):
        return None
    lo, hi = np.searchsorted(chosen.dropped_after, (start + 1, start + len(wm) + 1))
    before = wm[chosen.dropped_after[lo:hi] - start - 1]
    wrong = np.flatnonzero(chosen.dropped_limit[lo:hi] <= before)
    return int(lo + wrong[0]) if len(wrong) else None


def remember(
    settings: WindowSettings, identities: Records, chosen: Plan, upto: int, wm_us: int
) -> Records:
    """Add the identities of the first ``upto`` accepted arrivals, and remove forgotten ones."""
    if not settings.dedup:
        return identities
    identities = identities[identities["limit"] > wm_us]
    rows = chosen.rows.part(0, upto)
    rows = rows.take(_tuples(settings, rows))
    ids, where = np.unique(rows.source_id, return_index=True)  # the first of each
    limit = _limit(settings, rows.event_time_us[where])
    place = np.searchsorted(identities["source_id"], ids)
    new = limit > wm_us
    added = fill_records(IDENTITY, int(new.sum()), source_id=ids[new], limit=limit[new])
    merged: Records = np.insert(identities, place[new], added)
    return merged


def _tuples(settings: WindowSettings, rows: Rows) -> Ints | slice:
    """Return the positions of rows that are no watermarks from upstream."""
    return np.flatnonzero(rows.key != INSERTED) if settings.upstreams else slice(None)


def _known_limit(settings: WindowSettings, identities: Records, rows: Rows) -> Ints:
    """Return for every arrival the limit of its earlier delivery, NO_CLOCK without one."""
    ids = rows.source_id
    out = np.full(len(ids), NO_CLOCK, np.int64)
    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(ids[order][1:] == ids[order][:-1]) + 1
    if len(again):
        start = np.arange(len(ids))  # where in sorted order each identity begins
        start[again] = 0
        start = np.maximum.accumulate(start)
        out[order[again]] = _limit(settings, rows.event_time_us[order[start[again]]])
    if len(identities):
        place = np.searchsorted(identities["source_id"], ids)
        place[place == len(identities)] = 0
        known = identities["source_id"][place] == ids
        out[known] = identities["limit"][place[known]]
    return out


def _limit(settings: WindowSettings, ts: Ints) -> Ints:
    """Return the watermark at which a tuple's identity is forgotten."""
    spec = settings.windows
    return ts // spec.slide_us * spec.slide_us + (spec.size_us + settings.feedback)
