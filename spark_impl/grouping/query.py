"""User interface of room ``grouping``: rows spread over instances, once or as a stream."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import index
from typing import NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from model.vocabulary import GroupingConfig
from model.vocabulary.durations import in_unit_of_name, resolve_times
from model.vocabulary.grouping import REASON_NOT_FINITE
from model.vocabulary.settings import PlainData, defaults_of
from spark_impl.grouping.candidates import TELLS_HEAVY_KEYS
from spark_impl.grouping.instances import finish_work
from spark_impl.grouping.reports import MicroBatch, Reports, Work
from spark_impl.grouping.router import SenderState
from spark_impl.grouping.store import INSTANCE as WORKED
from spark_impl.grouping.store import (
    REJECTED,
    SENDER,
    STANDING,
    load_store,
    open_store,
)
from spark_impl.grouping.tasks import (
    INSTANCE,
    Columns,
    Part,
    count_keys,
    require_columns,
    route_bounded,
    route_stream,
    sender_before,
)
from spark_impl.grouping.windows import add_times, advance, rebalance, start
from spark_impl.runtime import accounts, packages
from spark_impl.runtime.cell_times import Duration
from spark_impl.runtime.failures import QueryProblem, sentence_of
from spark_impl.runtime.limits import Limit, Limits
from spark_impl.runtime.provenance import history_of, note_history, require_history
from spark_impl.runtime.queries import (
    Runnable,
    read_table,
    require_checkpoint,
    start_batches,
)
from spark_impl.runtime.states import from_bytes, to_bytes
from spark_impl.runtime.storage import Address, InputProblem, Location, locate
from spark_impl.runtime.stores import Draft
from spark_impl.runtime.tables import TableWriter
from spark_impl.runtime.waiting import unread


class Grouping:
    """Spreads rows over ``instances`` by key; by default, only hot keys get more than two of them.

    Raise ``ValueError`` for a setting that is out of range.

    Args:
        instances: number of instances of the operator.
        policy: rule of the router, such as ``"tag"``, ``"key"`` or ``"pkg"`` (docs/grouping.md).
        times_us: microseconds that each instance takes for a tuple; None: all take equally long.
            Or give ``times``, durations with their unit; likewise ``transfer``.
        transfer_us: microseconds that a tuple takes on the line to each instance, for a stream that
            measures times: none of these is shorter, but times that ``work`` returns stand as they
            are. None: service alone is measured.
        **settings: other settings of room ``grouping`` (docs/settings.md), such as ``theta=0.01``.

    Examples:
        >>> spreader = Grouping(4, "key")
    """

    def __init__(
        self,
        instances: int,
        policy: str = "tag",
        *,
        times_us: Sequence[int | Duration] | None = None,
        transfer_us: Sequence[int | Duration] | None = None,
        **settings: PlainData,
    ) -> None:
        known = defaults_of(GroupingConfig).keys() | {"transfer_us"}
        own = {"times_us": times_us, "transfer_us": transfer_us}
        given = {name: each for name, each in own.items() if each is not None}
        others: dict[str, PlainData] = resolve_times({**settings, **given}, known)
        times_us, transfer_us = others.pop("times_us", None), others.pop("transfer_us", None)
        plain = GroupingConfig.of(instances=instances, policy=policy, **others)
        times = () if times_us is None else ((0, times_of(plain, times_us, "times_us")),)
        self.config = replace(plain, times_us=times)
        least = () if transfer_us is None else times_of(plain, transfer_us, "transfer_us")
        self._transfer_us = least

    def assign(self, rows: DataFrame, key: str) -> DataFrame:
        """Return bounded rows with a column ``instance``.

        If the policy treats hot keys differently, the rows are read twice, first to find these.
        Every partition is a sender: the order of its rows decides where they go. Raise
        :class:`InputProblem` for a column of the wrong type, and :class:`QueryProblem` if the rows
        cannot be read.

        Args:
            rows: the rows.
            key: column of keys.

        Examples:
            >>> rows = spark.createDataFrame([("a",), ("b",), ("a",)], "key string")
            >>> routed = spreader.assign(rows, "key").where("key = 'a'")
            >>> routed.select("instance").distinct().count()
            1
        """
        columns = Columns(key)
        require_columns(rows, columns, is_stream=False)
        packages.prepare_workers(rows.sparkSession.sparkContext)
        if self.config.policy == "dkg":
            msg = "the policy 'dkg' learns from a stream; it cannot spread bounded rows"
            raise InputProblem(msg)
        table = start(self.config).table
        if self.config.policy in TELLS_HEAVY_KEYS:
            try:
                state = SenderState(summary=count_keys(rows, self.config, columns))
            except (PySparkException, Py4JError) as error:
                raise QueryProblem(sentence_of(error)) from error
            table = rebalance(self.config, table, [state], table.times)
        return route_bounded(rows, self.config, columns, table)

    def spread(self, rows: DataFrame, key: str) -> DataFrame:
        """Return the rows of :meth:`assign`, with the rows of instance i in partition i.

        Args:
            rows: the rows.
            key: column of keys.

        Examples:
            >>> spreader.spread(rows, "key").rdd.getNumPartitions()
            4
        """
        return self.assign(rows, key).repartitionById(self.config.instances, INSTANCE)

    def stream(
        self,
        rows: DataFrame,
        key: str,
        checkpoint: Address,
        work: Work,
        seq: str | None = None,
        *,
        value: str | None = None,
        spark_checkpoint: Address | None = None,
        max_refused: Limit = None,
    ) -> "GroupingStream":
        """Return a stream that spreads its rows and calls ``work`` on each micro-batch.

        Raise :class:`InputProblem` for columns or a folder that cannot be used.

        Args:
            rows: the stream.
            key: column of keys.
            checkpoint: folder that the driver and all workers reach under this address; the next
                run with this folder resumes where the last one stopped.
            work: function that is called with the rows, instance i in partition i, and their
                :class:`MicroBatch`; it may return the microseconds of a tuple at each instance.
            seq: column that numbers the arrivals, so that every tuple goes where docs/grouping.md
                says, whatever the files and partitions are. None: partitions decide.
            value: column of numbers; :meth:`GroupingStream.rejected` lists rows without a finite
                one, which are routed like others. None checks no value.
            spark_checkpoint: another folder for Spark's own files.
            max_refused: limit of listed rows, at which the stream stops: below 1.0 a share of each
                micro-batch, or a whole number of all rows so far; None sets no limit.

        Examples:
            >>> spark.createDataFrame(["a", "b", "a"], "string").write.csv(f"{folder}/keys")
            >>> rows = spark.readStream.schema("key string").csv(f"{folder}/keys")
            >>> work = lambda rows, batch: print(batch.number, rows.count())
            >>> Grouping(4, "tag").stream(rows, "key", f"{folder}/routed", work).run_available()
            0 3
        """
        columns, limits = Columns(key, seq, value), Limits(refused=max_refused)
        require_columns(rows, columns, is_stream=True)
        packages.prepare_workers(rows.sparkSession.sparkContext)
        own = None if spark_checkpoint is None else locate(spark_checkpoint)
        spreader = Spreader(self.config, columns, locate(checkpoint))
        own = own or spreader.store.checkpoint
        spreader.writer.source, spreader.writer.checkpoint = history_of(rows), own
        spreader.history, spreader.limits = spreader.writer.source, limits
        spreader.transfer_us = self._transfer_us
        if spreader.writer.source is not None:
            require_history(spreader.writer.view, spreader.writer.source)
        return GroupingStream(spreader, own, rows, work)


class Spreader:
    """The routers of a stream with their store, which take one micro-batch after the other."""

    def __init__(self, config: GroupingConfig, columns: Columns, store: Location) -> None:
        self.config = config
        self.columns = columns
        self.store = open_store(store, config)
        self._reports: Reports | None = None
        self.writer = TableWriter(self.store.root)
        """The writer of the store's table."""
        self.history: Location | None = None
        """The history from which the rows come, if any."""
        self.limits = Limits()
        """The limit of refused rows."""
        self.transfer_us: Sequence[int] = ()
        """Least time of a tuple at each instance, if times are measured."""

    def advance(self, rows: DataFrame, work: Work, number: int) -> None:
        """Spread a micro-batch, have it worked on, and commit it.

        ``number`` is that of Spark. The last micro-batch may come again, and is then spread as
        before. Raise :class:`InputProblem` for an older one, if one was left out, and if another
        process has spread one meanwhile.
        """
        part = self.begin(number, rows.sparkSession.sparkContext)
        routed = route_stream(rows, part)
        given = work(routed.repartitionById(self.config.instances, INSTANCE), part.batch)
        self.finish(part, routed, given)

    def begin(self, number: int, context: SparkContext) -> Part:
        """Return a micro-batch with everything that its senders need.

        Raise :class:`InputProblem` unless the store ends just before it, or at it.
        """
        if self._reports is None:  # the first micro-batch of a run
            self._reports = Reports(context)
        self._reports.begin()
        note_history(self.writer)
        seen = self.store.at(self.writer.look())
        Draft(self.store, self.writer, number)  # raises if it does not follow
        standing = seen.standing(number - 1) if number else start(self.config)
        senders, worked = (seen.states(kind, number - 1) for kind in (SENDER, WORKED))
        window = standing.table.window
        batch = MicroBatch(number, window, self.store, worked, self._reports)
        return Part(self.config, self.columns, standing, senders, batch)

    def finish(self, part: Part, routed: DataFrame, given: Sequence[int] | None = None) -> None:
        """Commit a micro-batch that was routed and worked on.

        ``routed`` are its rows with their instances; ``given`` are the times (us) that the work
        returned, if any.
        """
        standing, writer, number = part.standing, self.writer, part.batch.number
        senders = self._senders(part, routed)
        states = [from_bytes(self.store.load(SENDER, file)) for file in senders]
        tuples = sum(each.routed for each in states) - standing.routed
        spent, worked = finish_work(part.batch, self.config.instances, tuples)
        if given is None or not tuples:
            standing = add_times(standing, spent)
        else:
            # Earlier measurements of this window are forgotten.
            known = times_of(self.config, given)
            standing = standing._replace(measured=known, worked=(), busy_us=())
        after = advance(self.config, standing, states, tuples, self.transfer_us)
        draft = Draft(self.store, writer, number)
        refused = part.batch.reports.of(REJECTED).values()
        draft.add(SENDER, dict.fromkeys(senders, 1))
        draft.add(WORKED, dict.fromkeys(worked, 1))
        draft.add(REJECTED, {each.file: each.tuples for each in refused})
        draft.write(STANDING, pa.table({"number": [0], "content": [to_bytes(after)]}))
        offered = sum(each.tuples for each in part.batch.reports.of(SENDER).values())
        reading, places = accounts.read_streams(writer, self.history, number, offered)
        places[accounts.REFUSED] = sum(each.tuples for each in refused)
        places[accounts.ANSWERED] = tuples - places[accounts.REFUSED]
        self.limits.write_account(draft, reading, places)
        # Spark may repeat the last micro-batch, which begins with the states before it.
        draft.removed += [
            each for kind in self.store.replaced for each in writer.view.of(kind, 0, number - 2)
        ]
        draft.commit()

    def _senders(self, part: Part, routed: DataFrame) -> list[Location]:
        """Return the files of all senders' states after a micro-batch."""
        reports, senders = part.batch.reports, range(self.config.senders)
        if len(reports.of(SENDER)) < len(senders):
            # The work did not read every row, so some routers have not run; or there are fewer
            # partitions than senders. All routers run now.
            routed.count()
        files = {number: each.file for number, each in reports.of(SENDER).items()}
        for sender in set(senders) - files.keys():
            state = sender_before(part, sender)
            files[sender] = self.store.save(SENDER, part.batch.number, sender, to_bytes(state))
        return [files[sender] for sender in senders]


