"""Contents of the admitted tuples as arrays: joins of blocks through an index, with counts.

Source: docs/join.md, sections 1 and 8.

Rules of this file:

* The index answers the model's machine about contents (``model.join.state.Content``), for whole
  blocks at once; the machine decides what follows.
* The index keeps pairs as arrays; the machine gets none of them.
* An index selects *candidates*, the comparisons that are counted; the predicate and the window
  decide on each of them.
"""

from collections.abc import Sequence
from typing import cast, overload

import numpy as np

from model.join.state import Pair, Ranks, other
from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import ALWAYS, END_US, STREAMS
from model.vocabulary.join_predicates import (
    BUILT_IN,
    And,
    Predicate,
    R,
    S,
    Where,
    columns_of,
    parts_of,
)
from sim.join.columns import BoolArray, TupleColumns, is_met, is_selected, number_of
from sim.join.machine import FoundPairs
from sim.join.search import EVERYTHING, access_of, find
from sim.kernel.disorder import IntArray

NONE = np.empty(0, dtype=np.int64)


class RankArray:
    """Ranks in a store or block, as an array that is never changed.

    The machine slices, joins and counts ranks; an array does it without a copy of each number.
    """

    __slots__ = ("least_us", "parts", "ranks")

    def __init__(self, ranks: IntArray = NONE) -> None:
        self.ranks = ranks
        self.least_us: int | None = None
        """Least event time, after the first request."""
        self.parts: tuple[int, Ranks, Ranks] | None = None
        """The latest horizon, with the ranks below it and the others."""

    def __len__(self) -> int:
        return len(self.ranks)

    @overload
    def __getitem__(self, part: int) -> int: ...

    @overload
    def __getitem__(self, part: slice) -> "RankArray": ...

    def __getitem__(self, part: int | slice) -> "int | RankArray":
        return int(self.ranks[part]) if isinstance(part, int) else RankArray(self.ranks[part])

    def __add__(self, others: "RankArray | tuple[int, ...]") -> "RankArray":
        if not len(others):
            return self
        both = RankArray(np.concatenate((self.ranks, _array(others))))
        if (
            isinstance(others, RankArray)
            and self.least_us is not None
            and others.least_us is not None
        ):
            both.least_us = min(self.least_us, others.least_us)
        return both

    def as_ranks(self) -> Ranks:
        """Return the array under the machine's type of ranks."""
        return cast("Ranks", self)


def _array(ranks: "RankArray | Ranks") -> IntArray:
    return ranks.ranks if isinstance(ranks, RankArray) else np.array(ranks, dtype=np.int64)


