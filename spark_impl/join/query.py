"""The interface for users: joins of tables or of streams on any predicate, and their results.

A column of an input is taken as it is, or in a wider type that holds all its values; nothing is
rounded, cut off or guessed.
"""

import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from model.vocabulary import JoinConfig
from model.vocabulary.join import PREDICATES, And, Predicate, R, S
from spark_impl.join.chain import PATIENCE_S, Chain, ChainProblem
from spark_impl.join.matching import SCHEMA, Counts, FreePredicate
from spark_impl.join.store import MATCHES, ChainStore, load_store
from spark_impl.join.task import COLUMNS
from spark_impl.runtime.failures import wait_for
from spark_impl.runtime.histories import InputProblem, escape_pattern
from spark_impl.runtime.queries import start_batches

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

    def join(self, r: DataFrame, s: DataFrame, store: str | Path | None = None) -> DataFrame:
        """Return all pairs of two bounded inputs: a row ``query, r_id, s_id, epoch`` for each.

        The pairs stay in ``store``, an empty folder that the driver and all workers reach under
        this path. Without ``store`` they are brought to the driver; then the chain has to run on
        one machine. Tuples with a value that is not finite match nothing; a warning says how many
        there are. Raise :class:`InputProblem` for inputs or a store that cannot be used, and
        :class:`ChainProblem` if the join fails.
        """
        spark = r.sparkSession
        # If tuples come in order of time, none is late, and workers hold few tuples.
        ordered = JoinConfig.from_json({**self._config.to_json(), "lateness_us": 0})
        rows = union_inputs(r, s, "event_time_us")
        if store is None:
            check_reach(str(spark.sparkContext.master))
        where = Path(store or tempfile.mkdtemp(prefix="straggler-join-")).absolute()
        try:
            chain = self._open(spark, ordered, where)
            if chain.epochs:
                msg = f"{where} holds the results of another join"
                raise InputProblem(msg)
            rejected = sum(each.rejected for each in chain.advance(rows))
            chain.advance(None)
            if rejected:
                log.warning("%d tuples match nothing: their values are not finite", rejected)
            if store is not None:
                return results(spark, where)
            files = match_files(chain.store, chain.store.epochs())
            if not files:
                return spark.createDataFrame([], from_arrow_schema(MATCHES))
            return spark.createDataFrame(pq.ParquetDataset(files, schema=MATCHES).read())
        finally:
            if store is None:
                shutil.rmtree(where, ignore_errors=True)

    def stream(
        self, r: DataFrame, s: DataFrame, checkpoint: str | Path, sink: Sink | None = None
    ) -> "ChainStream":
        """Return the join of two streams, not started yet; every micro-batch is an epoch.

        ``checkpoint`` is the folder for state and results, which :func:`results` reads; the driver
        and all workers reach it under this path. The next run with this folder resumes where the
        last one stopped, perhaps with more or fewer workers, and with other queries: a new query
        begins with the next epoch, a removed one ends with the last one. ``sink`` is called with
        the pairs of every epoch and its number; after a crash it may be called once more for the
        same epoch.
        """
        chain = self._open(r.sparkSession, self._config, Path(checkpoint).absolute())
        return ChainStream(chain, union_inputs(r, s, "seq"), sink)

    def _open(self, spark: SparkSession, config: JoinConfig, store: Path) -> Chain:
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

    def __init__(self, chain: Chain, rows: DataFrame, sink: Sink | None) -> None:
        self._chain = chain
        self._rows = rows
        self._sink = sink

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
        self._hand_on(self._rows.sparkSession)  # again, because a crash may have come before it

    def _start(self, interval: str | None = None) -> StreamingQuery:
        return start_batches(self._rows, self._chain.store.checkpoint, self._epoch, interval)

    def _epoch(self, rows: DataFrame, batch: int) -> None:
        """Run an epoch for a micro-batch. After a crash, Spark calls it again for the same one."""
        expected = self._chain.epochs - self._chain.flushed  # a flush is no micro-batch
        if batch == expected:
            self._chain.advance(rows)  # refuses what comes after a flush
        elif batch != expected - 1:
            msg = f"the stream is at micro-batch {batch}, but the store expects {expected}"
            raise InputProblem(msg)
        self._hand_on(rows.sparkSession)

    def _hand_on(self, spark: SparkSession) -> None:
        last = self._chain.epochs - 1
        if self._sink is not None and last >= 0:
            self._sink(matches(spark, self._chain.store, [last]), last)


