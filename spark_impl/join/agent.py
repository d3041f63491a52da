"""Queries and answers of a chain for other processes, without Spark, through the store.

What is asked for is in the register when a function returns; the chain need not run. Errors are
:class:`InputProblem`, also if ``store`` is not the store of a chain.

Args:
    store: folder of the chain, the ``checkpoint`` of :meth:`ChainJoin.stream`.
    name: name of the query.
    condition: a predicate of ``model.vocabulary.join``, or its text.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from model.vocabulary import JoinConfig
from model.vocabulary.join import (
    END_US,
    NO_WATERMARK_US,
    REASON_LATE,
    REASON_SHED,
    STREAMS,
    Predicate,
    R,
    S,
)
from model.vocabulary.join_conditions import write_condition
from model.vocabulary.join_predicates import TIME
from spark_impl.join import register
from spark_impl.join.answers import require_history
from spark_impl.join.checkpoint import decode_state, empty_state
from spark_impl.join.columns import names_of
from spark_impl.join.given import declare_for, read_select
from spark_impl.join.matching import tuples_from_arrow
from spark_impl.join.register import Register
from spark_impl.join.side import Matcher
from spark_impl.join.store import MATCHES, STATE, ChainStore, Commit, load_store
from spark_impl.runtime.arrays import Ints
from spark_impl.runtime.storage import Address, InputProblem
from spark_impl.runtime.tables import BATCH

Held: TypeAlias = tuple[Ints, Ints]
"""Ranks of tuples of R and of S."""
_IDS = ("r_id", "s_id")


def submit(
    store: Address,
    name: str,
    condition: Predicate | str,
    *,
    select: Collection[str] = (),
) -> int:
    """Add a query from the next epoch on; return the number of that epoch.

    The same query twice is one: the second call returns the first epoch of it. Raise
    :class:`InputProblem` if the name has ended or stands for another query, or if the chain lacks a
    column, a history or the time that the query needs.

    Args:
        name: name of the query, new in this chain.
        select: columns that :func:`answers` adds to the pairs, such as ``"r.key"``.

    Examples:
        >>> join.submit(f"{folder}/chain", "far", "value apart 5", select=["r.key"])
        1
    """
    chosen = tuple(select)

    def added(place: ChainStore, known: Register) -> Register:
        predicate = _declare(known, name, condition)
        read_select(known.config, select, _IDS)
        if chosen and not known.history:
            msg = f"the chain in {place.root} keeps no history, which select reads"
            raise InputProblem(msg)
        return register.submitted(known, name, predicate, chosen)

    return _change(store, added).config.span(name)[0]


def withdraw(store: Address, name: str) -> int:
    """End a query before the next epoch; return the number of that epoch.

    A query that has ended stays as it is. Pairs that are owed come out all the same. Raise
    :class:`InputProblem` for an unknown name, or if no query would be left.

    Examples:
        >>> join.withdraw(f"{folder}/chain", "close")
        1
    """
    after = _change(store, lambda _, known: register.withdrawn(known, name))
    return register.end_of(after, name)


class QueryStatus(NamedTuple):
    """A query of a chain, after the last committed epoch."""

    name: str
    condition: str
    """The condition as a text; of a function, ``a function``."""
    select: tuple[str, ...]
    first: int
    """The first epoch whose tuples it pairs; it may lie ahead."""
    last: int | None
    """The last such epoch; None without an end."""
    complete_us: int
    """Every pair whose event times are both below this one has come out."""
    pairs: int
    """Number of pairs so far."""
    late: int
    """Number of arrivals that came late in the epochs of the query."""
    shed: int
    """Number of arrivals that were shed in its epochs."""
    pending: int
    """Number of tuples of its epochs that may still meet a partner."""


class Status(NamedTuple):
    """The queries of a chain."""

    epoch: int
    """The last committed epoch; -1 before the first one."""
    next: int
    """The epoch from which on a request holds now."""
    flushed: bool
    queries: tuple[QueryStatus, ...]


def status(store: Address) -> Status:
    """Return what a chain knows of each of its queries, whether it runs or not.

    Examples:
        >>> [(each.name, each.condition) for each in join.status(f"{folder}/chain").queries]
        [('same', 'key'), ('close', 'value within 0.5'), ('far', 'value apart 5')]
    """
    place, _, known = _look(store)
    commits = place.commits()
    held = _ranks_held(place)
    queries = (status_of(place, known, commits, held, *each) for each in known.config.queries)
    return Status(place.view.last, known.next, known.flush, tuple(queries))


def answers(
    store: Address, query: str, *, select: Collection[str] | None = None, complete: bool = False
) -> pa.Table:
    """Return the pairs of a query so far: ``r_id, s_id``, and the columns that it selects.

    Raise :class:`InputProblem` for an unknown query or column, and if columns or times are wanted
    of a chain without a history.

    Args:
        query: name of the query.
        select: columns of the tuples; None takes those that the query was submitted with.
        complete: True to leave out pairs that are not below :attr:`QueryStatus.complete_us`, so
            that the rest is final.

    Examples:
        >>> join.answers(f"{folder}/chain", "same", select=["r.key", "s.value"]).to_pylist()
        [{'r_id': 7, 's_id': 9, 'r_key': 'a', 's_value': 2.0}]
    """
    # First, because pairs that come later may lie below what is complete later.
    until_us = {each.name: each.complete_us for each in status(store).queries} if complete else {}
    place, done, known = _look(store)
    known.require(query)
    chosen: Collection[str] = known.selects.get(query, ()) if select is None else select
    selected = read_select(known.config, chosen, _IDS)
    found = place.read(place.view.of(MATCHES), MATCHES, pc.field("query") == query)
    pairs = found.select(_IDS)
    if not (selected or complete):
        return pairs
    first = known.config.span(query)[0]
    tuples = _admitted(place, known.config, first, -1 if done is None else done.epoch)
    if complete:
        end_us = until_us.get(query, NO_WATERMARK_US)
        times = [pc.less(_of(pairs, tuples, each, "ts"), end_us) for each in STREAMS]
        pairs = pairs.filter(pc.and_(*times))
    return _with_columns(pairs, tuples, selected)


def ask(
    store: Address,
    condition: Predicate | str,
    *,
    first_epoch: int = 0,
    last_epoch: int | None = None,
    select: Collection[str] = (),
) -> pa.Table:
    """Return all pairs among the tuples of past epochs: ``r_id, s_id``, and what is selected.

    It runs in this process, while the chain goes on. Raise :class:`InputProblem` if an epoch is not
    committed or has no history.

    Args:
        first_epoch: first epoch whose tuples count.
        last_epoch: last such epoch; None is the last committed one.
        select: columns of the tuples, such as ``"r.key"``.

    Examples:
        >>> join.ask(f"{folder}/chain", "r.value < s.value").to_pylist()
        [{'r_id': 7, 's_id': 9}]
    """
    place, done, known = _look(store)
    last = place.view.last if last_epoch is None else last_epoch
    if done is None:
        msg = f"the chain in {place.root} has no epoch yet"
        raise InputProblem(msg)
    if first_epoch > last:
        msg = f"the first epoch {first_epoch} comes after the last one, {last}"
        raise InputProblem(msg)
    asked = [each for each in place.commits() if first_epoch <= each.epoch <= last]
    absent = tuple(sorted({pair for each in asked for pair in each.absent}))
    known = known._replace(config=place.commit_of(last).config, absent=absent)
    predicate = _declare(known, "ask", condition)
    selected = read_select(known.config, select, _IDS)
    once = replace(known.config, queries=(("ask", predicate),), epochs=())
    tuples = _admitted(place, once, first_epoch, last)
    (found,) = Matcher(once).match(*(tuples_from_arrow(each) for each in tuples.values()))
    return _with_columns(pa.table([*found], [*_IDS]), tuples, selected)


# ------------------------------------------------------------------------------------- the register


def _look(store: Address) -> tuple[ChainStore, Commit | None, Register]:
    """Return the store of a chain, its last commit, and the register now."""
    place = load_store(store)
    done = place.last()
    return place, done, _require(place, register.read(place, done))


def _require(place: ChainStore, known: Register | None) -> Register:
    if known is None:
        msg = f"the chain in {place.root} has not been started yet"
        raise InputProblem(msg)
    return known


def _change(store: Address, how: Callable[[ChainStore, Register], Register]) -> Register:
    """Change the register of a chain to which something may still come."""
    place, done, _ = _look(store)

    def changed(known: Register | None) -> Register:
        now = _require(place, known)
        now.require_open(place.root)
        return how(place, now)

    return register.change(place, done, changed)


def _declare(known: Register, name: str, condition: Predicate | str) -> Predicate:
    """Return the predicate of a query."""
    if callable(condition):
        msg = f"query {name!r}: a store cannot hold a function; write a condition"
        raise InputProblem(msg)
    return declare_for(name, condition, known.config, known.absent)


# --------------------------------------------------------------------------------------- the tables


def status_of(
    place: ChainStore,
    known: Register,
    commits: Sequence[Commit],
    held: Held,
    name: str,
    predicate: Predicate,
) -> QueryStatus:
    """Return what a chain knows of a query; ``held`` are the ranks that its workers hold."""
    first, last = known.config.span(name)
    own = [each for each in commits if each.epoch >= first and (last is None or each.epoch <= last)]
    pairs = sum(each.matches.get(name, 0) for each in commits)
    reasons = Counter[str]()
    for each in own:
        reasons.update(each.reasons)
    complete_us, pending = NO_WATERMARK_US, 0
    if own:
        spans = zip(place.admitted_before(first), own[-1].admitted, strict=True)
        left = [
            int(((ranks >= low) & (ranks < high)).sum())
            for ranks, (low, high) in zip(held, spans, strict=True)
        ]
        # Until another epoch is over, the next opening may move an end that nobody asked for.
        ends_with = commits[-1].epoch if name in known.changed else commits[-1].epoch - 1
        is_over = last is not None and last <= ends_with and 0 in left
        complete_us, pending = (END_US, 0) if is_over else (commits[-1].complete_us, sum(left))
    kinds = known.config.kinds()
    is_function = name in known.functions
    return QueryStatus(
        name,
        "a function" if is_function else write_condition(predicate, kinds[R], kinds[S]),
        known.selects.get(name, ()),
        first,
        last,
        complete_us,
        pairs,
        reasons[REASON_LATE],
        reasons[REASON_SHED],
        pending,
    )


def _ranks_held(place: ChainStore) -> Held:
    """Return the ranks of the tuples that all workers hold, by stream."""
    files = place.states(STATE, place.view.last).values()
    states = [decode_state(place.read_state(each, STATE)["content"]) for each in files]
    both = zip(empty_state(), *states, strict=True)
    r, s = (np.concatenate([each.tuples.rank for each in stream]) for stream in both)
    return r, s


def _admitted(place: ChainStore, config: JoinConfig, first: int, last: int) -> dict[str, pa.Table]:
    """Return the tuples that some epochs have admitted, by stream, in the order of their ranks."""
    require_history(place, first, last)
    opened, found = place.with_columns(config), dict[str, pa.Table]()
    within = (pc.field(BATCH) >= first) & (pc.field(BATCH) <= last)
    for stream in STREAMS:
        kind = f"admitted-{stream}"
        rows = opened.read(place.view.of(kind, first, last), kind, within).drop_columns([BATCH])
        names = names_of(config.columns(stream), stream)
        rows = rows.rename_columns([names.get(each, each) for each in rows.schema.names])
        found[stream] = rows.sort_by("rank").combine_chunks()
    return found


def _of(
    pairs: pa.Table, tuples: Mapping[str, pa.Table], stream: str, column: str
) -> pa.ChunkedArray:
    """Return a column of the tuples of pairs."""
    own = tuples[stream]
    at = pc.index_in(pairs.column(f"{stream.lower()}_id"), own.column("source_id"))
    return own.column("ts" if column == "event_time" else column).take(at)


def _with_columns(
    pairs: pa.Table, tuples: Mapping[str, pa.Table], selected: Mapping[str, tuple[str, str, str]]
) -> pa.Table:
    """Return pairs with columns of their tuples."""
    whole = pairs
    for name, (stream, column, kind) in selected.items():
        values = _of(pairs, tuples, stream, column)
        values = values.cast(pa.timestamp("us", "UTC")) if kind == TIME else values
        whole = whole.append_column(name, values)
    return whole
