"""Tuples in columns, and which of them match.

Rules of this file:

* An index may select too much, never too little: predicate and window decide afterwards, on the
  values themselves.
* A store is searched as one sorted run and a small rest that is compared with everything. What was
  removed stays in the run until it is sorted again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from model.vocabulary import JoinConfig
from model.vocabulary.join import And, Apart, Band, Equi, Predicate, R
from spark_impl.join.index import KEY, Index, Searched, index_kind, reach

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
SCHEMA = pa.schema(
    [
        ("rank", pa.int64()),
        ("source_id", pa.int64()),
        ("ts", pa.int64()),
        ("value", pa.float64()),
        ("key", pa.string()),
    ]
)
"""Columns of tuples in Arrow: in blocks and in checkpoints."""
_PAIRS_MAX = 1 << 21
"""Most candidates that are looked at together."""
_REST_MAX = 512
_GROWTH = 2
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "!=": np.not_equal,
}


@dataclass(frozen=True, slots=True)
class Tuples:
    """Tuples of one stream, as columns of one length."""

    rank: Integers
    source_id: Integers
    ts: Integers
    value: npt.NDArray[np.float64]
    key: npt.NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.rank)

    def take(self, which: slice | Flags | Integers) -> "Tuples":
        """Some of them."""
        return Tuples(*(column[which] for column in self.columns()))

    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """The columns in the order of their names in :data:`SCHEMA`."""
        return self.rank, self.source_id, self.ts, self.value, self.key

    @staticmethod
    def concat(parts: "list[Tuples]") -> "Tuples":
        """One after the other; there is at least one part."""
        return Tuples(*map(np.concatenate, zip(*(part.columns() for part in parts), strict=True)))


FreePredicate: TypeAlias = Callable[[Tuples, Tuples], Flags]
"""Tuples of R and as many of S: which of these pairs match, whatever their times."""


class Pairs(NamedTuple):
    """Matches of one query."""

    r_id: Integers
    s_id: Integers


def tuples_from_arrow(rows: pa.Table | pa.RecordBatch) -> Tuples:
    """Tuples from the columns of :data:`SCHEMA`."""
    return Tuples(*(rows.column(field.name).to_numpy(zero_copy_only=False) for field in SCHEMA))


def to_arrow(tuples: Tuples) -> pa.RecordBatch:
    """Tuples with the columns of :data:`SCHEMA`."""
    columns = [
        pa.array(np.ascontiguousarray(column), field.type)
        for column, field in zip(tuples.columns(), SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


class _Chosen(NamedTuple):
    """Some of the tuples; a column is copied when it is asked for."""

    whole: Tuples
    at: Integers

    @property
    def source_id(self) -> Integers:
        return self.whole.source_id[self.at]

    @property
    def value(self) -> npt.NDArray[np.float64]:
        return self.whole.value[self.at]

    @property
    def key(self) -> npt.NDArray[np.object_]:
        return self.whole.key[self.at]

    def where(self, good: Flags) -> "_Chosen":
        return _Chosen(self.whole, self.at[good])

    def tuples(self) -> Tuples:
        return self.whole.take(self.at)


class Matcher:
    """What matches under one configuration.

    ``free`` has functions by the names of queries; their pairs have to fulfil both the predicate
    of the configuration and the function.
    """

    def __init__(self, config: JoinConfig, free: Mapping[str, FreePredicate] | None = None) -> None:
        self.window_us = config.window_us
        self.queries = tuple(
            (predicate, (free or {}).get(name)) for name, predicate in config.queries
        )
        self._codes: dict[str, int] = {}
        self._by_key = any(index_kind(predicate) == KEY for predicate, _ in self.queries)

    def side(self, stream: str) -> "Side":
        """An empty store for a stream."""
        return Side(self, stream)

    def match(self, r: Tuples, s: Tuples) -> list[Pairs]:
        """Matches of every query between two sets."""
        one = self.side("S")
        one.append(s)
        return one.probe(r, R)

    def codes(self, tuples: Tuples) -> Integers:
        """A number for every key, the same for the same key as long as this object lives.

        Where no index asks for it, it is the same for all.
        """
        if not self._by_key:
            return np.zeros(len(tuples), np.int64)
        known = self._codes
        return np.array([known.setdefault(key, len(known)) for key in tuples.key], np.int64)


class Side:
    """One stream's store at one worker, first in, first out."""

    def __init__(self, matcher: Matcher, stream: str) -> None:
        self._matcher = matcher
        self._stream = stream
        self._rows = tuples_from_arrow(SCHEMA.empty_table())
        self._codes = np.empty(0, np.int64)
        self._alive = np.empty(0, np.bool_)
        self._first = self._last = 0
        self._count = 0
        self._least: int | None = None
        kinds = {index_kind(predicate) for predicate, _ in matcher.queries}
        self._indexes = {kind: Index(kind, matcher.window_us) for kind in sorted(kinds)}

    def __len__(self) -> int:
        return self._count

    def append(self, tuples: Tuples) -> None:
        """Store tuples; they have higher ranks than all before."""
        count = len(tuples)
        if not count:
            return
        if self._last + count > len(self._alive):
            self._make_room(count)
        new = slice(self._last, self._last + count)
        for mine, given in zip(self._rows.columns(), tuples.columns(), strict=True):
            mine[new] = given
        self._codes[new] = self._matcher.codes(tuples)
        self._alive[new] = True
        self._last += count
        self._count += count
        least = int(tuples.ts.min())
        if self._count == count:
            self._least = least
        elif self._least is not None:
            self._least = min(self._least, least)

    def pop_oldest(self, count: int) -> Tuples:
        """Take the oldest tuples out, all of them if there are fewer."""
        span = slice(self._first, self._last)
        oldest = np.flatnonzero(self._alive[span])[:count] + self._first
        taken = self._rows.take(oldest)
        if len(taken):
            self._remove(oldest)
            self._first = int(oldest[-1]) + 1
        return taken

    def drop_below(self, horizon_us: int) -> int:
        """Remove the tuples with an event time below a horizon; how many there were."""
        span = slice(self._first, self._last)
        old = np.flatnonzero(self._alive[span] & (self._rows.ts[span] < horizon_us)) + self._first
        if len(old):
            self._remove(old)
        return len(old)

    def least_ts(self) -> int:
        """The least event time; there is at least one tuple."""
        if self._least is None:
            span = slice(self._first, self._last)
            self._least = int(self._rows.ts[span][self._alive[span]].min())
        return self._least

    def snapshot(self) -> Tuples:
        """All tuples in order."""
        return self._rows.take(np.flatnonzero(self._alive[: self._last]))

    def probe(self, block: Tuples, probing: str) -> list[Pairs]:
        """Matches of every query between a block of the stream ``probing`` and this store."""
        found: list[Pairs] = []
        probes = Searched(block.ts, block.value, self._matcher.codes(block))
        for predicate, free in self._matcher.queries:
            index = self._indexes[index_kind(predicate)]
            if self._last - index.sorted_to > max(_REST_MAX, index.sorted_to // 64):
                kept = np.flatnonzero(self._alive[: self._last])
                index.sort(self._searched, kept, self._last)
            rest = range(max(index.sorted_to, self._first), self._last)
            parts = [
                self._decide(block, one, here, probing, predicate, free)
                for one, here in index.candidates(
                    probes, self._searched, rest, reach(predicate), _PAIRS_MAX
                )
            ]
            found.append(Pairs(*map(np.concatenate, zip(*parts, strict=True))) if parts else NONE)
        return found

    @property
    def _searched(self) -> Searched:
        return Searched(self._rows.ts, self._rows.value, self._codes)

    def _decide(
        self,
        block: Tuples,
        one: Integers,
        here: Integers,
        probing: str,
        predicate: Predicate,
        free: FreePredicate | None,
    ) -> Pairs:
        """The matches among candidates: positions in the block, and positions in the store."""
        good = self._alive[here]
        good &= np.abs(block.ts[one] - self._rows.ts[here]) <= self._matcher.window_us
        both = _Chosen(block, one[good]), _Chosen(self._rows, here[good])
        r, s = both if probing == R else both[::-1]
        fulfil = holds(predicate, r, s)
        r, s = r.where(fulfil), s.where(fulfil)
        if free is not None and len(r.at):
            fulfil = np.asarray(free(r.tuples(), s.tuples()), np.bool_)
            r, s = r.where(fulfil), s.where(fulfil)
        return Pairs(r.source_id, s.source_id)

    def _remove(self, positions: Integers) -> None:
        self._alive[positions] = False
        self._count -= len(positions)
        if self._least is not None and (self._rows.ts[positions] <= self._least).any():
            self._least = None

    def _make_room(self, count: int) -> None:
        """Move what is alive to the front of larger arrays."""
        kept = np.flatnonzero(self._alive[: self._last])
        size = _GROWTH * (len(kept) + count) + _REST_MAX
        self._rows = Tuples(*(_moved(column, kept, size) for column in self._rows.columns()))
        self._codes = _moved(self._codes, kept, size)
        self._alive = np.arange(size) < len(kept)
        self._first, self._last = 0, len(kept)
        for index in self._indexes.values():
            index.sort(self._searched, np.arange(len(kept)), len(kept))


NONE = Pairs(np.empty(0, np.int64), np.empty(0, np.int64))
"""No matches."""


def holds(predicate: Predicate, r: Tuples | _Chosen, s: Tuples | _Chosen) -> Flags:
    """Which pairs of tuples, one of R and one of S each, fulfil a predicate."""
    if isinstance(predicate, And):
        good = np.ones(len(r.source_id), np.bool_)
        for part in predicate.parts:
            good &= holds(part, r, s)
        return good
    if isinstance(predicate, Band | Apart):
        with np.errstate(over="ignore"):  # infinitely far apart is far enough
            near = np.asarray(np.abs(r.value - s.value) <= predicate.eps)
        return near if isinstance(predicate, Band) else ~near
    if isinstance(predicate, Equi):
        return np.asarray(getattr(r, predicate.column) == getattr(s, predicate.column), np.bool_)
    compare = _COMPARE[predicate.op]
    return np.asarray(compare(getattr(r, predicate.left), getattr(s, predicate.right)), np.bool_)


def _moved(column: npt.NDArray[Any], kept: Integers, size: int) -> npt.NDArray[Any]:
    larger = np.empty(size, column.dtype)
    larger[: len(kept)] = column[kept]
    return larger
