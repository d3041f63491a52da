"""Which arrivals count, and what of their way does not depend on how long the task waits.

A redelivery is dropped, or handled as a new tuple when its identity was forgotten, depending on the
watermark before it, which depends on the wait. So a plan *assumes* that nothing is forgotten from
its beginning on, and says for each arrival that it drops at which watermark that would be wrong.
"""

from typing import NamedTuple

import numpy as np

from model.vocabulary.answers import REASON_FUTURE, REASON_NOT_FINITE
from model.vocabulary.slack import REASON_NEGATIVE
from spark_impl.runtime.arrays import Ints, Records
from spark_impl.windows.asked import Asked
from spark_impl.windows.records import IDENTITY, NO_CLOCK, Clock, Rows, records

REASONS = (REASON_NOT_FINITE, REASON_NEGATIVE, REASON_FUTURE)


class Plan(NamedTuple):
    """Arrivals taken as accepted, one entry each, and those dropped as redeliveries."""

    rows: Rows
    first: Ints
    last: Ints
    t_max: Ints
    dropped: Ints
    """Positions among all arrivals of those that are dropped."""
    dropped_after: Ints
    """How many accepted arrivals come before each of them."""
    dropped_limit: Ints
    """The watermark at which the earlier delivery is forgotten."""

    @property
    def size(self) -> int:
        """Number of arrivals taken as accepted."""
        return len(self.t_max)


def reject(asked: Asked, rows: Rows) -> Ints:
    """For every arrival 0, or 1 + the position in :data:`REASONS` of the first that applies.

    Arrivals with a flaw come before all others, numbered on behind the reasons.
    """
    out = np.zeros(len(rows.seq), np.int64)
    if asked.max_future_us is not None:
        # On this side of the inequality nothing overflows: an arrival may be any 64-bit integer.
        out[rows.event_time_us - asked.max_future_us > rows.arrival_us] = 3
    if asked.positive:
        out[rows.value < 0] = 2
    out[~np.isfinite(rows.value)] = 1
    flawed = rows.flaw > 0
    out[flawed] = len(REASONS) + rows.flaw[flawed]
    return out


def plan(asked: Asked, clock: Clock, identities: Records, rows: Rows) -> Plan:
    """Plan some arrivals that follow ``clock``."""
    dropped = limit = np.empty(0, np.int64)
    if asked.dedup:
        known = _known_limit(asked, identities, rows)
        drop = known > clock.wm_us
        dropped = np.flatnonzero(drop)
        limit = known[dropped]
        if len(dropped):
            rows = rows.take(~drop)
    ts, spec = rows.event_time_us, asked.windows
    return Plan(
        rows,
        first=(ts - spec.size_us) // spec.slide_us + 1,
        last=ts // spec.slide_us,
        t_max=np.maximum(np.maximum.accumulate(ts), clock.t_max_us),
        dropped=dropped,
        dropped_after=dropped - np.arange(len(dropped)),
        dropped_limit=limit,
    )


def first_mistake(chosen: Plan, wm: Ints, start: int) -> int | None:
    """The first dropped arrival whose identity is forgotten by then, given a stretch of the path.

    ``wm`` holds the watermarks after the accepted arrivals ``start``, ``start + 1``, ...; the
    answer is a position in ``dropped``.
    """
    if not len(chosen.dropped):
        return None
    lo, hi = np.searchsorted(chosen.dropped_after, (start + 1, start + len(wm) + 1))
    before = wm[chosen.dropped_after[lo:hi] - start - 1]
    wrong = np.flatnonzero(chosen.dropped_limit[lo:hi] <= before)
    return int(lo + wrong[0]) if len(wrong) else None


def remember(asked: Asked, identities: Records, chosen: Plan, upto: int, wm_us: int) -> Records:
    """The identities with those of the first ``upto`` accepted arrivals, without forgotten ones."""
    if not asked.dedup or not upto:
        return identities
    identities = identities[identities["limit"] > wm_us]
    ids, where = np.unique(chosen.rows.source_id[:upto], return_index=True)  # the first of each
    limit = _limit(asked, chosen.rows.event_time_us[where])
    place = np.searchsorted(identities["source_id"], ids)
    new = limit > wm_us
    if len(identities):
        new &= identities["source_id"][np.minimum(place, len(identities) - 1)] != ids
    added = records(IDENTITY, int(new.sum()), source_id=ids[new], limit=limit[new])
    merged: Records = np.insert(identities, place[new], added)
    return merged


def _known_limit(asked: Asked, identities: Records, rows: Rows) -> Ints:
    """For every arrival the limit of the earlier delivery, NO_CLOCK if there is none."""
    ids = rows.source_id
    out = np.full(len(ids), NO_CLOCK, np.int64)
    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(ids[order][1:] == ids[order][:-1]) + 1
    if len(again):
        start = np.arange(len(ids))  # where in sorted order each identity begins
        start[again] = 0
        start = np.maximum.accumulate(start)
        out[order[again]] = _limit(asked, rows.event_time_us[order[start[again]]])
    if len(identities):
        place = np.searchsorted(identities["source_id"], ids)
        place[place == len(identities)] = 0
        known = identities["source_id"][place] == ids
        out[known] = identities["limit"][place[known]]
    return out


def _limit(asked: Asked, ts: Ints) -> Ints:
    """The watermark at which a tuple's identity is forgotten."""
    spec = asked.windows
    return ts // spec.slide_us * spec.slide_us + (spec.size_us + asked.feedback_us)
