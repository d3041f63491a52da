"""Smaller streams on which a job still fails."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from straggler.jobs.rows import Row
from straggler.jobs.streams import Fault, Stream

Part: TypeAlias = tuple[tuple[Row, ...], tuple[Fault, ...]]
"""The rows of a data micro-batch, and the faults around it."""
RUNS_MAX = 48
"""Most streams tried to shrink one."""


def shrink(
    stream: Stream,
    first_failing: Callable[[Sequence[Stream]], int | None],
    side_by_side: int = 3,
    runs_max: int = RUNS_MAX,
) -> Stream:
    """Return the smallest stream found that fails.

    ``first_failing`` returns the position of the first of some streams that fails, if any does.
    """
    tried = {repr(stream)}
    runs = 0
    is_smaller = True
    while is_smaller and runs < runs_max:
        is_smaller = False
        waiting: list[Stream] = []
        for candidate in [*smaller(stream), None]:
            if candidate is not None and repr(candidate) not in tried:
                tried.add(repr(candidate))
                waiting.append(candidate)
            if waiting and (candidate is None or len(waiting) == side_by_side):
                runs += len(waiting)
                found = first_failing(waiting)
                if found is not None:
                    stream, is_smaller = waiting[found], True
                    break
                waiting = []
                if runs >= runs_max:
                    break
    return stream


def smaller(stream: Stream) -> Iterator[Stream]:
    """Yield streams that are simpler in one way, the boldest first."""
    parts = [
        (batch, tuple([each for each in stream.faults if each.batch == n]))
        for n, batch in enumerate(stream.batches)
    ]
    if stream.faults:
        yield stream._replace(faults=())
    size = (len(stream.rows) + 1) // 2
    while size:
        for first in range(0, len(stream.rows), size):
            yield _stream(_without(parts, first, first + size))
        size //= 2
    for n, fault in enumerate(stream.faults):
        if len(stream.faults) > 1:
            yield stream._replace(faults=stream.faults[:n] + stream.faults[n + 1 :])
        if fault.skips:
            simpler = fault._replace(skips=0)
            yield stream._replace(faults=(*stream.faults[:n], simpler, *stream.faults[n + 1 :]))
    for n in range(len(parts) - 1):
        (rows, some), (more, others) = parts[n], parts[n + 1]
        merged = (rows + more, (some or others)[:1])
        yield _stream([*parts[:n], merged, *parts[n + 2 :]])
    yield from _alike(stream)


def _alike(stream: Stream) -> Iterator[Stream]:
    """Yield streams in which a row has the values of the first one of its input."""
    first: dict[int, Row] = {}
    for row in stream.rows:
        plain = first.setdefault(row.source, row)
        if row.values != plain.values:
            alike = row._replace(values=plain.values)
            yield stream.map(partial(_replaced, row, alike))


def _replaced(row: Row, by: Row, each: Row) -> Row:
    return by if each is row else each


def _without(parts: Sequence[Part], first: int, end: int) -> list[Part]:
    kept, at = [], 0
    for rows, faults in parts:
        kept.append((tuple([r for n, r in enumerate(rows, at) if not first <= n < end]), faults))
        at += len(rows)
    return kept


def _stream(parts: Sequence[Part]) -> Stream:
    """Return the stream of its parts, without empty micro-batches."""
    full = [part for part in parts if part[0]]
    return Stream(
        tuple([rows for rows, _ in full]),
        tuple([fault._replace(batch=n) for n, (_, each) in enumerate(full) for fault in each[:1]]),
    )
