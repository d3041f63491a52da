"""What is true: a nested loop over the admitted tuples.

Source: docs/join.md, sections 1 and 2.

Rules of this file:

* ``matches`` is obvious at a glance, and that is its only virtue. ``quick_matches`` gives the same
  for large inputs; the tests hold the two together.
* Nothing here knows a chain.
"""

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import (
    NO_WATERMARK_US,
    REASON_LATE,
    REASON_NOT_FINITE,
    STREAMS,
    And,
    Apart,
    Band,
    Equi,
    Predicate,
    R,
    Rejected,
    S,
)

Found = tuple[str, int, int]
"""Query, identity of r, identity of s."""

# --------------------------------------------------------------------------------------- results

_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "!=": operator.ne,
}


def holds(predicate: Predicate, r: Event, s: Event) -> bool:
    """Whether a predicate holds for a tuple of R and one of S."""
    if isinstance(predicate, And):
        return all(holds(part, r, s) for part in predicate.parts)
    if isinstance(predicate, Equi):
        return bool(getattr(r, predicate.column) == getattr(s, predicate.column))
    if isinstance(predicate, Band):
        return abs(r.value - s.value) <= predicate.eps
    if isinstance(predicate, Apart):
        return abs(r.value - s.value) > predicate.eps
    return _OPERATORS[predicate.op](getattr(r, predicate.left), getattr(s, predicate.right))


def found_by(config: JoinConfig, r: Event, s: Event) -> tuple[str, ...]:
    """The queries of which a pair is a result."""
    if abs(r.event_time_us - s.event_time_us) > config.window_us:
        return ()
    return tuple([name for name, predicate in config.queries if holds(predicate, r, s)])


def matches(config: JoinConfig, r_tuples: Iterable[Event], s_tuples: Sequence[Event]) -> set[Found]:
    """Every result: for all r, for all s."""
    return {
        (query, r.source_id, s.source_id)
        for r in r_tuples
        for s in s_tuples
        for query in found_by(config, r, s)
    }


def quick_matches(
    config: JoinConfig, r_tuples: Iterable[Event], s_tuples: Iterable[Event]
) -> set[Found]:
    """The same, asking only pairs within the window, and with equal keys where all queries do."""
    by_key = all(_needs_equal_keys(predicate) for _, predicate in config.queries)
    groups: dict[str, list[Event]] = {}
    for s in s_tuples:
        groups.setdefault(s.key if by_key else "", []).append(s)
    times_us: dict[str, list[int]] = {}
    for key, group in groups.items():
        group.sort(key=lambda s: s.event_time_us)
        times_us[key] = [s.event_time_us for s in group]
    found: set[Found] = set()
    for r in r_tuples:
        key = r.key if by_key else ""
        if key in groups:
            first = bisect_left(times_us[key], r.event_time_us - config.window_us)
            last = bisect_right(times_us[key], r.event_time_us + config.window_us)
            found |= matches(config, (r,), groups[key][first:last])
    return found


def _needs_equal_keys(predicate: Predicate) -> bool:
    if isinstance(predicate, And):
        return any(_needs_equal_keys(part) for part in predicate.parts)
    return predicate == Equi("key")


# ------------------------------------------------------------------------------------- admission


class Admitted(NamedTuple):
    """The admitted tuples of one stream, by rank."""

    tuples: list[Event]
    wm_us: list[int]
    """Watermark of the stream after each admission."""
    epochs: list[int]
    """Epoch of each admission."""


class Admission(NamedTuple):
    """What a workload lets in."""

    streams: Mapping[str, Admitted]
    rejected: list[Rejected]
    redelivered: int
    """Arrivals of tuples that were admitted before, and not rejected."""

    @property
    def r(self) -> Admitted:
        """The tuples of R."""
        return self.streams[R]

    @property
    def s(self) -> Admitted:
        """The tuples of S."""
        return self.streams[S]


def admission(workload: Workload) -> Admission:
    """Let the arrivals in, or not, in their order (docs/join.md, section 2).

    Raises ``ValueError`` for an arrival whose stream is none of the two.
    """
    config = JoinConfig.from_json(workload.config)
    streams = {stream: Admitted([], [], []) for stream in STREAMS}
    known: dict[str, set[int]] = {stream: set() for stream in STREAMS}
    rejected = []
    redelivered = 0
    for epoch, event in _arrivals(workload):
        if event.stream not in streams:
            msg = f"stream is {event.stream!r}; it must be one of {', '.join(STREAMS)}"
            raise ValueError(msg)
        stream = streams[event.stream]
        wm_us = stream.wm_us[-1] if stream.wm_us else NO_WATERMARK_US
        if not isfinite(event.value):
            rejected.append(_rejected(event, REASON_NOT_FINITE))
        elif event.event_time_us < wm_us:
            rejected.append(_rejected(event, REASON_LATE))
        elif event.source_id in known[event.stream]:
            redelivered += 1
        else:
            known[event.stream].add(event.source_id)
            stream.tuples.append(event)
            stream.epochs.append(epoch)
            stream.wm_us.append(_wm_us(config, wm_us, event))
    return Admission(streams, rejected, redelivered)


def _arrivals(workload: Workload) -> Iterator[tuple[int, Event]]:
    for epoch, batch in enumerate(workload.batches()):
        for event in batch:
            yield epoch, event


def _rejected(event: Event, reason: str) -> Rejected:
    return Rejected(event.stream, event.seq, event.source_id, reason)


def _wm_us(config: JoinConfig, before_us: int, event: Event) -> int:
    if config.lateness_us is None:
        return NO_WATERMARK_US
    return max(before_us, event.event_time_us - config.lateness_us)
