"""Admission of one stream at its source worker (docs/join.md, section 2).

Runs of arrivals are handled together; the result is that of one arrival at a time.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from model.vocabulary.join import (
    END_US,
    NO_WATERMARK_US,
    REASON_LATE,
    REASON_NOT_FINITE,
    Rejected,
)
from spark_impl.join.matching import Tuples
from spark_impl.runtime.arrays import Bools, Ints
from spark_impl.runtime.storage import InputProblem

_FARTHEST_US = 1 << 61
"""Limit of event times, 73,000 years from 1970; later ones could overflow in the widest window."""
_PRUNED_AT_LEAST = 4096
"""Least number of known identities that is pruned. Pruning waits until half of them can go."""


class Arrivals(NamedTuple):
    """Arrivals of one stream, in the order of ``seq``; the ranks in ``tuples`` are not set yet."""

    seq: Ints
    tuples: Tuples

    def run(self, first: int, last: int) -> "Arrivals":
        """Return the arrivals ``first``, ..., ``last - 1``."""
        return Arrivals(self.seq[first:last], self.tuples.take(slice(first, last)))


def check_times(arrivals: Arrivals, window_us: int) -> None:
    """Check that sums and differences of event times and the window do not overflow.

    Raise ``InputProblem`` with one sentence if some event time is too early or too late.
    """
    times = arrivals.tuples.ts
    if not len(times):
        return
    last_us = min(_FARTHEST_US, END_US - window_us) - 1
    for farthest_us in (int(times.min()), int(times.max())):
        if not -_FARTHEST_US <= farthest_us <= last_us:
            msg = (
                f"the event time {farthest_us} us is out of range: with a window of"
                f" {window_us} us it must lie between {-_FARTHEST_US} and {last_us} us"
            )
            raise InputProblem(msg)


class Identities(NamedTuple):
    """Identities with their event times, ordered by identity."""

    source_id: Ints
    ts: Ints

    def where(self, which: Bools) -> "Identities":
        """Return the chosen identities."""
        return Identities(self.source_id[which], self.ts[which])

    def find(self, source_id: Ints) -> tuple[Bools, Ints]:
        """Look up identities; return which of them are here, and their event times."""
        if not len(self.source_id):
            return np.zeros(len(source_id), np.bool_), self.ts
        place = np.minimum(np.searchsorted(self.source_id, source_id), len(self.source_id) - 1)
        found = self.source_id[place] == source_id
        return found, self.ts[place[found]]


def merge_identities(parts: Sequence[Identities]) -> Identities:
    """Join sets that share no identity."""
    source_id = np.concatenate([NO_IDENTITIES.source_id, *(part.source_id for part in parts)])
    order = np.argsort(source_id, kind="stable")
    ts = np.concatenate([NO_IDENTITIES.ts, *(part.ts for part in parts)])
    return Identities(source_id[order], ts[order])


NO_IDENTITIES = Identities(np.empty(0, np.int64), np.empty(0, np.int64))


class Admitted(NamedTuple):
    """The knowledge of a source worker about its stream: part of a checkpoint."""

    t_max_us: int = NO_WATERMARK_US
    """Largest admitted event time."""
    tuples: int = 0
    """Number of admitted tuples, which is the next rank."""
    known: Identities = NO_IDENTITIES
    """Identities that may come again."""


class Intake:
    """Admits or rejects the arrivals of one stream."""

    def __init__(self, stream: str, lateness_us: int | None, before: Admitted) -> None:
        self.stream = stream
        self._lateness_us = lateness_us
        self._t_max_us = before.t_max_us
        self._tuples = before.tuples
        self._known = [before.known]
        self._prune_above = _PRUNED_AT_LEAST

    @property
    def watermark_us(self) -> int:
        """The watermark of the stream; a flush does not change it."""
        if self._lateness_us is None or self._t_max_us == NO_WATERMARK_US:
            return NO_WATERMARK_US
        return max(self._t_max_us - self._lateness_us, NO_WATERMARK_US)

    def admit(self, arrivals: Arrivals) -> tuple[Tuples, list[Rejected]]:
        """Return the admitted tuples with their ranks, and the rejections.

        Raise :class:`InputProblem` if a known identity comes with another event time.
        """
        given = arrivals.tuples
        finite = np.isfinite(given.value)
        late = finite & (given.ts < self._watermarks(given.ts, finite))
        fresh = finite & ~late
        fresh[fresh] = self._new(given.source_id[fresh], given.ts[fresh])
        tuples = given.take(fresh)
        ranks = np.arange(self._tuples, self._tuples + len(tuples), dtype=np.int64)
        if len(tuples):
            self._tuples += len(tuples)
            self._t_max_us = max(self._t_max_us, int(tuples.ts.max()))
        if sum(len(part.ts) for part in self._known) > self._prune_above:
            self._prune()
        rejected = [
            Rejected(
                self.stream,
                int(arrivals.seq[position]),
                int(given.source_id[position]),
                REASON_LATE if late[position] else REASON_NOT_FINITE,
            )
            for position in np.flatnonzero(~finite | late).tolist()
        ]
        return replace(tuples, rank=ranks), rejected

    def checkpoint(self) -> Admitted:
        """Return the knowledge that the next epoch needs."""
        self._prune()
        return Admitted(self._t_max_us, self._tuples, merge_identities(self._known))

    def _new(self, source_id: Ints, ts: Ints) -> Bools:
        """Return which identities come for the first time; they are known from then on.

        Known identities lie in sets of decreasing size. A new set absorbs the sets before it that
        are not much larger, so there are few sets, and an identity moves only a few times.
        """
        distinct, first, which = np.unique(source_id, return_index=True, return_inverse=True)
        times, unknown = ts[first], np.ones(len(distinct), np.bool_)
        for part in self._known:
            here, times[here] = part.find(distinct)
            unknown &= ~here
        self._check_same(source_id, ts, times[which])
        parts = [Identities(distinct[unknown], times[unknown])]
        while self._known and len(self._known[-1].ts) <= 2 * sum(len(part.ts) for part in parts):
            parts.append(self._known.pop())
        self._known.append(merge_identities(parts))
        new = np.zeros(len(source_id), np.bool_)
        new[first[unknown]] = True
        return new

    def _check_same(self, source_id: Ints, ts: Ints, known_ts: Ints) -> None:
        """Check that a repeated identity has its old event time: two tuples would count as one."""
        others = np.flatnonzero(ts != known_ts)
        if len(others):
            at = others[0]
            msg = (
                f"the identity {source_id[at]} of the stream {self.stream} comes with the event"
                f" times {known_ts[at]} and {ts[at]} us: every tuple needs an identity of its own"
            )
            raise InputProblem(msg)

    def _watermarks(self, ts: Ints, finite: Bools) -> Ints:
        """Return the watermark just before every arrival.

        Late arrivals and redeliveries change nothing: neither exceeds the largest admitted time.
        """
        if self._lateness_us is None:
            return np.full(len(ts), NO_WATERMARK_US, np.int64)
        counted = np.where(finite, ts, NO_WATERMARK_US)
        earlier = np.concatenate([np.array([self._t_max_us], np.int64), counted[:-1]])[: len(ts)]
        t_max = np.maximum.accumulate(earlier)
        lateness = min(self._lateness_us, END_US)
        # The smallest integer means "nothing yet" and must not overflow.
        return np.maximum(t_max, NO_WATERMARK_US + lateness) - lateness

    def _prune(self) -> None:
        """Forget the identities that would be rejected as late."""
        kept = merge_identities([part.where(part.ts >= self.watermark_us) for part in self._known])
        self._known = [kept]
        self._prune_above = max(_PRUNED_AT_LEAST, 2 * len(kept.ts))
