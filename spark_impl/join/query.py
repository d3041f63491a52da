"""The interface for users: joins of tables or of streams on any predicate, and their results."""

import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.streaming.query import StreamingQuery

from model.vocabulary import JoinConfig
from model.vocabulary.join import PREDICATES, And, Predicate, R, S
from spark_impl.join.chain import PATIENCE_S, Chain, ChainProblem
from spark_impl.join.inputs import union_inputs
from spark_impl.join.matching import Counts, FreePredicate
from spark_impl.join.store import (
    ADMITTED,
    MATCHES,
    ONE_FOLDER,
    ChainStore,
    Commit,
    Part,
    load_store,
)
from spark_impl.runtime.failures import wait_for
from spark_impl.runtime.queries import read_files, require_checkpoint, start_batches
from spark_impl.runtime.storage import InputProblem, Location, locate, reading
from spark_impl.runtime.stores import read_parquet

log = logging.getLogger("straggler.join")

Condition: TypeAlias = Predicate | FreePredicate
Sink: TypeAlias = Callable[[DataFrame, int], None]
DEFAULT_QUERY = "join"
"""Name of a query that was given without a name."""


class ChainJoin:
    """A join of two inputs on any predicate, within a window of time.

    ``predicate`` is one of ``model.vocabulary.join`` (``Equi``, ``Band``, ``Apart``, ``Ineq``,
    ``And``), or a function on columns (:data:`spark_impl.join.matching.FreePredicate`), or several
    of them by name. All of them share one chain of ``workers`` tasks that run at the same time. A
    pair also has to have event times that differ by at most ``window_us``. The other arguments are
    those of ``model.vocabulary.JoinConfig``, and:

    * ``recording``: write down the steps of all workers;
    * ``history``: keep the admitted tuples, which :func:`one_time` needs;
    * ``patience_s``: seconds of silence after which a worker is taken for dead.

    Inputs have the columns ``source_id`` (an integer, the identity of a tuple in its stream: a
    repeated one counts once), ``key`` (text), ``event_time_us`` (an integer, or a timestamp) and
    ``value`` (a float, or an integer of at most 32 bits). Streams also have ``seq`` (an integer,
    the order of arrival over both streams).
    """

    def __init__(
        self,
        workers: int,
        window_us: int,
        predicate: Condition | Mapping[str, Condition],
        *,
        block_size: int = 64,
        credit: int = 16,
        lateness_us: int | None = None,
        epochs: tuple[tuple[str, int, int | None], ...] = (),
        recording: bool = False,
        history: bool = False,
        patience_s: float = PATIENCE_S,
    ) -> None:
        given = predicate if isinstance(predicate, Mapping) else {DEFAULT_QUERY: predicate}
        self._free = {name: each for name, each in given.items() if callable(each)}
        self._recording = recording
        self._history = history
        self._patience_s = patience_s
        self._config = JoinConfig(
            window_us=window_us,
            queries=tuple((name, _declare(each)) for name, each in given.items()),
            workers=workers,
            block_size=block_size,
            credit=credit,
            lateness_us=lateness_us,
            epochs=epochs,
        )

    def join(
        self, r: DataFrame, s: DataFrame, store: str | Path | Location | None = None
    ) -> DataFrame:
        """Return all pairs of two bounded inputs: a row ``query, r_id, s_id, epoch`` for each.

        The pairs stay in ``store``, an empty folder that the driver and all workers reach under
        this address. Without ``store`` they are brought to the driver; then the chain has to run on
        one machine. Tuples with a value that is not finite match nothing; a warning says how many
        there are. Raise :class:`InputProblem` for inputs or a store that cannot be used, and
        :class:`ChainProblem` if the join fails.
        """
        spark = r.sparkSession
        if store is not None:
            self._join(r, s, store)
            return results(spark, store)
        check_reach(str(spark.sparkContext.master))
        with tempfile.TemporaryDirectory(
            prefix="straggler-join-", ignore_cleanup_errors=True
        ) as scratch:
            found = self._join(r, s, scratch)
            files = find_complete(found, "matches", found.parts())
            return spark.createDataFrame(read_parquet(files, MATCHES))

    def _join(self, r: DataFrame, s: DataFrame, store: str | Path | Location) -> ChainStore:
        """Join two bounded inputs; return the store with the pairs."""
        # If tuples come in order of time, none is late, and workers hold few tuples.
        ordered = JoinConfig.from_json({**self._config.to_json(), "lateness_us": 0})
        rows = union_inputs(r, s, "event_time_us")
        chain = self._open(r.sparkSession, ordered, store)
        if chain.epochs:
            msg = f"{chain.store.root} holds the results of another join"
            raise InputProblem(msg)
        rejected = sum(each.rejected for each in chain.advance(rows))
        chain.advance(None)
        if rejected:
            log.warning("%d tuples match nothing: their values are not finite", rejected)
        return chain.store

    def stream(
        self,
        r: DataFrame,
        s: DataFrame,
        checkpoint: str | Path | Location,
        sink: Sink | None = None,
        *,
        spark_checkpoint: str | Path | Location | None = None,
    ) -> "ChainStream":
        """Return the join of two streams, not started yet; every micro-batch is an epoch.

        ``checkpoint`` is the folder for state and results, which :func:`results` reads; the driver
        and all workers reach it under this address. The next run with this folder resumes where the
        last one stopped, perhaps with more or fewer workers, and with other queries: a new query
        begins with the next epoch, a removed one ends with the last one. Spark keeps a checkpoint
        of its own there, or in ``spark_checkpoint`` if Spark has no connector for that file system.

        ``sink`` is called with the pairs of every epoch, a DataFrame, and with the number of the
        epoch. After a crash it may be called again for the same epoch, with the same pairs. A sink
        that replaces what it was given for a number before therefore has every pair exactly once.
        It is not called for an epoch in which nothing arrived.
        """
        chain = self._open(r.sparkSession, self._config, checkpoint)
        own = chain.store.checkpoint if spark_checkpoint is None else locate(spark_checkpoint)
        return ChainStream(chain, union_inputs(r, s, "seq"), sink, own)

    def _open(self, spark: SparkSession, config: JoinConfig, store: str | Path | Location) -> Chain:
        return Chain(
            spark,
            config,
            store,
            self._free,
            recording=self._recording,
            history=self._history,
            patience_s=self._patience_s,
        )


