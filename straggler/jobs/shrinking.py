"""Smaller streams on which a job still fails."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from straggler.jobs.rows import Row
from straggler.jobs.streams import Stream, joined, without

RUNS_MAX = 48
"""Most streams tried to shrink one."""


def shrink(
    stream: Stream,
    first_failing: Callable[[Sequence[Stream]], int | None],
    runs_max: int = RUNS_MAX,
    is_possible: Callable[[Stream], bool] = lambda _: True,
) -> Stream:
    """Return the smallest stream found that fails, of those that are possible.

    ``first_failing`` returns the position of the first of some streams that fails, if any does, and
    does not begin those after it.
    """
    tried = {repr(stream)}
    runs = 0
    while True:
        possible = filter(is_possible, smaller(stream))
        untried = {repr(each): each for each in possible if repr(each) not in tried}
        waiting = list(untried.values())[: runs_max - runs]
        found = first_failing(waiting)
        if found is None:
            return stream
        runs += found + 1
        tried |= {*list(untried)[: found + 1]}
        stream = waiting[found]


def smaller(stream: Stream) -> Iterator[Stream]:
    """Yield streams that are simpler in one way, the boldest first."""
    if stream.faults:
        yield stream._replace(faults=())
    size = (len(stream.rows) + 1) // 2
    while size:
        for first in range(0, len(stream.rows), size):
            yield without(stream, range(first, first + size))
        size //= 2
    for n, fault in enumerate(stream.faults):
        if len(stream.faults) > 1:
            yield stream._replace(faults=stream.faults[:n] + stream.faults[n + 1 :])
        if fault.skips:
            simpler = fault._replace(skips=0)
            yield stream._replace(faults=(*stream.faults[:n], simpler, *stream.faults[n + 1 :]))
    parts = stream.parts
    for n in range(len(parts) - 1):
        (rows, some), (more, others) = parts[n], parts[n + 1]
        yield joined([*parts[:n], (rows + more, (some or others)[:1]), *parts[n + 2 :]])
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
