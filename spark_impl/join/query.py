"""The interface for users: joins of tables or of streams on any predicate, and their results."""

import logging
import tempfile
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from model.vocabulary import JoinConfig
from model.vocabulary.durations import in_unit_of_name
from model.vocabulary.join import STREAMS, R, S
from model.vocabulary.join_load import LoadRules
from model.vocabulary.settings import is_number, require
from spark_impl.join.answers import (
    read_epochs,
    results,
)
from spark_impl.join.chain import Chain
from spark_impl.join.crew import Crew
from spark_impl.join.given import (
    Condition,
    Used,
    check_reach,
    declare,
    declare_columns,
    range_of,
    used_columns,
)
from spark_impl.join.inputs import absent, union_inputs
from spark_impl.join.matching import Guarded
from spark_impl.join.store import KINDS, MATCHES, ChainStore
from spark_impl.join.task import Options
from spark_impl.runtime.cell_times import Duration
from spark_impl.runtime.limits import Limit, Limits
from spark_impl.runtime.provenance import history_of, require_history
from spark_impl.runtime.queries import (
    Runnable,
    Sink,
    frame_of,
    require_checkpoint,
    start_batches,
)
from spark_impl.runtime.storage import Address, InputProblem, Location, locate

log = logging.getLogger("straggler.join")

PAIR = [*KINDS[MATCHES].names, "epoch"]
"""Columns of results."""
DEFAULT_QUERY = "join"
"""Name of a query that was given without a name."""


