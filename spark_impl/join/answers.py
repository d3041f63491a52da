"""Results, epochs and progress of a chain, read from its store."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary.join import END_US, NO_WATERMARK_US, STREAMS
from model.vocabulary.join_predicates import TIME
from spark_impl.join import register
from spark_impl.join.checkpoint import decode_state
from spark_impl.join.columns import names_of
from spark_impl.join.given import read_select
from spark_impl.join.matching import to_arrow
from spark_impl.join.store import MATCHES, REJECTED, STATE, ChainStore, Commit, load_store
from spark_impl.runtime.accounts import rows_of_batch
from spark_impl.runtime.queries import frame_of, read_table
from spark_impl.runtime.storage import Address, InputProblem
from spark_impl.runtime.tables import BATCH
from spark_impl.runtime.waiting import ROW, unread

AWAITED = "it may still meet a partner"
_WAITING = pa.schema([("stream", pa.string()), *ROW, ("reason", pa.string())])


def results(
    spark: SparkSession,
    store: Address,
    *,
    query: str | None = None,
    select: Collection[str] = (),
) -> DataFrame:
    """Return all pairs that a chain has found, with columns ``query, r_id, s_id, epoch``.

    An epoch that is running, or that a crash interrupted, is not visible. ``query`` names the query
    whose pairs are wanted. ``select`` adds columns of the tuples, which the chain must have kept as
    its history: ``("r.pm25", "s.key")`` become ``r_pm25`` and ``s_key``. Raise
    :class:`InputProblem` if ``store`` is not the store of a chain, or there is no such query or
    column, or no history, or some pairs are missing.
    """
    place = load_store(store)
    last = place.view.last
    pairs = read_epochs(spark, place, MATCHES)
    if last < 0 and (query is not None or select):
        msg = f"{store} has no epoch yet, and so neither queries nor columns to select"
        raise InputProblem(msg)
    if query is not None:
        asked = register.read(place, place.last())
        assert asked is not None  # there is a commit
        asked.require(query)
        pairs = pairs.where(F.col("query") == query)
    return _with_selected(spark, place, pairs, select, last) if select else pairs


def _with_selected(
    spark: SparkSession, place: ChainStore, pairs: DataFrame, select: Collection[str], last: int
) -> DataFrame:
    """Return pairs with columns of their tuples, which some epochs have admitted."""
    named: dict[str, dict[str, Column]] = {stream: {} for stream in STREAMS}
    config = place.commit_of(last).config
    selected = read_select(config, select, pairs.columns)
    require_history(place, 0, last)
    for name, (stream, column, kind) in selected.items():
        source = "ts" if column == "event_time" else column
        given = F.timestamp_micros(source) if kind == TIME else F.col(source)
        named[stream][name] = given.alias(name)
    wanted = [*pairs.columns, *selected]
    for stream, columns in named.items():
        if columns:
            own = f"{stream.lower()}_id"
            opened, names = place.with_columns(config), names_of(config.columns(stream), stream)
            tuples = read_epochs(spark, opened, f"admitted-{stream}", 0, last).drop("epoch")
            tuples = tuples.withColumnsRenamed(names)
            tuples = tuples.select(F.col("source_id").alias(own), *columns.values())
            pairs = pairs.join(tuples, own)
    return pairs.select(*wanted)


def snapshots(store: Address) -> tuple[Commit, ...]:
    """Return the committed epochs of a chain, in order.

    Raise :class:`InputProblem` if ``store`` is not the store of a chain.
    """
    return tuple(load_store(store).commits())


def rejected(spark: SparkSession, store: Address) -> DataFrame:
    """Return every arrival that a chain has refused: late, shed, or without a finite value.

    The columns are ``stream, seq, source_id, key, event_time_us, reason, epoch``. Raise
    :class:`InputProblem` if ``store`` is not the store of a chain, or some are missing.
    """
    return read_epochs(spark, load_store(store), REJECTED)


def pending(spark: SparkSession, store: Address) -> DataFrame:
    """Return every tuple that may still meet a partner, and every row that was not read yet.

    The columns are ``stream, seq, source_id, key, event_time_us, reason``; of a tuple that waits
    for partners, ``seq`` is NULL. Raise :class:`InputProblem` if ``store`` is not the store of a
    chain, or the state of a worker is missing.
    """
    place = load_store(store)
    parts = [_WAITING.empty_table()]
    for file in place.states(STATE, place.view.last).values():
        state = decode_state(place.read_state(file, STATE)["content"])
        for stream, own in zip(STREAMS, state, strict=True):
            held = to_arrow(own.tuples)
            texts = [pa.repeat(pa.scalar(text), held.num_rows) for text in (stream, AWAITED)]
            columns = [held.column(name) for name in ("source_id", "key", "ts")]
            nothing = pa.nulls(held.num_rows, pa.int64())
            columns = [texts[0], nothing, *columns, texts[1]]
            parts.append(pa.Table.from_arrays(columns, schema=_WAITING))
    waiting = frame_of(spark, pa.concat_tables(parts))
    return unread(spark, place, [_WAITING.field("stream")]).unionByName(waiting)


class Progress(NamedTuple):
    """The position of a chain, and what holds it back."""

    epoch: int
    """The last committed epoch; -1 before the first one."""
    complete_us: int
    """Every pair whose event times are both below this one has come out."""
    rejected: Mapping[str, int]
    """Number of refused arrivals so far, by reason."""
    watermarks_us: Mapping[str, int]
    """Watermark by stream; ``NO_WATERMARK_US`` for a stream without one."""
    held_by: str | None
    """The stream with the lower watermark; ``None`` without watermarks, and after a flush."""
    rows: Mapping[str, int]
    """Rows of the last epoch, and those in each place of the ledger; ``pending`` is the change."""


def progress(store: Address) -> Progress:
    """Return the position of a chain, and the stream that holds back its results.

    Raise :class:`InputProblem` if ``store`` is not the store of a chain.
    """
    place = load_store(store)
    commits = place.commits()
    counts: Counter[str] = Counter()
    for done in commits:
        counts.update(done.reasons)
    if not commits:
        nothing = dict.fromkeys(STREAMS, NO_WATERMARK_US)
        return Progress(-1, NO_WATERMARK_US, {}, nothing, None, {})
    last = commits[-1]
    lateness_us, clocks = last.config.lateness_us, last.clocks
    wm_us = [each.watermark_us(lateness_us) for each in clocks]
    held_by = None if last.flush or lateness_us is None else clocks.held_by(lateness_us)
    return Progress(
        last.epoch,
        last.complete_us,
        dict(counts),
        dict(zip(STREAMS, [END_US, END_US] if last.flush else wm_us, strict=True)),
        held_by,
        rows_of_batch(place),
    )


def require_history(store: ChainStore, first: int, last: int) -> None:
    """Raise :class:`InputProblem` if an epoch is not committed, or has kept no tuples."""
    done = {each.epoch: each for each in store.commits()}
    for epoch in range(first, last + 1):
        if not (done[epoch] if epoch in done else store.commit_of(epoch)).history:
            msg = (
                f"the tuples of epoch {epoch} were not kept: only a chain with a history keeps them"
            )
            raise InputProblem(msg)


def read_epochs(
    spark: SparkSession, store: ChainStore, kind: str, first: int = 0, last: int | None = None
) -> DataFrame:
    """Return the rows of a kind that some epochs wrote; :class:`InputProblem` if some are lost."""
    return read_table(spark, store, kind, first, last).withColumnRenamed(BATCH, "epoch")
