"""The true results: the pairs of admitted tuples that match, found without a chain.

Source: docs/join.md, sections 1, 2, 10 and 14.

Rules of this file:

* ``queries_of`` decides about a pair. ``matches`` asks it about the pairs that some query may have;
  ``properties/oracles/join.py``, a nested loop of its own, asks about all.
* The floor of a silent stream follows from what both streams have admitted. It is known before the
  first arrival of its epoch, and never falls.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import inf, isfinite, nan
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from model.join.control import decision_at, draw
from model.join.predicates import Cell, cell, equal_columns, holds, reaches
from model.join.state import other
from model.vocabulary import Event, JoinConfig, System, Trace, Workload
from model.vocabulary.join import (
    NO_WATERMARK_US,
    REASON_LATE,
    REASON_NOT_FINITE,
    REASON_SHED,
    STREAMS,
    Match,
    Predicate,
    R,
    Rejected,
    S,
)
from model.vocabulary.join_predicates import NUMBER, Columns, check_values

QueryPair = tuple[str, int, int]
"""Query, identity of r, identity of s."""

# --------------------------------------------------------------------------------- silent streams


class Progress(NamedTuple):
    """Progress of one stream, as far as silence is concerned."""

    latest_us: int | None = None
    """Largest admitted event time; ``None`` before the first admission."""
    showed_life: bool = False
    """True if an arrival was accepted since the epoch began."""
    mark_us: int | None = None
    """Largest event time of the other stream when this one last showed life."""
    floor_us: int = NO_WATERMARK_US
    """Least watermark that silence allows."""


AT_FIRST: Mapping[str, Progress] = dict.fromkeys(STREAMS, Progress())


def begin_epoch(config: JoinConfig, before: Mapping[str, Progress]) -> dict[str, Progress]:
    """Return the progress of both streams at the beginning of the next epoch."""
    found = {}
    for stream in STREAMS:
        own, other_us = before[stream], before[other(stream)].latest_us
        if own.showed_life or own.mark_us is None:
            own = own._replace(showed_life=False, mark_us=other_us)
        found[stream] = own._replace(floor_us=_floor_us(config, own, other_us))
    return found


def _floor_us(config: JoinConfig, own: Progress, other_us: int | None) -> int:
    idle_after_us, lateness_us = config.idle_after_us, config.lateness_us
    if idle_after_us is None or lateness_us is None or own.mark_us is None or other_us is None:
        return own.floor_us
    if other_us - own.mark_us <= idle_after_us:
        return own.floor_us
    return max(own.floor_us, other_us - lateness_us - idle_after_us)


# ------------------------------------------------------------------------------------- admission


class Admitted(NamedTuple):
    """The admitted tuples of one stream, by rank."""

    tuples: list[Event]
    wm_us: list[int]
    """Watermark of the stream after each admission."""
    epochs: list[int]
    """Epoch of each admission."""

    @property
    def epoch_of(self) -> dict[int, int]:
        """Epoch of each tuple, by identity."""
        ids = (event.source_id for event in self.tuples)
        return dict(zip(ids, self.epochs, strict=True))


class Admission(NamedTuple):
    """The tuples that a workload admits, and those that it rejects."""

    streams: Mapping[str, Admitted]
    rejected: list[Rejected]
    floors_us: list[Mapping[str, int]]
    """Floors of the watermarks, by epoch and stream."""

    @property
    def r(self) -> Admitted:
        """The tuples of R."""
        return self.streams[R]

    @property
    def s(self) -> Admitted:
        """The tuples of S."""
        return self.streams[S]


class Mark(NamedTuple):
    """Progress of a gate."""

    tuples: Mapping[str, int]
    """Number of admitted tuples, by stream."""
    rejected: int
    progress: Mapping[str, Progress]


class Gate:
    """Admits, sheds or refuses arrivals, one after the other (docs/join.md, sections 2 and 14)."""

    def __init__(self, config: JoinConfig) -> None:
        self.config = config
        self.admitted = {stream: Admitted([], [], []) for stream in STREAMS}
        self.rejected: list[Rejected] = []
        self.progress: dict[str, Progress] = {**AT_FIRST}
        """Progress of the streams, by stream."""
        self._known: dict[str, set[int]] = {stream: set() for stream in STREAMS}

    def begin_epoch(self) -> Mapping[str, int]:
        """Begin an epoch; return the floors of the streams, which hold until the next one."""
        self.progress = begin_epoch(self.config, self.progress)
        return {stream: each.floor_us for stream, each in self.progress.items()}

    def offer(self, stream: str, epoch: int, events: Iterable[Event]) -> None:
        """Admit or refuse arrivals of a stream, each after the one before it.

        Raises ``ValueError`` if the stream is neither of the two, or a tuple has other columns.
        """
        if stream not in self.admitted:
            msg = f"stream is {stream!r}; it must be one of {', '.join(STREAMS)}"
            raise ValueError(msg)
        (tuples, watermarks_us, epochs), known = self.admitted[stream], self._known[stream]
        progress = self.progress[stream]
        wm_us = progress.floor_us
        if watermarks_us:
            wm_us = max(wm_us, watermarks_us[-1])
        lateness_us, before = self.config.lateness_us, len(tuples)
        # Without decisions nothing is looked up, because a run is often a single arrival.
        share = decision_at(self.config, epoch).share if self.config.decisions else 0.0
        columns = self.config.columns(stream)
        is_accepted = False
        for event in events:
            seq, source_id, _, ts_us, value = event[:5]
            if columns or event.more:
                check_values(columns, f"tuple {source_id} of {stream}", event.more)
            if share and draw(stream, seq) < share:
                self.rejected.append(_rejected(event, REASON_SHED))
                continue
            if not isfinite(value):
                self.rejected.append(_rejected(event, REASON_NOT_FINITE))
                continue
            is_accepted = True
            if ts_us < wm_us:
                self.rejected.append(_rejected(event, REASON_LATE))
            elif source_id not in known:
                known.add(source_id)
                if lateness_us is not None and ts_us - lateness_us > wm_us:
                    wm_us = ts_us - lateness_us
                tuples.append(event)
                watermarks_us.append(wm_us)
        epochs += [epoch] * (len(tuples) - before)
        self.progress[stream] = _with_arrivals(progress, tuples[before:], showed_life=is_accepted)

    def mark(self) -> Mark:
        """Return how far the gate has come, for :meth:`go_back`."""
        tuples = {stream: len(admitted.tuples) for stream, admitted in self.admitted.items()}
        return Mark(tuples, len(self.rejected), {**self.progress})

    def go_back(self, mark: Mark) -> None:
        """Forget every decision since a mark: its arrivals will be offered again."""
        for stream, count in mark.tuples.items():
            tuples, watermarks_us, epochs = self.admitted[stream]
            self._known[stream].difference_update([each.source_id for each in tuples[count:]])
            del tuples[count:], watermarks_us[count:], epochs[count:]
        del self.rejected[mark.rejected :]
        self.progress = {**mark.progress}


def admission(workload: Workload) -> Admission:
    """Admit or refuse the arrivals of a workload, in their order.

    Raises ``ValueError`` for an arrival whose stream is neither of the two, or with other columns.
    """
    gate = Gate(JoinConfig.from_json(workload.config))
    floors_us: list[Mapping[str, int]] = []
    for epoch, batch in enumerate(workload.batches()):
        floors_us.append(gate.begin_epoch())
        for stream, events in groupby(batch, attrgetter("stream")):
            gate.offer(stream, epoch, events)
    return Admission(gate.admitted, gate.rejected, floors_us)


def _with_arrivals(before: Progress, admitted: Sequence[Event], *, showed_life: bool) -> Progress:
    """Return the progress of a stream after some arrivals."""
    times_us = [event.event_time_us for event in admitted]
    if before.latest_us is not None:
        times_us.append(before.latest_us)
    showed_life = showed_life or before.showed_life
    return before._replace(latest_us=max(times_us, default=None), showed_life=showed_life)


def _rejected(event: Event, reason: str) -> Rejected:
    return Rejected(event.stream, event.seq, event.source_id, reason)


# ------------------------------------------------------------------------------------- results


def queries_of(config: JoinConfig, admitted: Admission, r: int, s: int) -> tuple[str, ...]:
    """Return the queries that have a pair, given as two ranks, as a result."""
    r_tuple, s_tuple = admitted.r.tuples[r], admitted.s.tuples[s]
    if abs(r_tuple.event_time_us - s_tuple.event_time_us) > config.window_us:
        return ()
    epochs = admitted.r.epochs[r], admitted.s.epochs[s]
    return tuple(
        [
            name
            for name, predicate in config.queries
            if holds(predicate, r_tuple, s_tuple, config.r_columns, config.s_columns)
            and asks_about(config, name, epochs)
        ]
    )


def asks_about(config: JoinConfig, query: str, epochs: Iterable[int]) -> bool:
    """Return whether a query pairs tuples of these epochs: all of them must be in its range."""
    first, last = config.span(query)
    return all(first <= epoch and (last is None or epoch <= last) for epoch in epochs)


def matches(config: JoinConfig, admitted: Admission) -> set[QueryPair]:
    """Return every result: for all r, for all s that some query may allow.

    If all queries need certain columns to be equal, these are pairs in which they are. If all need
    the same two columns of numbers within some distance, these are pairs within the largest
    distance. All are within the window.
    """
    predicates = [predicate for _, predicate in config.queries]
    equal = sorted(set.intersection(*map(equal_columns, predicates)))
    near, distance = _nearest_columns(config, predicates)
    s_tuples = admitted.s.tuples
    groups: dict[tuple[Cell | None, ...], list[int]] = {}
    for s in sorted(range(len(s_tuples)), key=lambda s: s_tuples[s].event_time_us):
        group = tuple([cell(s_tuples[s], other, config.s_columns) for _, other in equal])
        groups.setdefault(group, []).append(s)
    sides = {
        group: _Side.of(s_tuples, ranks, near[1], config.s_columns)
        for group, ranks in groups.items()
        if None not in group
    }
    found: set[QueryPair] = set()
    for r, event in enumerate(admitted.r.tuples):
        side = sides.get(tuple([cell(event, column, config.r_columns) for column, _ in equal]))
        if side is None:
            continue
        number = _number(cell(event, near[0], config.r_columns))
        for s in side.ranks_about(event, number, config.window_us, distance):
            for query in queries_of(config, admitted, r, s):
                found.add((query, event.source_id, s_tuples[s].source_id))
    return found


class _Side(NamedTuple):
    """Tuples of S by event time, with one of their columns."""

    ranks: npt.NDArray[np.int64]
    times_us: list[int]
    values: npt.NDArray[np.float64]

    @staticmethod
    def of(tuples: Sequence[Event], ranks: Sequence[int], column: str, columns: Columns) -> "_Side":
        times_us = [tuples[rank].event_time_us for rank in ranks]
        values = [_number(cell(tuples[rank], column, columns)) for rank in ranks]
        return _Side(np.array(ranks, np.int64), times_us, np.array(values, np.float64))

    def ranks_about(
        self, event: Event, number: float, window_us: int, distance: float
    ) -> list[int]:
        """Return the ranks within the window about a tuple, and within a distance of a number."""
        first = bisect_left(self.times_us, event.event_time_us - window_us)
        last = bisect_right(self.times_us, event.event_time_us + window_us)
        ranks = self.ranks[first:last]
        if distance < inf:
            with np.errstate(invalid="ignore", over="ignore"):  # infinities have no difference
                ranks = ranks[np.abs(self.values[first:last] - number) <= distance]
        found: list[int] = ranks.tolist()
        return found


def _number(value: Any) -> float:
    return nan if value is None else float(value)


def _nearest_columns(
    config: JoinConfig, predicates: Sequence[Predicate]
) -> tuple[tuple[str, str], float]:
    """Return two columns of numbers, and how far apart they are at most in any result."""
    kinds = config.kinds()[R]
    found = [reaches(predicate) for predicate in predicates]
    shared = sorted(set.intersection(*map(set, found)))
    for columns in shared:
        if kinds[columns[0]] == NUMBER:
            return columns, max(each[columns] for each in found)
    return ("value", "value"), inf


def oracle_join(workload: Workload) -> Trace:
    """Return the trace of a workload with a flush: rejections, and each match in its first epoch.

    Raises ``ValueError`` with one sentence if the workload is invalid.
    """
    config, admitted = JoinConfig.from_json(workload.config), admission(workload)
    r_epoch, s_epoch = admitted.r.epoch_of, admitted.s.epoch_of
    found = (
        Match(query, r, s, max(r_epoch[r], s_epoch[s])) for query, r, s in matches(config, admitted)
    )
    return Trace("oracle", [*found, *admitted.rejected])


def make_system() -> System:
    """Return the oracle as a System, for inputs on which the model's chain takes hours."""
    return oracle_join