class ChainJoin:
    """A join of two inputs on any predicate, within a window of time.

    Inputs have the columns ``source_id`` (an integer, the identity of a tuple in its stream: a
    repeated one counts once), ``key`` (text), ``event_time_us`` (an integer, or a timestamp) and
    ``value`` (a float, or an integer of at most 32 bits); ``key`` and ``value`` may be left out if
    no query uses them. Streams also have ``seq`` (an integer, the order of arrival over both
    streams). Both have the columns that are declared for them, in which values may be missing.

    Args:
        workers: number of tasks of the chain, which run at the same time; with ``load``, a pair of
            the least and the most, or a number that stays.
        window_us: longest time between the event times of a pair, in microseconds.
        predicate: a predicate of ``model.vocabulary.join``, or its text, such as
            ``"r.pm25 apart 5 of s.pm25"``, or a function on columns
            (:data:`spark_impl.join.matching.FreePredicate`), or a dict of several by name, which
            share the chain.
        window: ``window_us`` as a duration with its unit.
        block_size: most tuples of a message between workers; with ``load``, the largest such size.
        credit: most messages to a neighbour that it has not acknowledged.
        lateness_us: how far a tuple may be behind the largest event time of its stream, in
            microseconds; a later one is rejected. None rejects none.
        lateness: ``lateness_us`` as a duration with its unit.
        idle_after_us: how far a stream may advance, in microseconds, before a silent other one
            stops holding back results. None: a silent stream holds them back.
        idle_after: ``idle_after_us`` as a duration with its unit.
        load: rules by which the chain follows its load; None keeps workers and block size.
        history: True to keep the admitted tuples, for :func:`ask` and for columns of answers.
        patience_s: seconds of silence after which a worker is taken for dead.
        r_columns: columns of the first input that queries may use, besides ``key``, ``value`` and
            the event time: kinds by name. A ``number`` is a float or an integer of at most 32 bits,
            an ``integer`` has at most 64 bits, a ``text`` is a string, a ``time`` a timestamp or
            microseconds since 1970, and a ``boolean`` is one.
            None: it has no others.
        s_columns: the same of the second input.

    Examples:
        >>> conditions = {"same": Equi("key"), "close": "value within 0.5"}
        >>> chain = ChainJoin(2, window_us=10, predicate=conditions, history=True)
    """

    def __init__(
        self,
        workers: int | tuple[int, int],
        window_us: int | Duration | None = None,
        predicate: Condition | Mapping[str, Condition] | None = None,
        *,
        window: Duration | None = None,
        block_size: int = 64,
        credit: int = 16,
        lateness_us: int | Duration | None = None,
        lateness: Duration | None = None,
        idle_after_us: int | Duration | None = None,
        idle_after: Duration | None = None,
        load: LoadRules | None = None,
        history: bool = False,
        patience_s: float | Duration = 60.0,
        r_columns: Mapping[str, str] | None = None,
        s_columns: Mapping[str, str] | None = None,
    ) -> None:
        if predicate is None:
            msg = "ChainJoin() lacks predicate, such as Equi('key')"
            raise TypeError(msg)
        given = predicate if isinstance(predicate, Mapping) else {DEFAULT_QUERY: predicate}
        columns = {R: declare_columns(R, r_columns), S: declare_columns(S, s_columns)}
        self._free = {name: each for name, each in given.items() if callable(each)}
        wait_s = in_unit_of_name("patience_s", patience_s)
        require(is_number(wait_s) and wait_s > 0, "patience_s", wait_s, "more than 0")
        self._options = Options(history=history, patience_s=wait_s)
        least, most = range_of(workers, load)
        times = {
            "window_us": window_us,
            "window": window,
            "lateness_us": lateness_us,
            "lateness": lateness,
            "idle_after_us": idle_after_us,
            "idle_after": idle_after,
        }
        times = {name: each for name, each in times.items() if each is not None}
        if not times.keys() & {"window_us", "window"}:
            msg = "ChainJoin() lacks window, such as window='5 seconds'"
            raise TypeError(msg)
        self._config = JoinConfig.of(
            **times,
            queries=tuple((name, declare(each, columns)) for name, each in given.items()),
            workers=least,
            block_size=block_size,
            credit=credit,
            r_columns=columns[R],
            s_columns=columns[S],
        )
        if load is not None:
            load = replace(load, least=least, most=most, block_size=block_size)
        self._load = load

    def join(self, r: DataFrame, s: DataFrame, store: Address | None = None) -> DataFrame:
        """Return all pairs of two bounded inputs: a row ``query, r_id, s_id, epoch`` for each.

        Tuples with a value that is not finite match nothing; a warning says how many there are.
        Raise :class:`InputProblem` for inputs or a store that cannot be used, and
        :class:`QueryProblem` if the join fails.

        Args:
            r: the first input.
            s: the second input.
            store: empty folder for the pairs, which the driver and all workers reach under this
                address; None brings them to the driver, and the chain runs on one machine.

        Examples:
            >>> columns = "seq long, source_id long, key string, event_time_us long, value double"
            >>> r = spark.createDataFrame([(0, 7, "a", 0, 1.0)], columns)
            >>> s = spark.createDataFrame([(1, 8, "b", 2, 1.0), (2, 9, "a", 3, 2.0)], columns)
            >>> sorted((pair.query, pair.r_id, pair.s_id) for pair in chain.join(r, s).collect())
            [('close', 7, 8), ('same', 7, 9)]
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
            return frame_of(spark, found.at().read_kind(MATCHES).rename_columns(PAIR))

    def _join(self, r: DataFrame, s: DataFrame, store: Address) -> ChainStore:
        """Join two bounded inputs; return the store with the pairs."""
        # If tuples come in order of time, none is late, and workers hold few tuples.
        ordered = JoinConfig.from_json({**self._config.to_json(), "lateness_us": 0})
        rows = self._union({R: r, S: s}, "event_time_us", used_columns(self._config, 0))
        chain = self._open(r.sparkSession, ordered, store, absent({R: r, S: s}))
        if chain.epochs:
            msg = f"{chain.store.root} holds the results of another join"
            raise InputProblem(msg)
        refused = sum(sum(each.reasons.values()) for each in chain.advance(rows))
        chain.advance(None)
        if refused:
            log.warning("%d tuples match nothing: their values are not finite", refused)
        return chain.store

    def stream(
        self,
        r: DataFrame,
        s: DataFrame,
        checkpoint: Address,
        sink: Sink | None = None,
        *,
        spark_checkpoint: Address | None = None,
        max_refused: Limit = None,
        max_late: Limit = None,
        max_shed: Limit = None,
    ) -> "ChainStream":
        """Return the join of two streams, not started yet; every micro-batch is an epoch.

        The next run resumes where the last one stopped, perhaps with more or fewer workers, and
        with other queries: a new query begins with the next epoch, a removed one ends with the last
        one.

        Args:
            r: the first stream.
            s: the second stream.
            checkpoint: folder for state and results, which :func:`results` reads; the driver and
                all workers reach it under this address.
            sink: function that is called with the pairs of an epoch and its number, if anything
                arrived in it. After a crash it may be called again for the same epoch, with the
                same pairs; if it replaces what it has for a number, it has every pair exactly once.
            spark_checkpoint: another folder for Spark's own files, if Spark has no connector for
                the file system of ``checkpoint``.
            max_refused: limit of refused tuples, at which the chain stops: below 1.0 a share of
                each micro-batch, or a whole number of all tuples so far; None sets no limit.
            max_late: the same for late tuples.
            max_shed: the same for tuples that are shed under load.

        Examples:
            >>> r.write.parquet(f"{folder}/r")
            >>> s.write.parquet(f"{folder}/s")
            >>> files = spark.readStream.schema(columns)
            >>> streams = files.parquet(f"{folder}/r"), files.parquet(f"{folder}/s")
            >>> running = chain.stream(*streams, f"{folder}/chain")
            >>> running.run_available()
        """
        limits = Limits(refused=max_refused, late=max_late, shed=max_shed)
        inputs, sources = {R: r, S: s}, (history_of(r), history_of(s))
        chain = self._open(r.sparkSession, self._config, checkpoint, absent(inputs))
        chain.writer.source = source = sources[0] or sources[1]
        chain.history = source if sources[0] == sources[1] else None
        if source is not None:
            require_history(chain.writer.view, source)
        own = chain.store.checkpoint if spark_checkpoint is None else locate(spark_checkpoint)
        chain.writer.checkpoint = own
        chain.limits = limits
        rows = self._union(inputs, "seq", used_columns(chain.config, chain.epochs))
        return ChainStream(chain, rows, sink, own)

    def _union(self, inputs: Mapping[str, DataFrame], order: str, used: Used) -> DataFrame:
        columns = {stream: self._config.columns(stream) for stream in STREAMS}
        return union_inputs(inputs, order, columns, used)

    def _open(
        self, spark: SparkSession, config: JoinConfig, store: Address, lacking: Used
    ) -> Chain:
        free = {name: Guarded(each, lacking) for name, each in self._free.items()}
        chain = Chain(spark, config, store, free, self._options, load=self._load)
        chain.absent = tuple(sorted(lacking))
        return chain


class ChainStream(Runnable):
    """A join of two streams, to be started.

    :func:`spark_impl.join.submit` and :func:`spark_impl.join.withdraw` add and end queries of a
    running join, in any process.
    """

    def __init__(
        self,
        chain: Chain,
        rows: DataFrame,
        sink: Sink | None,
        checkpoint: Location,
    ) -> None:
        self._chain = chain
        self._limits = chain.limits
        self._rows = rows
        self._sink = sink
        self._checkpoint = checkpoint
        self._query: StreamingQuery | None = None
        """The query that was started last; None before, and while it starts."""

    @property
    def _root(self) -> Location:
        return self._chain.store.root

    def run_available(self) -> None:
        """Join everything that is in the sources now, then end the workers.

        Errors are those of :meth:`spark_impl.runtime.queries.Runnable.run_available`.
        """
        with closing(self._chain):
            super().run_available()

    def flush(self) -> None:
        """Join everything that is in the sources, then find all pairs that are still owed.

        Nothing may follow. Raise :class:`QueryProblem` if it fails, also if something came after an
        earlier flush.

        Examples:
            >>> running.flush()
            >>> join.results(spark, f"{folder}/chain").count()
            2
        """
        with closing(self._chain):
            super().run_available()
            if not self._chain.flushed:
                self._chain.advance(None)
        # Even after an earlier flush: a crash may have kept the pairs from the sink.
        self._hand_on(self._rows.sparkSession, self._chain.epochs - 1)

    def _start(self, interval: Duration | None = None) -> StreamingQuery:
        require_checkpoint(self._checkpoint, self._chain.writer, self._micro_batches - 1)
        self._chain.note()
        crew = self._chain.hire()
        self._query = None
        self._query = query = start_batches(self._rows, self._checkpoint, self._epoch, interval)
        if interval is not None:
            threading.Thread(target=_close_after, args=(query, crew), daemon=True).start()
        return query

    @property
    def _micro_batches(self) -> int:
        """Number of micro-batches that have been joined; a flush is none."""
        return self._chain.epochs - self._chain.flushed

    def _is_active(self) -> bool:
        return self._query is None or bool(self._query.isActive)

    def _epoch(self, rows: DataFrame, batch: int) -> None:
        """Run the epoch of a micro-batch, for which Spark may call again after a crash."""
        expected = self._micro_batches
        if batch == expected:
            self._chain.advance(rows, self._is_active)  # refuses what comes after a flush
        elif batch != expected - 1:
            msg = f"the stream is at micro-batch {batch}, but {self._root} expects {expected}"
            raise InputProblem(msg)
        self._hand_on(rows.sparkSession, batch)

    def _hand_on(self, spark: SparkSession, epoch: int) -> None:
        store = self._chain.store.at()
        if self._sink is not None and not _is_empty(store, epoch):
            self._sink(read_epochs(spark, store, MATCHES, epoch, epoch), epoch)


def _close_after(query: StreamingQuery, crew: Crew) -> None:
    """Wait for the end of a query, then end its workers."""
    with suppress(Exception), closing(crew):  # whoever started the query learns why it ended
        query.awaitTermination()


def _is_empty(store: ChainStore, epoch: int) -> bool:
    """Return whether an epoch has admitted, rejected, found and flushed nothing."""
    done = store.commit_of(epoch)
    came = done.admitted != store.admitted_before(epoch) or done.reasons
    return not (done.flush or came or any(done.matches.values()))
