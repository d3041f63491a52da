"""Tuples in columns, and the predicates on pairs of them.

An index may select too many candidates, never too few: the predicate and the window then check the
values themselves.
"""

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from model.vocabulary import JoinConfig
from model.vocabulary.join import END_US, And, Apart, Band, Equi, Predicate, R
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
    nobody = Counts(_NO_RANK, _NO_RANK)

    def of(query: str) -> Ranks | None:
        first, last = config.span(query)
        if (first, last) == (0, None):
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
"""Columns of tuples in Arrow, in blocks and in checkpoints."""
_COMPARE: dict[str, np.ufunc] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "!=": np.not_equal,
}


@dataclass(frozen=True, slots=True)
class Tuples:
    """Tuples of one stream, as columns of one length."""

    rank: Ints
    source_id: Ints
    ts: Ints
    value: Floats
    key: Texts

    def __len__(self) -> int:
        return len(self.rank)

    def take(self, which: slice | Bools | Ints) -> "Tuples":
        """Return the chosen tuples."""
        return Tuples(*(column[which] for column in self.columns()))

    def columns(self) -> tuple[Column, ...]:
        """Return the columns in the order of their names in :data:`SCHEMA`."""
        return self.rank, self.source_id, self.ts, self.value, self.key

    @staticmethod
    def concat(parts: "list[Tuples]") -> "Tuples":
        """Concatenate tuples; there is at least one part."""
        return Tuples(*map(np.concatenate, zip(*(part.columns() for part in parts), strict=True)))


def column_of(tuples: Tuples, name: str) -> Column:
    """Return a column by its name in a condition."""
    column: Column = tuples.ts if name == "event_time" else getattr(tuples, name)
    return column


FreePredicate: TypeAlias = Callable[[Tuples, Tuples], Bools]
"""A function from n tuples of R and n of S to n flags: which pairs match, ignoring times."""


class Pairs(NamedTuple):
    """Matches of one query."""

    r_id: Ints
    s_id: Ints


def tuples_from_arrow(rows: pa.Table | pa.RecordBatch) -> Tuples:
    """Return tuples from the columns of :data:`SCHEMA`."""
    return Tuples(*(rows.column(field.name).to_numpy(zero_copy_only=False) for field in SCHEMA))


def to_arrow(tuples: Tuples) -> pa.RecordBatch:
    """Return tuples as an Arrow batch with the columns of :data:`SCHEMA`."""
    columns = [
        pa.array(np.ascontiguousarray(column), field.type)
        for column, field in zip(tuples.columns(), SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


class Chosen(NamedTuple):
    """A selection of tuples; a column is copied when it is used."""

    whole: Tuples
    at: Ints

    def __getattr__(self, name: str) -> Column:
        """Return a column of the selected tuples."""
        column: Column = getattr(self.whole, name)
        return column[self.at]

    def where(self, good: Bools | Ints) -> "Chosen":
        """Narrow the selection."""
        return Chosen(self.whole, self.at[good])

    def tuples(self) -> Tuples:
        """Return the selected tuples with all columns."""
        return self.whole.take(self.at)


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
        """Return whether some tuple of a block, which is ordered by rank, may belong to a pair."""
        if self.ranks is None or not len(block):
            return len(block) > 0
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
        if not good.all():
            r, s = r.where(good), s.where(good)
        if len(r.at):
            good[good] = _flags(query, len(r.at), query.free(r.tuples(), s.tuples()))
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


def holds(predicate: Predicate, r: Tuples | Chosen, s: Tuples | Chosen) -> Bools:
    """Return which pairs of a tuple of R and one of S satisfy a predicate."""
    if isinstance(predicate, And):
        good = np.ones(len(r.source_id), np.bool_)
        for part in predicate.parts:
            good &= holds(part, r, s)
        return good
    if isinstance(predicate, Band | Apart):
        with np.errstate(over="ignore"):  # an infinite distance is not near
            near = np.asarray(np.abs(r.value - s.value) <= predicate.eps)
        return near if isinstance(predicate, Band) else ~near
    if isinstance(predicate, Equi):
        return np.asarray(getattr(r, predicate.column) == getattr(s, predicate.column), np.bool_)
    compare = _COMPARE[predicate.op]
    one, other = getattr(r, predicate.left), getattr(s, predicate.right)
    return np.asarray(compare(one, other), np.bool_)
