"""Places of the rows of a windowed query, as its trace tells them.

Rules of this file:

* A row has its place at the end of the micro-batch in which it came: refused and late rows are
  named in it, and a row in time waits for the first answers of its windows.
* A late row is late even after a correction. Corrections are the matter of other claims.
* First answers only count their rows.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from model.checking.accounts import NOBODY, Accounts, CountedAnswer, Place, settle
from model.vocabulary import task_of
from model.vocabulary.windows import Rejected, WindowQuery
from model.windows.evidence import Observation, Tick, Truth, WindowId

PLACES = tuple([place for place in Place if place is not Place.SHED])
"""Places that rows of a windowed query have."""


def accounts_of(
    truth: Truth[WindowQuery], observed: Observation[Tick], name_of: Callable[[WindowId], str]
) -> Accounts:
    """Return the accounts of a trace; ``name_of`` names a window in sentences."""
    waiting = _Waiting(truth, observed)
    placed = [*_refused(truth, observed), *waiting.place_rows()]
    answers = (
        CountedAnswer(name_of(window), rows, counted) for window, rows, counted in waiting.answers()
    )
    return settle(truth.workload.arrivals, placed, answers)


def _refused(truth: Truth[WindowQuery], observed: Observation[Tick]) -> Iterator[tuple[int, Place]]:
    """Yield refused rows, but not those that were refused in another micro-batch than theirs."""
    batches = enumerate(truth.workload.batches())
    batch_of = {event.seq: batch for batch, arrivals in batches for event in arrivals}
    for each in observed.trace.of(Rejected):
        if batch_of.get(each.seq, each.batch) == each.batch:
            yield each.seq, Place.REFUSED


class _Waiting:
    """Rows that wait for first answers, or are in them, by window."""

    def __init__(self, truth: Truth[WindowQuery], observed: Observation[Tick]) -> None:
        self._truth, self._observed = truth, observed
        self._rows: dict[WindowId, list[int]] = {}
        self._unsure: Counter[WindowId] = Counter()
        """Number of rows that may be late or in the answer, by window."""

    def place_rows(self) -> Iterator[tuple[int, Place]]:
        """Yield the place of every row that is not refused, and late rows that nobody admitted."""
        config = self._truth.config
        refused = {each.seq for each in self._observed.trace.of(Rejected)}
        came: dict[tuple[int, int], int] = {}
        admitted: set[tuple[int, int]] = set()
        for batch, arrivals in enumerate(self._truth.workload.batches()):
            for event in arrivals:
                identity = task_of(event.key, config.tasks), event.source_id
                came[identity] = event.seq
                if event.seq in refused:
                    continue
                if identity in admitted and config.dedup:
                    yield event.seq, Place.REDELIVERED
                    continue
                admitted.add(identity)
                key = event.key if config.keyed else ""
                starts_us = map(
                    config.windows.start_us, config.windows.indices(event.event_time_us)
                )
                windows = [(identity[0], start_us, key) for start_us in starts_us]
                yield event.seq, self._admit(event.seq, event.source_id, batch, windows)
        for (task, _, _), late in self._observed.late.items():
            for source_id in late:
                if (task, source_id) not in admitted:
                    yield came.get((task, source_id), NOBODY), Place.LATE

    def _admit(self, seq: int, source_id: int, batch: int, windows: Sequence[WindowId]) -> Place:
        """Return the place of a row that was admitted in a batch."""
        place = Place.ANSWERED if windows else Place.UNASKED
        for window in windows:
            if batch in self._observed.late.get(window, {}).get(source_id, ()):
                place = Place.LATE
                delivered = self._truth.deliveries.get((window[0], source_id), ())
                self._unsure[window] += delivered.count(batch) > 1
                continue
            self._rows.setdefault(window, []).append(seq)
            is_open = window not in self._observed.results and not self._truth.flush
            if is_open and place is Place.ANSWERED:
                place = Place.PENDING
        return place

    def answers(self) -> Iterator[tuple[WindowId, Sequence[int], int]]:
        """Yield every window that is answered, the rows in it, and the number that it counts.

        After a flush a window is answered even if nothing was recorded.
        """
        results = self._observed.results
        for window, (result, *_) in results.items():
            rows = self._rows.get(window, [])
            unsure = min(max(0, result.n_rcv - len(rows)), self._unsure[window])
            yield window, rows, result.n_rcv - unsure
        if self._truth.flush:
            yield from ((each, rows, 0) for each, rows in self._rows.items() if each not in results)
