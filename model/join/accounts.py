"""Places of the rows of a join, as its trace and the nested loop tell them.

Rules of this file:

* A row is answered if it came out in a pair, or if it is admitted and no pair has it.
* Without a flush, a row is pending until all its pairs have come out.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from model.checking.accounts import Place
from model.join.oracle import Admission, QueryPair
from model.vocabulary import Trace, Workload
from model.vocabulary.join import REASON_LATE, REASON_SHED, Match, R, Rejected, S

PLACES = tuple([place for place in Place if place is not Place.UNASKED])
"""Places that rows of a join have."""
BY_REASON: Mapping[str, Place] = {REASON_LATE: Place.LATE, REASON_SHED: Place.SHED}
"""Places of rejected rows, by reason; for all others they are refused."""

Identity = tuple[str, int]
"""Stream, identity."""


def place_rows(
    workload: Workload, admitted: Admission, results: Collection[QueryPair], trace: Trace
) -> Iterator[tuple[int, Place]]:
    """Yield the places of the rows of a workload by their positions."""
    out = {(each.query, each.r_id, each.s_id) for each in trace.of(Match)}
    answered = _rows_of(out)
    owed = _rows_of(pair for pair in results if pair not in out)
    rejected = {each.seq for each in trace.of(Rejected)}
    yield from (
        (each.seq, BY_REASON.get(each.reason, Place.REFUSED)) for each in trace.of(Rejected)
    )
    right = {event.seq for stream in admitted.streams.values() for event in stream.tuples}
    came: dict[Identity, int] = {}
    known: set[Identity] = set()
    for event in workload.arrivals:
        row = event.stream, event.source_id
        came.setdefault(row, event.seq)
        if event.seq in rejected:
            continue
        if row in known:
            yield event.seq, Place.REDELIVERED
            continue
        known.add(row)
        if row in owed and not workload.flush:
            yield event.seq, Place.PENDING
        elif row in answered or (row not in owed and event.seq in right):
            yield event.seq, Place.ANSWERED
    yield from ((came[row], Place.ANSWERED) for row in sorted(answered & came.keys() - known))


def _rows_of(pairs: Iterable[QueryPair]) -> set[Identity]:
    """Return the rows of some pairs."""
    return {row for _, r, s in pairs for row in ((R, r), (S, s))}