def times_of(
    config: GroupingConfig, given: Sequence[int | Duration], name: str = "the times"
) -> tuple[int, ...]:
    """Return the times as integers. Raise :class:`InputProblem` unless every instance has one."""
    try:
        times = tuple([index(in_unit_of_name("times_us", each)) for each in given])
    except (TypeError, ValueError):
        times = ()
    if len(times) != config.instances or min(times) < 1:
        msg = f"{name} {given!r} are not {config.instances} whole microseconds, each at least 1"
        raise InputProblem(msg)
    return times


class Progress(NamedTuple):
    """Progress of a stream that is spread. No input holds it back, because routing never waits."""

    batch: int
    """The last finished micro-batch; -1 before the first one."""
    window: int
    """The window of the next tuple."""
    rejected: Mapping[str, int]
    """Number of refused rows so far, by reason."""
    rows: Mapping[str, int]
    """Number of rows of the last micro-batch, in all and in each place of the ledger."""


def progress(store: Address) -> Progress:
    """Return the progress of a stream; :class:`InputProblem` if ``store`` is not that of one."""
    place = load_store(locate(store))
    refused, last = place.view.count(REJECTED), place.view.last
    window = place.standing(last).table.window if last >= 0 else 0
    reasons = {REASON_NOT_FINITE: refused} if refused else {}
    return Progress(last, window, reasons, accounts.rows_of_batch(place))


