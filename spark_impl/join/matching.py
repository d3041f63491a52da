"""Tuples in columns, and the predicates on pairs of them.

An index may select too many candidates, never too few: the predicate and the window then check the
values themselves.
"""

import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from model.vocabulary import JoinConfig
from model.vocabulary.join import ALWAYS, END_US, Predicate, R, S
from model.vocabulary.join_predicates import Columns
from spark_impl.join.columns import TYPES, from_arrow, to_arrow_column
from spark_impl.join.conditions import holds
from spark_impl.runtime.arrays import Bools, Column, Floats, Ints, Texts
from spark_impl.runtime.storage import InputProblem

_NO_RANK = END_US
"""A number above every rank."""


class Counts(NamedTuple):
    """One number for each stream, such as the tuples admitted so far."""

    r: int
    s: int


class Ranks(NamedTuple):
    """The tuples that a query pairs, in each stream: ranks from ``first`` to below ``end``."""

    first: Counts
    end: Counts


def ranks_of(
    config: JoinConfig, epoch: int, admitted: Callable[[int], Counts]
) -> tuple[Ranks | None, ...]:
    """Return the ranks that each query pairs, as known in an epoch; ``None`` stands for all ranks.

    ``admitted`` returns the number of tuples admitted before an epoch that has begun.
    """
    nobody, spans = Counts(_NO_RANK, _NO_RANK), config.spans()

    def of(query: str) -> Ranks | None:
        first, last = span = spans.get(query, ALWAYS)
        if span == ALWAYS:
            return None
        has_ended = last is not None and last < epoch
        return Ranks(
            admitted(first) if first <= epoch else nobody,
            admitted(last + 1) if last is not None and has_ended else nobody,
        )

    return tuple(of(name) for name, _ in config.queries)


SCHEMA = pa.schema(
    [
        ("rank", pa.int64()),
        ("source_id", pa.int64()),
        ("ts", pa.int64()),
        ("value", pa.float64()),
        ("key", pa.string()),
    ]
)
"""Built-in columns of tuples in Arrow, in blocks and in checkpoints."""
_BUILT_IN = tuple(SCHEMA.names)
_NAMES = {**{name: name for name in _BUILT_IN}, "event_time": "ts"}
"""Built-in columns of :class:`Tuples`, by the names that predicates and functions use."""


@dataclass(frozen=True, slots=True)
class Tuples:
    """Tuples of one stream, as columns of one length."""

    rank: Ints
    source_id: Ints
    ts: Ints
    value: Floats
    key: Texts
    more: Mapping[str, Column] = field(default_factory=dict)
    """Columns besides the built-in ones, by name (:mod:`spark_impl.join.columns`)."""

    def __len__(self) -> int:
        return len(self.rank)

    def take(self, which: slice | Bools | Ints) -> "Tuples":
        """Return the chosen tuples."""
        # Written out because every block is taken apart.
        more = {name: column[which] for name, column in self.more.items()} if self.more else {}
        return Tuples(
            self.rank[which],
            self.source_id[which],
            self.ts[which],
            self.value[which],
            self.key[which],
            more,
        )

    def map(self, change: Callable[[Column], Column]) -> "Tuples":
        """Return tuples of which each column is the result of a function."""
        more = {name: change(column) for name, column in self.more.items()}
        return _tuples(map(change, self._built_in()), more)

    def column(self, name: str) -> Column:
        """Return the column that a predicate names; ``KeyError`` if there is none."""
        if name in self.more:
            return self.more[name]
        found: Column = getattr(self, _NAMES[name])
        return found

    def columns(self) -> tuple[Column, ...]:
        """Return all columns, the built-in ones first, in the order of :data:`SCHEMA`."""
        return *self._built_in(), *self.more.values()

    @staticmethod
    def concat(parts: "list[Tuples]") -> "Tuples":
        """Concatenate tuples with the same columns; there is at least one part."""
        built_in = zip(*(part._built_in() for part in parts), strict=True)
        more = {name: np.concatenate([part.more[name] for part in parts]) for name in parts[0].more}
        return _tuples(map(np.concatenate, built_in), more)

    def _built_in(self) -> tuple[Column, ...]:
        return self.rank, self.source_id, self.ts, self.value, self.key


def _tuples(built_in: Iterable[Column], more: Mapping[str, Column]) -> Tuples:
    rank, source_id, ts, value, key = built_in
    return Tuples(rank, source_id, ts, value, key, more)


class Pairs(NamedTuple):
    """Matches of one query."""

    r_id: Ints
    s_id: Ints


def schema_of(columns: Columns) -> pa.Schema:
    """Return the columns in Arrow of tuples that have some columns besides the built-in ones."""
    return pa.schema([*SCHEMA, *((name, TYPES[kind]) for name, kind in columns)])


def empty_tuples(columns: Columns = ()) -> Tuples:
    """Return no tuples, with their columns."""
    return tuples_from_arrow(schema_of(columns).empty_table())


def with_columns(tuples: Tuples, columns: Columns) -> Tuples:
    """Return tuples with some columns besides the built-in ones; new ones have nothing in them."""
    nothing = pa.nulls(len(tuples))
    more = {
        name: tuples.more[name] if name in tuples.more else from_arrow(nothing.cast(TYPES[kind]))
        for name, kind in columns
    }
    return replace(tuples, more=more)