class ChainStream:
    """A join of two streams, to be started."""

    def __init__(
        self, chain: Chain, rows: DataFrame, sink: Sink | None, checkpoint: Location
    ) -> None:
        self._chain = chain
        self._rows = rows
        self._sink = sink
        self._checkpoint = checkpoint

    def start(self, interval: str = "0 seconds") -> StreamingQuery:
        """Start the join and leave it running."""
        return self._start(interval)

    def run_available(self) -> None:
        """Join everything that is in the sources now.

        Raise :class:`ChainProblem` if an epoch fails; the next call resumes after the last epoch.
        """
        wait_for(self._start(), ChainProblem, self._chain.store.root)

    def flush(self) -> None:
        """Join everything that is in the sources, then find all pairs that are still owed.

        Nothing may follow. Raise :class:`ChainProblem` if it fails, also if something came after an
        earlier flush.
        """
        self.run_available()
        if not self._chain.flushed:
            self._chain.advance(None)
        # Again, because a crash may have come before it.
        self._hand_on(self._rows.sparkSession, self._chain.epochs - 1)

    def _start(self, interval: str | None = None) -> StreamingQuery:
        require_checkpoint(self._checkpoint, self._chain.store.root, self._micro_batches - 1)
        return start_batches(self._rows, self._checkpoint, self._epoch, interval)

    @property
    def _micro_batches(self) -> int:
        """Number of micro-batches that have been joined; a flush is none."""
        return self._chain.epochs - self._chain.flushed

    def _epoch(self, rows: DataFrame, batch: int) -> None:
        """Run an epoch for a micro-batch. After a crash, Spark calls it again for the same one."""
        expected = self._micro_batches
        if batch == expected:
            self._chain.advance(rows)  # refuses what comes after a flush
        elif batch != expected - 1:
            msg = f"the stream is at micro-batch {batch}, but the store expects {expected}"
            raise InputProblem(msg)
        self._hand_on(rows.sparkSession, batch)

    def _hand_on(self, spark: SparkSession, epoch: int) -> None:
        store = self._chain.store
        if self._sink is not None and not _is_empty(store, store.commit_of(epoch)):
            self._sink(matches(spark, store, epoch, epoch), epoch)


def _is_empty(store: ChainStore, done: Commit) -> bool:
    """Return whether nothing came in an epoch, as in the first one while sources are empty."""
    came = done.admitted != store.admitted_before(done.epoch) or done.rejected
    return not (done.flush or came or any(done.matches.values()))


def one_time(
    spark: SparkSession,
    store: str | Path | Location,
    predicate: Condition | Mapping[str, Condition],
    first_epoch: int,
    last_epoch: int,
    *,
    workers: int = 1,
    into: str | Path | Location | None = None,
) -> DataFrame:
    """Return all pairs among the tuples that some epochs admitted: rows ``query, r_id, s_id``.

    The window is that of the chain. Both epochs are included. The chain must have kept its history,
    and may be running. ``into`` is the ``store`` of :meth:`ChainJoin.join`. Raise
    :class:`InputProblem` if one of the epochs has not been committed or has no history, and
    :class:`ChainProblem` if the join fails.
    """
    if first_epoch > last_epoch:
        msg = f"the first epoch {first_epoch} comes after the last one, {last_epoch}"
        raise InputProblem(msg)
    place = load_store(store)
    config = place.commit_of(last_epoch).config
    r, s = (admitted(spark, place, stream, first_epoch, last_epoch) for stream in (R, S))
    return ChainJoin(workers, config.window_us, predicate).join(r, s, into).drop("epoch")


