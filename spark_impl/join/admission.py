"""Admission of one stream at its source worker (docs/join.md, section 2).

A late arrival is rejected, and in no pair. Runs of arrivals are handled together; the result is
that of one arrival at a time.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from model.vocabulary.join import (
    END_US,
    NO_WATERMARK_US,
    REASON_LATE,
    REASON_NOT_FINITE,
    REASON_SHED,
    Rejected,
    S,
)
from spark_impl.join.matching import Tuples
from spark_impl.runtime.arrays import Bools, Floats, Ints, Texts
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


class Rejections(NamedTuple):
    """Arrivals of one stream that take part in nothing."""

    stream: str
    seq: Ints
    tuples: Tuples
    reason: Texts

    def steps(self) -> list[Rejected]:
        """Return the rejections one by one."""
        rows = zip(
            self.seq.tolist(), self.tuples.source_id.tolist(), self.reason.tolist(), strict=True
        )
        return [Rejected(self.stream, *row) for row in rows]


def draw(stream: str, seq: Ints) -> Floats:
    """Return a number from 0 to below 1 for each arrival, which is shed if the share is above it.

    It depends on the arrival alone (SplitMix64), so an epoch that runs again sheds the same ones.
    """
    z = seq.astype(np.uint64) * np.uint64(2) + np.uint64(stream == S)  # modulo 2^64, as all below
    z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) / 2**53


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


def count_reasons(rejections: Iterable[Rejections]) -> dict[str, int]:
    """Return the number of rejected arrivals by reason, without reasons that nobody has."""
    return dict(Counter(reason for each in rejections for reason in each.reason.tolist()))


class Intake:
    """Admits, sheds or rejects the arrivals of one stream.

    The watermark never lies below ``floor_us``.
    """

    def __init__(
        self,
        stream: str,
        lateness_us: int | None,
        before: Admitted,
        share: float = 0.0,
        floor_us: int = NO_WATERMARK_US,
    ) -> None:
        self.stream = stream
        self.accepted = 0
        """Number of arrivals so far that were neither shed nor without a finite value."""
        self.redelivered = 0
        """Number of those so far whose identity was admitted before."""
        self._floor_us = floor_us
        self._share = share
        self._lateness_us = lateness_us
        self._t_max_us = before.t_max_us
        self._tuples = before.tuples
        self._known = [before.known]
        self._prune_above = _PRUNED_AT_LEAST

    @property
    def watermark_us(self) -> int:
        """The watermark of the stream; a flush does not change it."""
        if self._lateness_us is None or self._t_max_us == NO_WATERMARK_US:
            return self._floor_us
        return max(self._t_max_us - self._lateness_us, self._floor_us)

    def admit(self, arrivals: Arrivals) -> tuple[Tuples, Rejections]:
        """Return the admitted tuples with their ranks, and the rejections.

        Raise :class:`InputProblem` if a known identity comes with another event time.
        """
        given = arrivals.tuples
        shed = np.zeros(len(given), np.bool_)
        if self._share > 0:
            shed = draw(self.stream, arrivals.seq) < self._share
        counted = ~shed & np.isfinite(given.value)
        self.accepted += int(np.count_nonzero(counted))
        late = counted & (given.ts < self._watermarks(given.ts, counted))
        fresh = counted & ~late
        at = np.flatnonzero(~fresh)
        rejected = Rejections(
            self.stream,
            arrivals.seq[at],
            given.take(at),
            np.select([shed[at], late[at]], [REASON_SHED, REASON_LATE], REASON_NOT_FINITE),
        )
        new = self._new(given.source_id[fresh], given.ts[fresh])
        self.redelivered += int(np.count_nonzero(~new))
        fresh[fresh] = new
        tuples = given.take(fresh)
        ranks = np.arange(self._tuples, self._tuples + len(tuples), dtype=np.int64)
        if len(tuples):
            self._tuples += len(tuples)
            self._t_max_us = max(self._t_max_us, int(tuples.ts.max()))
        if sum(len(part.ts) for part in self._known) > self._prune_above:
            self._prune()
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

    def _watermarks(self, ts: Ints, counted: Bools) -> Ints:
        """Return the watermark just before every arrival, if only the ``counted`` ones move it.

        Late arrivals and redeliveries change nothing: neither exceeds the largest admitted time.
        """
        if self._lateness_us is None:
            return np.full(len(ts), self._floor_us, np.int64)
        times = np.where(counted, ts, NO_WATERMARK_US)
        earlier = np.concatenate([np.array([self._t_max_us], np.int64), times[:-1]])[: len(ts)]
        t_max = np.maximum.accumulate(earlier)
        lateness = min(self._lateness_us, END_US)
        # The smallest integer means "nothing yet" and must not overflow.
        own: Ints = np.maximum(t_max, NO_WATERMARK_US + lateness) - lateness
        return np.where(own < self._floor_us, self._floor_us, own)

    def _prune(self) -> None:
        """Forget the identities that would be rejected as late."""
        kept = merge_identities([part.where(part.ts >= self.watermark_us) for part in self._known])
        self._known = [kept]
        self._prune_above = max(_PRUNED_AT_LEAST, 2 * len(kept.ts))