def rejected(spark: SparkSession, store: Address) -> DataFrame:
    """Return every refused row: its value is missing, or not finite.

    The columns are ``seq, key, source_id, event_time_us, reason, batch``; what the input does not
    have is NULL. Only a stream that was given the name of its column of values lists them. Raise
    :class:`InputProblem` if ``store`` is not the store of a stream.
    """
    return read_table(spark, load_store(locate(store)), REJECTED)


def pending(spark: SparkSession, store: Address) -> DataFrame:
    """Return the rows of a landed history that a stream has not read yet: nothing else waits.

    The columns are ``seq, source_id, key, event_time_us, reason``. Raise :class:`InputProblem` if
    ``store`` is not the store of a stream.
    """
    return unread(spark, load_store(locate(store)))


class GroupingStream(Runnable):
    """A stream to be spread, not started yet."""

    def __init__(
        self, spreader: Spreader, checkpoint: Location, rows: DataFrame, work: Work
    ) -> None:
        self._spreader = spreader
        self._limits = spreader.limits
        self._checkpoint = checkpoint
        self._rows = rows
        self._work = work

    @property
    def _root(self) -> Location:
        return self._spreader.store.root

    def _batch(self, rows: DataFrame, number: int) -> None:
        self._spreader.advance(rows, self._work, number)

    def _start(self, interval: Duration | None = None) -> StreamingQuery:
        writer = self._spreader.writer
        require_checkpoint(self._checkpoint, writer, writer.look().last)
        return start_batches(self._rows, self._checkpoint, self._batch, interval)
