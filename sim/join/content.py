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
from itertools import chain
from typing import NamedTuple, TypeAlias, assert_never, cast, overload

import numpy as np
from numpy.typing import NDArray

from model.join.state import Pair, Ranks, other
from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import END_US, STREAMS, And, Apart, Band, Equi, Ineq, Predicate, R
from sim.join.machine import FoundPairs
from sim.kernel.disorder import IntArray
from sim.kernel.distributions import AnyArray, FloatArray

BoolArray: TypeAlias = NDArray[np.bool_]
NONE = np.empty(0, dtype=np.int64)

_OPERATORS = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "!=": np.not_equal,
}


_ROWS = 1_024
"""Initial number of rows."""


class TupleColumns:
    """The admitted tuples of one stream, by rank; rows behind the last one are unused."""

    __slots__ = ("_numbers", "epoch", "event_us", "key", "number", "source_id", "value")

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers  # of keys, by first appearance in any stream
        self.source_id: IntArray = np.zeros(_ROWS, dtype=np.int64)
        self.event_us: IntArray = np.zeros(_ROWS, dtype=np.int64)
        self.value: FloatArray = np.zeros(_ROWS)
        self.key: AnyArray = np.zeros(_ROWS, dtype=np.object_)
        """Keys as strings, which compare by code point."""
        self.number: IntArray = np.zeros(_ROWS, dtype=np.int64)
        """Numbers of the keys: equal for equal keys."""
        self.epoch: IntArray = np.zeros(_ROWS, dtype=np.int64)

    def put(self, rank: int, events: Sequence[Event], epoch: int) -> None:
        """Write tuples that an epoch admitted; ``rank`` is that of the first one."""
        end = rank + len(events)
        if end > len(self.epoch):
            self._grow(end)
        _, source_id, key, event_us, value, *_ = zip(*events, strict=True)
        numbers = self._numbers
        self.source_id[rank:end] = source_id
        self.event_us[rank:end] = event_us
        self.value[rank:end] = value
        self.key[rank:end] = key
        self.number[rank:end] = [numbers.setdefault(each, len(numbers)) for each in key]
        self.epoch[rank:end] = epoch

    def _grow(self, rows: int) -> None:
        """Make room for twice as many rows as are needed now."""
        for name in ("source_id", "event_us", "value", "key", "number", "epoch"):
            column = getattr(self, name)
            grown = np.zeros(2 * rows, dtype=column.dtype)
            grown[: len(column)] = column
            setattr(self, name, grown)


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


class Access(NamedTuple):
    """Access of an index to candidates: their column differs by at most ``width``."""

    column: str
    width: float


EVERYTHING = Access("number", 1 << 40)
"""Access without an index: every tuple is compared."""