def check_reach(master: str) -> None:
    """Raise :class:`InputProblem` unless all workers write on the driver's machine."""
    if not master.startswith("local"):
        msg = (
            f"without a store the pairs stay on the machines of {master}: give a folder that the"
            " driver and all workers reach under one address"
        )
        raise InputProblem(msg)


def _declare(condition: Condition) -> Predicate:
    """Return the predicate for the configuration; for a function, one that every pair satisfies."""
    if isinstance(condition, PREDICATES):
        return condition
    if callable(condition):
        return And()
    msg = f"{condition!r} is neither a predicate nor a function"
    raise ValueError(msg)


class Snapshot(NamedTuple):
    """A committed epoch, and what the chain held after it."""

    epoch: int
    committed_us: int
    """Wall-clock time on the driver, since 1970."""
    workers: int
    matches: Mapping[str, int]
    """Number of pairs found in this epoch, by query."""
    rejected: int
    """Number of rejected arrivals of this epoch."""
    admitted: Counts
    """Number of tuples admitted in this epoch, by stream."""
    held: Counts
    """Number of tuples that the workers held afterwards, by stream."""
    flush: bool


def results(
    spark: SparkSession, store: str | Path | Location, through_epoch: int | None = None
) -> DataFrame:
    """Return all pairs that a chain has found, with columns ``query, r_id, s_id, epoch``.

    ``through_epoch`` is the last epoch that counts, by default the last committed one. An epoch
    that is running, or that a crash interrupted, is not visible. Raise :class:`InputProblem` if
    ``store`` is not the store of a chain, the epoch is not committed, or some pairs are missing.
    """
    place = load_store(store)
    last = None if through_epoch is None else place.commit_of(through_epoch).epoch
    return matches(spark, place, 0, last)


def snapshots(store: str | Path | Location) -> tuple[Snapshot, ...]:
    """Return the committed epochs of a chain, in order.

    Raise :class:`InputProblem` if ``store`` is not the store of a chain.
    """
    commits = load_store(store).commits()
    counts = [Counts(0, 0), *(done.admitted for done in commits)]
    new = [Counts(after.r - before.r, after.s - before.s) for before, after in pairwise(counts)]
    return tuple(
        Snapshot(
            done.epoch,
            done.committed_us,
            done.config.workers,
            done.matches,
            done.rejected,
            admitted,
            done.held,
            done.flush,
        )
        for done, admitted in zip(commits, new, strict=True)
    )


def matches(
    spark: SparkSession, store: ChainStore, first_epoch: int, last_epoch: int | None
) -> DataFrame:
    """Return the pairs that were found in some epochs; ``None`` is the last one that is done.

    Raise :class:`InputProblem` if some pairs are missing.
    """
    parts = store.parts(first_epoch, last_epoch)
    rows = read_files(spark, find_complete(store, "matches", parts), MATCHES)
    return rows.where(_is_asked_for(parts, first_epoch, last_epoch))


def admitted(
    spark: SparkSession, store: ChainStore, stream: str, first_epoch: int, last_epoch: int
) -> DataFrame:
    """Return the tuples of one stream that some epochs admitted, with the columns of inputs.

    Raise :class:`InputProblem` if one of the epochs is not committed or has no history, or if some
    tuples are missing.
    """
    parts = store.parts(first_epoch, last_epoch)
    for each in (commit for part in parts for commit in part.commits):
        if not each.history and first_epoch <= each.epoch <= last_epoch:
            msg = (
                f"the tuples of epoch {each.epoch} were not kept: only a chain with a history keeps"
                " them"
            )
            raise InputProblem(msg)
    rows = read_files(spark, find_complete(store, f"admitted-{stream}", parts), ADMITTED)
    asked_for = rows.where(_is_asked_for(parts, first_epoch, last_epoch))
    return asked_for.drop("epoch").withColumnRenamed("ts", "event_time_us")


def _is_asked_for(parts: Sequence[Part], first_epoch: int, last_epoch: int | None) -> Column:
    """Return the condition for rows of some epochs among all that parts hold."""
    last = max((part.commits[-1].epoch for part in parts), default=0)
    return F.col("epoch").between(first_epoch, last if last_epoch is None else last_epoch)


def find_complete(store: ChainStore, table: str, parts: Sequence[Part]) -> list[Location]:
    """Return files of a table. Check that they have as many rows as the workers wrote."""
    files = store.files(table, parts)
    commits = [each for part in parts for each in part.commits]
    rows = store.rows_written(table, commits) if commits else 0
    here = sum(map(_rows_of, files))
    if here != rows:
        msg = (
            f"{store.root} has {here} of the {rows} rows that were written to {table!r}:"
            f" {ONE_FOLDER}"
        )
        raise InputProblem(msg)
    return files


def _rows_of(file: Location) -> int:
    with reading(file):
        return int(pq.read_metadata(file.path, filesystem=file.files).num_rows)