def tuples_from_arrow(rows: pa.Table | pa.RecordBatch) -> Tuples:
    """Return tuples from the columns of :data:`SCHEMA`, and whatever columns there are besides."""
    names = [name for name in rows.schema.names if name not in _BUILT_IN]
    more = {name: from_arrow(rows.column(name)) for name in names}
    built_in = [rows.column(name).to_numpy(zero_copy_only=False) for name in _BUILT_IN]
    return _tuples(built_in, more)


def to_arrow(tuples: Tuples) -> pa.RecordBatch:
    """Return tuples as an Arrow batch; :func:`tuples_from_arrow` reads it back."""
    arrays = [
        pa.array(np.ascontiguousarray(column), kind)
        for column, kind in zip(tuples.columns(), SCHEMA.types, strict=False)
    ]
    arrays += map(to_arrow_column, tuples.more.values())
    return pa.RecordBatch.from_arrays(arrays, [*SCHEMA.names, *tuples.more])


class Chosen(NamedTuple):
    """A selection of tuples; a column is copied when it is used."""

    whole: Tuples
    at: Ints

    def __getattr__(self, name: str) -> Column:
        """Return a column of the selected tuples."""
        column: Column = getattr(self.whole, name)
        return column[self.at]

    def column(self, name: str) -> Column:
        """Return the column that a predicate names, of the selected tuples."""
        return self.whole.column(name)[self.at]

    def where(self, good: Bools | Ints) -> "Chosen":
        """Narrow the selection."""
        return Chosen(self.whole, self.at[good])


class Given:
    """The tuples that a function sees: each column is an attribute, copied when it is used.

    They are ``rank``, ``source_id``, ``ts``, ``value``, ``key``, and what the stream has besides.
    """

    def __init__(self, chosen: Chosen, absent: Mapping[str, str] = MappingProxyType({})) -> None:
        self.__chosen__ = chosen  # no column has such a name
        self.__absent__ = absent

    def __len__(self) -> int:
        return len(self.__chosen__.at)

    def __getattr__(self, name: str) -> Any:
        """Return a column; ``AttributeError`` if the stream has no such column."""
        if name in self.__absent__:
            raise InputProblem(self.__absent__[name])
        if name not in _NAMES and name not in self.__chosen__.whole.more:
            msg = f"the tuples have no column {name!r}"
            raise AttributeError(msg)
        return self.__chosen__.column(name)


FreePredicate: TypeAlias = Callable[[Any, Any], Bools]
"""A function from n tuples of R and n of S to n flags: which pairs match, ignoring times.

The tuples are :class:`Given`.
"""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A function that raises :class:`InputProblem` if it uses a column that an input lacks."""

    function: FreePredicate
    absent: Collection[tuple[str, str]]
    """Streams and columns."""

    def __call__(self, r: Given, s: Given) -> Bools:
        """Return what the function says."""
        return self.function(self._guard(R, r), self._guard(S, s))

    def _guard(self, stream: str, given: Given) -> Given:
        reasons = {
            name: f"the input {of} has no column {name!r}, which a function uses"
            for of, name in self.absent
            if of == stream
        }
        return Given(given.__chosen__, reasons)


NONE = Pairs(np.empty(0, np.int64), np.empty(0, np.int64))
"""No matches."""


class Query(NamedTuple):
    """The conditions on a pair, besides the window."""

    name: str
    predicate: Predicate
    free: FreePredicate | None
    ranks: Ranks | None = None
    """The tuples that the query pairs; ``None``: all."""

    def may_pair(self, block: Tuples, stream: str) -> bool:
        """Return whether some tuple of a block may belong to a pair.

        The block is not empty, and ordered by rank.
        """
        if self.ranks is None:
            return True
        (first_r, first_s), (end_r, end_s) = self.ranks
        first, end = (first_r, end_r) if stream == R else (first_s, end_s)
        return bool(block.rank[-1] >= first and block.rank[0] < end)


def decide(query: Query, r: Chosen, s: Chosen) -> Bools:
    """Return which pairs of tuples match a query.

    Raise :class:`InputProblem` if its function does not return one truth value per pair.
    """
    good = holds(query.predicate, r, s)
    if query.ranks is not None:
        first, end = query.ranks
        good &= (r.rank >= first.r) & (r.rank < end.r) & (s.rank >= first.s) & (s.rank < end.s)
    if query.free is not None:
        r, s = r.where(good), s.where(good)
        if len(r.at):
            good[good] = _flags(query, len(r.at), query.free(Given(r), Given(s)))
    return good


def _flags(query: Query, pairs: int, returned: object) -> Bools:
    """Return the answer of a query's function, as an array of truth values."""
    try:
        flags = np.asarray(returned)
    except ValueError:  # lists of several lengths
        flags = np.empty(0, object)
    if flags.dtype == np.bool_ and flags.shape == (pairs,):
        return flags
    msg = (
        f"the function of the query {query.name!r} has to return {pairs} truth values, one for"
        f" each pair; it returned {_short(returned)}"
    )
    raise InputProblem(msg)


def _short(returned: object) -> str:
    if isinstance(returned, np.ndarray):
        return f"an array of {returned.dtype} of the shape {returned.shape}"
    return f"{type(returned).__name__} {reprlib.repr(returned)}"