class Index:
    """Contents of both streams, with the comparisons and pairs so far."""

    def __init__(self, config: JoinConfig, is_indexed: bool = True) -> None:
        self.config = config
        numbers: dict[str, int] = {}
        self.columns = {stream: TupleColumns(numbers) for stream in STREAMS}
        """The admitted tuples of each stream."""
        self.comparisons = 0
        """Number of candidates compared, over all queries."""
        self._found: list[FoundPairs] = []
        self._spans = [config.span(name) for name, _ in config.queries]
        self._access = [
            _access(config, predicate) if is_indexed else EVERYTHING
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
            # The difference of two very large floats may overflow to infinity, which is right.
            with np.errstate(over="ignore"):
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
            ids = [self.columns[stream].source_id for stream in STREAMS]
            self._found.append(FoundPairs(number, ids[0][r[good]], ids[1][s[good]]))

    def least_us(self, stream: str, ranks: Ranks) -> int:
        """Return the least event time; ``END_US`` without tuples."""
        held = cast("RankArray", ranks)
        if held.least_us is None:
            event_us = self.columns[stream].event_us[held.ranks]
            held.least_us = int(event_us.min()) if len(event_us) else END_US
        return held.least_us

    def split_at(self, stream: str, ranks: Ranks, horizon_us: int) -> tuple[Ranks, Ranks]:
        """Return the ranks with an event time below the horizon, and the others, in their order."""
        if self.least_us(stream, ranks) >= horizon_us:
            return (), ranks
        held = cast("RankArray", ranks)
        # The machine asks twice: whether a tuple can be dropped, and then which tuples to keep.
        if held.parts is None or held.parts[0] != horizon_us:
            older = self.columns[stream].event_us[held.ranks] < horizon_us
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
        column, width = self._access[number]
        own = getattr(self.columns[stream], column)[block]
        foreign = getattr(self.columns[other(stream)], column)[others]
        if len(own) <= len(foreign):
            at, position = _near(own, foreign, width)
            return block[position], others[at]
        at, position = _near(foreign, own, width)
        return block[at], others[position]

    def _is_pair(self, number: int, r: IntArray, s: IntArray) -> BoolArray:
        _, predicate = self.config.queries[number]
        of_r, of_s = self.columns["R"], self.columns["S"]
        good: BoolArray = np.abs(of_r.event_us[r] - of_s.event_us[s]) <= self.config.window_us
        good &= self._holds(predicate, r, s)
        first, last = self._spans[number]
        if first > 0 or last is not None:
            for epochs in (of_r.epoch[r], of_s.epoch[s]):
                good &= epochs >= first
                if last is not None:
                    good &= epochs <= last
        return good

    def _holds(self, predicate: Predicate, r: IntArray, s: IntArray) -> BoolArray:
        """Return where a predicate holds, as ``model.join.oracle.holds`` does for one pair."""
        if isinstance(predicate, And):
            good = np.ones(len(r), dtype=np.bool_)
            for part in predicate.parts:
                good &= self._holds(part, r, s)
            return good
        column = predicate.left if isinstance(predicate, Ineq) else _column(predicate)
        left = getattr(self.columns["R"], column)[r]
        right = getattr(self.columns["S"], column)[s]
        return _compared(predicate, left, right)


def _compared(predicate: Equi | Band | Apart | Ineq, left: AnyArray, right: AnyArray) -> BoolArray:
    match predicate:
        case Equi():
            return np.equal(left, right)
        case Band(_, eps) | Apart(_, eps):
            is_near: BoolArray = np.abs(left - right) <= eps
            return is_near if isinstance(predicate, Band) else ~is_near
        case Ineq(_, op):
            good: BoolArray = _OPERATORS[op](left, right)
            return good
    assert_never(predicate)


def _column(predicate: Equi | Band | Apart) -> str:
    """Return the column that is compared; keys are equal if their numbers are."""
    return "number" if predicate.column == "key" else predicate.column


def _access(config: JoinConfig, predicate: Predicate) -> Access:
    """Return the best index for a predicate: by equality, else by a band, else by the window."""
    parts = list(_parts(predicate))
    for part in parts:
        if isinstance(part, Equi):
            return Access(_column(part), 0)
    for part in parts:
        if isinstance(part, Band):
            return Access(part.column, part.eps)
    return Access("event_us", config.window_us)


def _parts(predicate: Predicate) -> chain[Predicate] | tuple[Predicate]:
    if isinstance(predicate, And):
        return chain.from_iterable(_parts(part) for part in predicate.parts)
    return (predicate,)


def _near(few: AnyArray, many: AnyArray, width: float) -> tuple[IntArray, IntArray]:
    """Return positions in ``many`` and in ``few`` of all pairs that differ by at most ``width``.

    Floats may differ by slightly more, because the difference that decides is rounded.
    """
    order = few.argsort()
    low, high = _reach(few[order], width)
    if len(few) == 1:
        at = ((low <= many) & (many <= high)).nonzero()[0]
        return at, np.zeros(len(at), dtype=np.int64)
    # Sorting the many and searching for the few takes a tenth of the time of the opposite.
    by_value = many.argsort()
    ordered = many[by_value]
    first = ordered.searchsorted(low, side="left")
    counts = ordered.searchsorted(high, side="right") - first
    ends = counts.cumsum()
    inside = np.arange(ends[-1]) + (first - ends + counts).repeat(counts)
    # Back in the order of both sides; the sorts may have moved equal values.
    pairs = by_value[inside] * len(few) + order.repeat(counts)
    pairs.sort()
    return np.divmod(pairs, len(few))


def _reach(values: AnyArray, width: float) -> tuple[AnyArray, AnyArray]:
    """Return the lower and upper bounds of what is near each value."""
    if values.dtype.kind == "f" and width:
        reach = width + 4 * np.spacing(np.maximum(np.abs(values), width))
        return values - reach, values + reach
    return values - int(width), values + int(width)