def one_time(
    spark: SparkSession,
    store: str | Path,
    predicate: Condition | Mapping[str, Condition],
    first_epoch: int,
    last_epoch: int,
    *,
    workers: int = 1,
    into: str | Path | None = None,
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
    place = load_store(Path(store).absolute())
    config = place.commit_of(last_epoch).config
    r, s = (admitted(spark, place, stream, first_epoch, last_epoch) for stream in (R, S))
    return ChainJoin(workers, config.window_us, predicate).join(r, s, into).drop("epoch")


def check_reach(master: str) -> None:
    """Raise :class:`InputProblem` unless all workers write on the driver's machine."""
    if not master.startswith("local"):
        msg = (
            f"without a store the pairs stay on the machines of {master}: give a folder that the"
            " driver and all workers reach under one path"
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


def results(spark: SparkSession, store: str | Path, through_epoch: int | None = None) -> DataFrame:
    """Return all pairs that a chain has found, with columns ``query, r_id, s_id, epoch``.

    ``through_epoch`` is the last epoch that counts, by default the last committed one. An epoch
    that is running, or that a crash interrupted, is not visible. Raise :class:`InputProblem` if
    ``store`` is not the store of a chain, the epoch is not committed, or some pairs are missing.
    """
    place = load_store(Path(store).absolute())
    epochs = place.epochs()
    if through_epoch is not None:
        epochs = [epoch for epoch in epochs if epoch <= place.commit_of(through_epoch).epoch]
    return matches(spark, place, epochs)


def snapshots(store: str | Path) -> tuple[Snapshot, ...]:
    """Return the committed epochs of a chain, in order.

    Raise :class:`InputProblem` if ``store`` is not the store of a chain.
    """
    commits = load_store(Path(store).absolute()).commits()
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


def matches(spark: SparkSession, store: ChainStore, epochs: Sequence[int]) -> DataFrame:
    """Return the pairs that were found in some committed epochs."""
    return _read(spark, match_files(store, epochs), MATCHES)


def match_files(store: ChainStore, epochs: Sequence[int]) -> list[Path]:
    """Return the files with the pairs that were found in some committed epochs.

    Raise :class:`InputProblem` if some pairs are missing.
    """
    found = sum(sum(store.commit_of(epoch).matches.values()) for epoch in epochs)
    return _find_complete(store, "matches-*.parquet", epochs, found)


def admitted(
    spark: SparkSession, store: ChainStore, stream: str, first_epoch: int, last_epoch: int
) -> DataFrame:
    """Return the tuples of one stream that some epochs admitted, with the columns of inputs.

    Raise :class:`InputProblem` if one of the epochs is not committed or has no history, or if some
    tuples are missing.
    """
    epochs = range(first_epoch, last_epoch + 1)
    for epoch in epochs:
        if not store.commit_of(epoch).history:
            msg = (
                f"the tuples of epoch {epoch} were not kept: only a chain with a history keeps them"
            )
            raise InputProblem(msg)
    before, after = store.admitted_before(first_epoch), store.admitted_before(last_epoch + 1)
    kept = after.r - before.r if stream == R else after.s - before.s
    files = _find_complete(store, f"admitted-{stream}.parquet", epochs, kept)
    rows = _read(spark, files, SCHEMA)
    return rows.withColumnRenamed("ts", "event_time_us")


def _find_complete(store: ChainStore, pattern: str, epochs: Sequence[int], rows: int) -> list[Path]:
    """Return files of some epochs. Check that they have as many rows as the workers wrote."""
    files = store.files(pattern, epochs)
    here = sum(pq.read_metadata(path).num_rows for path in files)
    if here != rows:
        msg = (
            f"{store.root} has {here} of the {rows} rows that were written to {pattern}: the driver"
            " and all workers have to reach one folder under this path"
        )
        raise InputProblem(msg)
    return files


def _read(spark: SparkSession, files: Sequence[Path], schema: pa.Schema) -> DataFrame:
    kinds = from_arrow_schema(schema)
    if not files:
        return spark.createDataFrame([], kinds)
    return spark.read.schema(kinds).parquet(*map(escape_pattern, files))


_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_TAKEN = {
    "bigint": _INTEGERS,
    "double": ("tinyint", "smallint", "int", "float", "double"),
    "string": ("string",),
}
"""Types whose values fit into another type."""
_TIME = "event_time_us"
_TIMESTAMP = "timestamp"


def union_inputs(r: DataFrame, s: DataFrame, order: str) -> DataFrame:
    """Return both inputs in one table with the column ``stream``; ``order`` becomes ``seq``.

    Raise :class:`InputProblem` if a column is missing or has a type that is not accepted.
    """
    parts = []
    for stream, rows in ((R, r), (S, s)):
        sources = {**{name: name for name in COLUMNS}, "seq": order}
        columns = [_column(stream, rows, source).alias(to) for to, source in sources.items()]
        parts.append(rows.select(F.lit(stream).alias("stream"), *columns))
    return parts[0].unionByName(parts[1])


def _column(stream: str, rows: DataFrame, name: str) -> Column:
    if name not in rows.columns:
        msg = f"the input {stream} has no column {name!r}; it has {rows.columns}"
        raise InputProblem(msg)
    given = rows.schema[name].dataType.simpleString()
    if name == _TIME and given == _TIMESTAMP:
        return F.unix_micros(name)
    taken = _TAKEN[COLUMNS[name]]
    if given not in taken:
        wanted = ", ".join((*taken, _TIMESTAMP) if name == _TIME else taken)
        msg = f"the column {name!r} of the input {stream} is {given}; it can be {wanted}"
        raise InputProblem(msg)
    return F.col(name).cast(COLUMNS[name])