class Index:
    """Contents of both streams, with the comparisons and pairs so far."""

    def __init__(self, config: JoinConfig, is_indexed: bool = True) -> None:
        self.config = config
        numbers: dict[str, int] = {}
        self.columns = {
            R: TupleColumns(config.r_columns, numbers),
            S: TupleColumns(config.s_columns, numbers),
        }
        """The admitted tuples of each stream."""
        self.comparisons = 0
        """Number of candidates compared, over all queries."""
        self._found: list[FoundPairs] = []
        spans = config.spans()
        self._spans = [spans.get(name, ALWAYS) for name, _ in config.queries]
        self._access = [
            access_of(config, predicate) if is_indexed else EVERYTHING
            for _, predicate in config.queries
        ]

    def add(self, stream: str, rank: int, events: Sequence[Event], epoch: int) -> None:
        """Add admitted tuples; ``rank`` is that of the first one."""
        self.columns[stream].put(rank, events, epoch)

    def take(self) -> list[FoundPairs]:
        """Return the pairs found since the last call."""
        found, self._found = self._found, []
        return found

    def join(self, stream: str, tuples: Ranks, met: Ranks) -> tuple[Pair, ...]:
        """Keep the pairs of tuples of a stream with tuples of the other one; return no pairs."""
        block, others = _array(tuples), _array(met)
        if len(block) and len(others):
            # The difference of two very large floats may overflow to infinity, which is right, and
            # two infinities have none.
            with np.errstate(over="ignore", invalid="ignore"):
                for number in range(len(self._access)):
                    one, another = self._candidates(number, stream, block, others)
                    if len(one):
                        r, s = (one, another) if stream == R else (another, one)
                        self._compare(number, r, s)
        return ()

    def _compare(self, number: int, r: IntArray, s: IntArray) -> None:
        """Keep the candidates of a query that are pairs."""
        self.comparisons += len(r)
        good = self._is_pair(number, r, s)
        if good.any():
            ids = [self.columns[stream]["source_id"] for stream in STREAMS]
            self._found.append(FoundPairs(number, ids[0][r[good]], ids[1][s[good]]))

    def least_us(self, stream: str, ranks: Ranks) -> int:
        """Return the least event time; ``END_US`` without tuples."""
        held = cast("RankArray", ranks)
        if held.least_us is None:
            event_us = self.columns[stream]["event_time"][held.ranks]
            held.least_us = int(event_us.min()) if len(event_us) else END_US
        return held.least_us

    def split_at(self, stream: str, ranks: Ranks, horizon_us: int) -> tuple[Ranks, Ranks]:
        """Return the ranks with an event time below the horizon, and the others, in their order."""
        if self.least_us(stream, ranks) >= horizon_us:
            return (), ranks
        held = cast("RankArray", ranks)
        # The machine asks twice: whether a tuple can be dropped, and then which tuples to keep.
        if held.parts is None or held.parts[0] != horizon_us:
            older = self.columns[stream]["event_time"][held.ranks] < horizon_us
            parts = (
                RankArray(held.ranks[older]).as_ranks(),
                RankArray(held.ranks[~older]).as_ranks(),
            )
            held.parts = horizon_us, *parts
        return held.parts[1:]

    def _candidates(
        self, number: int, stream: str, block: IntArray, others: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Return the candidates of a query, by a search of the larger side in the smaller one."""
        access = self._access[number]
        if access is not EVERYTHING:
            block = self._accepted(number, stream, block)
            others = self._accepted(number, other(stream), others)
            if not (len(block) and len(others)):
                return NONE, NONE
        own = self.columns[stream][access.column(stream)][block]
        foreign = self.columns[other(stream)][access.column(other(stream))][others]
        if len(own) <= len(foreign):
            at, position = find(own, foreign, access, few_are_r=stream == R)
            return block[position], others[at]
        at, position = find(foreign, own, access, few_are_r=stream != R)
        return block[at], others[position]

    def _accepted(self, number: int, stream: str, ranks: IntArray) -> IntArray:
        """Return the tuples that selections accept and that have a value to search for."""
        column = self._access[number].column(stream).removesuffix(number_of(""))
        good = np.ones(len(ranks), dtype=np.bool_)
        if column not in BUILT_IN:
            good &= self.columns[stream].is_there(column, ranks)
        for part in parts_of(self.config.queries[number][1]):
            if isinstance(part, Where) and part.stream == stream:
                good &= self._holds(part, ranks, ranks)
        return ranks if good.all() else ranks[good]

    def _is_pair(self, number: int, r: IntArray, s: IntArray) -> BoolArray:
        _, predicate = self.config.queries[number]
        of_r, of_s = self.columns[R], self.columns[S]
        distance_us = np.abs(of_r["event_time"][r] - of_s["event_time"][s])
        good: BoolArray = distance_us <= self.config.window_us
        for part in parts_of(predicate):
            good &= self._holds(part, r, s)
        first, last = self._spans[number]
        if first > 0 or last is not None:
            for epochs in (of_r["epoch"][r], of_s["epoch"][s]):
                good &= epochs >= first
                if last is not None:
                    good &= epochs <= last
        return good

    def _holds(self, part: Predicate, r: IntArray, s: IntArray) -> BoolArray:
        """Return where a predicate holds, as ``model.join.oracle.holds`` does for one pair."""
        ranks = {R: r, S: s}
        looked_at = list(columns_of(part))
        values = [self.columns[stream][name][ranks[stream]] for stream, name in looked_at]
        good = np.ones(len(r), dtype=np.bool_)
        for stream, name in looked_at:
            if name not in BUILT_IN:
                good &= self.columns[stream].is_there(name, ranks[stream])
        if not good.all():
            values = [each[good] for each in values]
        if isinstance(part, Where):
            good[good] = is_selected(values[0], part.op, part.constant)
        elif not isinstance(part, And):
            good[good] = is_met(part, *values)
        return good
