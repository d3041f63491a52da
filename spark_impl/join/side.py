"""The store of one stream at one worker: first in, first out, searched through indexes.

Rules of this file:

* A row is stored, or a copy of a sent tuple, or gone. Rows keep their place until the arrays are
  full; then the rows that are not gone move to the front of larger arrays.
* A copy is found only by tuples that may still have to meet it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from model.vocabulary import JoinConfig
from model.vocabulary.join import END_US, STREAMS, R, S
from spark_impl.join.access import access_of
from spark_impl.join.index import GONE, Index
from spark_impl.join.matching import (
    NONE,
    Chosen,
    FreePredicate,
    Pairs,
    Query,
    Ranks,
    Tuples,
    decide,
    empty_tuples,
)
from spark_impl.runtime.arrays import Bools, Column, Ints

_PAIRS_MAX = 1 << 18
"""Most candidates that are checked together."""
ROWS_MIN = 512
"""Fewest rows that new arrays have room for."""
_GROWTH = 2
_STORED = 0
"""Mark of a stored row; a copy has the number of its block."""


class Matcher:
    """The queries of one configuration.

    ``free`` has functions by the names of queries; a pair has to satisfy both the predicate of the
    configuration and the function. ``ranks`` limits the tuples that each query pairs.
    """

    def __init__(
        self,
        config: JoinConfig,
        free: Mapping[str, FreePredicate] | None = None,
        ranks: Sequence[Ranks | None] | None = None,
    ) -> None:
        self.window_us = config.window_us
        self.columns = {stream: config.columns(stream) for stream in STREAMS}
        """The columns of each stream besides the built-in ones."""
        limits = ranks or [None] * len(config.queries)
        self.queries = tuple(
            Query(name, predicate, (free or {}).get(name), limit)
            for (name, predicate), limit in zip(config.queries, limits, strict=True)
        )
        self.access = {
            stream: tuple(
                access_of(each.predicate, stream, config.window_us) for each in self.queries
            )
            for stream in STREAMS
        }
        """Way of each query to its candidates in the store of a stream."""
        self.compared = 0
        """Number of pairs of tuples that an index has selected so far, over all queries."""

    def match(self, r: Tuples, s: Tuples) -> list[Pairs]:
        """Return the matches of every query between two sets."""
        one = Side(self, S)
        one.append(s)
        return [each.pairs for each in one.probe(r)]


class Found(NamedTuple):
    """Matches of one query for some probing tuples."""

    at: Ints
    """Positions of the probing tuples."""
    pairs: Pairs


class Side:
    """The store of one stream."""

    def __init__(self, matcher: Matcher, stream: str) -> None:
        self._matcher = matcher
        self._stream = stream
        self._rows = empty_tuples(matcher.columns[stream])
        self._block = np.empty(0, np.int64)
        self._begin = self._first = self._last = 0
        """Copies lie between the first two of these rows, stored tuples between the last two."""
        self._count = 0
        self._gone = 0
        """Number of rows that ever left, with their copies."""
        self._least: int | None = None
        self._access = matcher.access[stream]
        self._indexes = {way.index_name: Index(way, matcher.window_us) for way in self._access}

    def __len__(self) -> int:
        return self._count

    def append(self, tuples: Tuples) -> None:
        """Store tuples; their ranks are above all ranks before."""
        count = len(tuples)
        if not count:
            return
        if self._last + count > len(self._block):
            self._make_room(count)
        new = slice(self._last, self._last + count)
        for mine, given in zip(self._rows.columns(), tuples.columns(), strict=True):
            mine[new] = given
        self._block[new] = _STORED
        self._last += count
        self._count += count
        least = int(tuples.ts.min())
        if self._count == count:
            self._least = least
        elif self._least is not None:
            self._least = min(self._least, least)

    def send_oldest(self, count: int, blocks: Ints | None) -> Tuples:
        """Take out and return the ``count`` oldest tuples, or all of them if there are fewer.

        If ``blocks`` gives the numbers of the blocks that carry them, they stay as copies.
        """
        span = slice(self._first, self._last)
        oldest = np.flatnonzero(self._block[span] == _STORED)[:count] + self._first
        taken = self._rows.take(oldest)
        if len(taken):
            self._remove(oldest, None if blocks is None else blocks[: len(oldest)])
            self._first = int(oldest[-1]) + 1
        return taken

    def release(self, number: int) -> None:
        """Remove the copy of a block, which nobody has to meet any more."""
        copies = self._block[self._begin : self._first]
        released = copies == number
        copies[released] = GONE
        self._gone += int(np.count_nonzero(released))
        left = np.flatnonzero(copies != GONE)
        self._begin += int(left[0]) if len(left) else len(copies)

    def drop_below(self, horizon_us: int) -> int:
        """Remove the tuples with an event time below a horizon; return how many there were."""
        old = (self._stored & (self._ts < horizon_us)).nonzero()[0] + self._first
        if len(old):
            self._remove(old, None)
        return len(old)

    def oldest_with(self, before_us: int) -> int:
        """Return the number of tuples up to the last one, in order, that is older than a time."""
        stored = self._stored
        found = np.flatnonzero(stored & (self._ts < before_us))
        return int(np.count_nonzero(stored[: found[-1] + 1])) if len(found) else 0

    def least_ts(self) -> int:
        """Return the least event time, ``END_US`` without a tuple."""
        if self._least is None:
            self._least = int(self._ts.min(where=self._stored, initial=END_US))
        return self._least

    def snapshot(self) -> Tuples:
        """Return all stored tuples, in order."""
        return self._rows.take(np.flatnonzero(self._stored) + self._first)

    def probe(self, block: Tuples, seen: Ints | None = None) -> list[Found]:
        """Return the matches of every query between tuples of the other stream and this store.

        If ``seen`` gives a number for each tuple, it also meets copies of blocks with larger
        numbers.
        """
        for index in self._indexes.values():
            index.update(self._rows, self._block[: self._last], self._gone)
        found: list[Found] = []
        other = S if self._stream == R else R
        for query, way in zip(self._matcher.queries, self._access, strict=True):
            parts: list[Found] = []
            if len(block) and query.may_pair(block, other):
                chosen = self._indexes[way.index_name].candidates(block, way, _PAIRS_MAX)
                parts = [self._decide(block, one, here, seen, query) for one, here in chosen]
            found.append(_concat_found(parts))
        return found

    @property
    def _ts(self) -> Ints:
        """Event times of stored rows, and of some others."""
        return self._rows.ts[self._first : self._last]

    @property
    def _stored(self) -> Bools:
        """Flags of the rows of :attr:`_ts` that are stored."""
        flags: Bools = self._block[self._first : self._last] == _STORED
        return flags

    def _decide(
        self, block: Tuples, one: Ints, here: Ints, seen: Ints | None, query: Query
    ) -> Found:
        """Return the matches among candidates, given as positions in the block and rows."""
        number = self._block[here]
        good = number == _STORED
        if seen is not None:
            good |= number > seen[one]
        self._matcher.compared += int(np.count_nonzero(good))
        good &= np.abs(block.ts[one] - self._rows.ts[here]) <= self._matcher.window_us
        probing, stored = Chosen(block, one[good]), Chosen(self._rows, here[good])
        r, s = (stored, probing) if self._stream == R else (probing, stored)
        good = decide(query, r, s)
        r, s = r.where(good), s.where(good)
        return Found((s if self._stream == R else r).at, Pairs(r.source_id, s.source_id))

    def _remove(self, rows: Ints, blocks: Ints | None) -> None:
        """Take rows out of the store; copies of them stay in blocks of these numbers."""
        self._block[rows] = GONE if blocks is None else blocks
        self._gone += len(rows) if blocks is None else 0
        self._count -= len(rows)
        if self._least is not None and (self._rows.ts[rows] <= self._least).any():
            self._least = None

    def _make_room(self, count: int) -> None:
        """Move the rows that are not gone to the front of larger arrays."""
        held = self._block[: self._last] != GONE
        kept = np.flatnonzero(held)
        size = _GROWTH * (len(kept) + count) + ROWS_MIN
        self._rows = self._rows.map(lambda column: _copy_to_larger(column, kept, size))
        self._block = _copy_to_larger(self._block, kept, size)
        to = np.where(held, np.cumsum(held) - 1, -1)
        for index in self._indexes.values():
            index.renumber(to)
        self._begin = 0
        self._first, self._last = int(np.count_nonzero(held[: self._first])), len(kept)


def _concat_found(parts: list[Found]) -> Found:
    if not parts:
        return Found(NONE.r_id, NONE)
    at = np.concatenate([part.at for part in parts])
    r_id = np.concatenate([part.pairs.r_id for part in parts])
    return Found(at, Pairs(r_id, np.concatenate([part.pairs.s_id for part in parts])))


def _copy_to_larger(column: Column, kept: Ints, size: int) -> Column:
    larger = np.empty(size, column.dtype)
    larger[: len(kept)] = column[kept]
    return larger
