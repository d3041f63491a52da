"""The interface for users: rows spread over instances, once or micro-batch by micro-batch."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import index
from pathlib import Path
from typing import TypeAlias

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from model.vocabulary import GroupingConfig
from model.vocabulary.settings import PlainData
from spark_impl.grouping.candidates import TELLS_HEAVY_KEYS
from spark_impl.grouping.instances import MicroBatch, finish_work
from spark_impl.grouping.refusals import Progress, progress, rejected
from spark_impl.grouping.reports import Reports
from spark_impl.grouping.router import SenderState
from spark_impl.grouping.store import open_store, rows_of, unshared
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
from spark_impl.grouping.windows import Standing, add_times, advance, rebalance, set_times, start
from spark_impl.runtime import locks, packages
from spark_impl.runtime.failures import sentence_of, wait_for, without_stack_traces
from spark_impl.runtime.locks import Lock
from spark_impl.runtime.provenance import history_of, note_history, require_history
from spark_impl.runtime.queries import last_logged, require_checkpoint, start_batches
from spark_impl.runtime.storage import InputProblem, Location, locate

Work: TypeAlias = Callable[[DataFrame, MicroBatch], Sequence[int] | None]
"""Work on the rows of a micro-batch: partition i is that of instance i.

It may return the time of a tuple at each instance, in microseconds; these times balance the next
window. Otherwise the times of :func:`spark_impl.grouping.instances.at_instances` do, if it is used.

Work is the sink of a stream, and exactly-once is up to both: every row is in one numbered
micro-batch, and work must replace whatever it wrote under :attr:`MicroBatch.number` before.

* After a crash or an error, work is called again with the same number, window and rows, even if it
  had returned. Smaller numbers never come back.
* To skip a number that was written is not enough. A micro-batch without rows keeps its number for
  the next one: work may be called without rows first, and then with some.
* States of instances follow the same rule: a micro-batch begins with those of the number before.

A folder for each number that is overwritten does all this, as does a transaction that deletes the
rows of the number and inserts the new ones.
"""


class GroupingProblem(RuntimeError):  # noqa: N818 (a problem of the user, not a bug)
    """A job failed; the message is one sentence with the reason."""


class Grouping:
    """Spreads rows over ``instances`` by key: hot keys over many, others over two at most.

    ``times_us`` is the time of a tuple at each instance; by default all take equally long. Other
    settings are those of ``model.vocabulary.GroupingConfig``. Raise ``ValueError`` for a setting
    that is out of range.
    """

    def __init__(
        self,
        instances: int,
        policy: str = "tag",
        *,
        times_us: Sequence[int] | None = None,
        **settings: PlainData,
    ) -> None:
        plain = GroupingConfig(instances, policy, **settings)
        times = () if times_us is None else ((0, times_of(plain, times_us)),)
        self.config = replace(plain, times_us=times)

    def assign(self, rows: DataFrame, key: str) -> DataFrame:
        """Return bounded rows with a column ``instance``.

        If the policy treats hot keys differently, the rows are read twice: hot keys are found
        first. Every partition is a sender of its own, so the order of rows within partitions
        decides where single tuples go. Raise :class:`InputProblem` for a column of the wrong type,
        and :class:`GroupingProblem` if the rows cannot be read.
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
                raise GroupingProblem(sentence_of(error)) from error
            table = rebalance(self.config, table, [state], table.times)
        return route_bounded(rows, self.config, columns, table)

    def spread(self, rows: DataFrame, key: str) -> DataFrame:
        """Return the rows of :meth:`assign`, with the rows of instance i in partition i."""
        return self.assign(rows, key).repartitionById(self.config.instances, INSTANCE)

    def stream(
        self,
        rows: DataFrame,
        key: str,
        checkpoint: str | Path | Location,
        work: Work,
        seq: str | None = None,
        *,
        value: str | None = None,
        spark_checkpoint: str | Path | Location | None = None,
    ) -> "GroupingStream":
        """Return a stream whose rows are spread, and worked on micro-batch by micro-batch.

        ``checkpoint`` is a folder that the driver and all workers reach under this address; the
        next run with this folder resumes where the last one stopped. ``spark_checkpoint`` is the
        folder of Spark's own checkpoint, by default one in ``checkpoint``; it is needed if Spark
        has no connector for that file system. ``seq`` numbers the arrivals; with it every tuple
        goes where docs/grouping.md says, whatever the files and partitions are. ``value`` is a
        column of numbers: rows without a finite one are routed like others, because the work
        decides about them, and :meth:`GroupingStream.rejected` lists them. Raise
        :class:`InputProblem` for columns or a folder that cannot be used.
        """
        columns = Columns(key, seq, value)
        require_columns(rows, columns, is_stream=True)
        packages.prepare_workers(rows.sparkSession.sparkContext)
        own = None if spark_checkpoint is None else locate(spark_checkpoint)
        spreader = Spreader(self.config, columns, locate(checkpoint))
        spreader.source = history_of(rows)
        if spreader.source is not None:
            require_history(spreader.store.root, spreader.source)
        return GroupingStream(spreader, own or spreader.store.checkpoint, rows, work)


class Spreader:
    """A stream's routers and their store: one micro-batch after the other."""

    def __init__(self, config: GroupingConfig, columns: Columns, store: Location) -> None:
        self.config = config
        self.columns = columns
        self.store = open_store(store, config)
        self.source: Location | None = None
        """The history from which the rows come, if they say so."""
        self._reports: Reports | None = None

    def standing(self) -> Standing:
        """Return the progress of the stream."""
        done = self.store.done()
        return self.store.standing(done - 1) if done else start(self.config)

    def require_seen(self, source_batch: int) -> None:
        """Raise :class:`InputProblem` unless the store knows a micro-batch of the source."""
        if source_batch > max([self.standing().source_batch, *self.store.numbers("empty")]):
            msg = (
                f"the source has done micro-batch {source_batch}, but {self.store.root} has never"
                " seen it; the store and Spark's checkpoint do not belong together"
            )
            raise InputProblem(msg)

    def advance(self, rows: DataFrame, work: Work, source_batch: int) -> None:
        """Spread a micro-batch, have it worked on, and commit it.

        ``source_batch`` is its number at the source. If it comes again, it is spread as before.
        Raise :class:`InputProblem` for an older one, if one has been left out, and while another
        process spreads one.
        """
        lock = locks.lock(self.store.root)
        try:
            self._advance(rows, work, source_batch, lock)
        finally:
            lock.release()

    def _advance(self, rows: DataFrame, work: Work, source_batch: int, lock: Lock) -> None:
        if self.source is not None and self._reports is None:  # the first micro-batch of a run
            note_history(self.store.root, self.source)
        reports = self._reports = self._reports or Reports(rows.sparkSession.sparkContext)
        reports.begin()
        part = self.begin(source_batch, reports)
        found = route_stream(rows, part)
        given = work(found.repartitionById(self.config.instances, INSTANCE), _batch_of(part))

        def require_lock() -> None:
            if not lock.is_held:  # somebody else may spread the same micro-batch
                number = part.standing.batch
                msg = f"{self.store.root} was not kept locked during micro-batch {number}"
                raise InputProblem(msg)

        self.finish(part, found, source_batch, given, require_lock)

    def begin(self, source_batch: int, reports: Reports) -> Part:
        """Return a micro-batch as the senders need it."""
        standing = self._before(source_batch)
        self.store.forget(standing.batch)
        return Part(self.config, self.columns, standing, self.store, reports)

    def finish(
        self,
        part: Part,
        found: DataFrame,
        source_batch: int,
        given: Sequence[int] | None = None,
        require_lock: Callable[[], None] = lambda: None,
    ) -> None:
        """Commit a micro-batch whose rows were routed to ``found``, and worked on.

        ``given`` are the times that the work returned.
        """
        standing, reports = part.standing, part.reports
        states = self._senders(standing, found, reports)
        tuples = sum(each.routed for each in states) - standing.routed
        if not tuples:
            self.store.note_empty(source_batch)
            return
        spent = finish_work(_batch_of(part), self.config.instances, tuples)
        if given is None:
            standing = add_times(standing, spent)
        else:
            standing = set_times(standing, times_of(self.config, given))
        after = advance(self.config, standing, states, tuples)
        require_lock()
        has_states = standing.has_states or reports.is_work_expected
        self.store.finish(after._replace(source_batch=source_batch, has_states=has_states))

    def _before(self, source_batch: int) -> Standing:
        """Return the progress of the stream before a micro-batch."""
        standing = self.standing()
        if source_batch < standing.source_batch:
            msg = (
                f"the source is at micro-batch {source_batch}, but {self.store.root} is already"
                f" at {standing.source_batch}"
            )
            raise InputProblem(msg)
        if source_batch > standing.source_batch:
            if source_batch - 1 > standing.source_batch:
                self.require_seen(source_batch - 1)
            return standing
        before = standing.batch - 2
        return self.store.standing(before) if before >= 0 else start(self.config)

    def _senders(self, standing: Standing, found: DataFrame, reports: Reports) -> list[SenderState]:
        """Return the states of all senders after a micro-batch, with all tuples of it."""
        senders = range(self.config.senders)
        files = [self.store.sender_file(standing.batch, each) for each in senders]
        told = [reports.tuples_of(file) for file in files]
        if None in told:
            # The work did not read every row, so some routers have not run; or there are fewer
            # partitions than senders. All routers run now, and Spark counts what comes out.
            tuples = found.count()
            for sender, file in enumerate(files):
                if reports.tuples_of(file) is None:
                    state = sender_before(self.config, standing, self.store, sender)
                    self.store.write_sender(standing.batch, sender, state)
        else:
            tuples = sum(each or 0 for each in told)
        states = [self.store.load_sender(standing.batch, each) for each in senders]
        listed = [self.store.refused_file(standing.batch, each) for each in senders]
        refused = sum(reports.tuples_of(file) or 0 for file in listed)
        if rows_of(self.store.refused(standing.batch)) < refused:
            finding = f"lacks some of {refused} refused rows of micro-batch {standing.batch}"
            raise unshared(self.store.root, finding)
        routed = sum(each.routed for each in states) - standing.routed
        if routed != tuples:
            finding = f"has {routed} of the {tuples} tuples routed in micro-batch {standing.batch}"
            raise unshared(self.store.root, finding)
        return states


def _batch_of(part: Part) -> MicroBatch:
    """Return a micro-batch as the work needs it."""
    standing = part.standing
    return MicroBatch(
        standing.batch, standing.table.window, part.store, standing.has_states, part.reports
    )


def times_of(config: GroupingConfig, given: Sequence[int]) -> tuple[int, ...]:
    """Return the times as integers. Raise :class:`InputProblem` unless every instance has one."""
    try:
        times = tuple(map(index, given))
    except TypeError:
        times = ()
    if len(times) != config.instances or min(times) < 1:
        msg = f"the times {given!r} are not {config.instances} whole microseconds, each at least 1"
        raise InputProblem(msg)
    return times


class GroupingStream:
    """A stream to be spread, not started yet."""

    def __init__(
        self, spreader: Spreader, checkpoint: Location, rows: DataFrame, work: Work
    ) -> None:
        self._spreader = spreader
        self._checkpoint = checkpoint
        self._rows = rows
        self._work = work

    def start(self, interval: str = "0 seconds") -> StreamingQuery:
        """Start the stream and leave it running."""
        return self._start(interval)

    def run_available(self) -> None:
        """Spread everything that is in the source now; the next call resumes there.

        Raise :class:`GroupingProblem` if it fails; the next call resumes after the last
        micro-batch. Raise :class:`InputProblem` if Spark's checkpoint is that of another store.
        """
        with without_stack_traces():
            wait_for(self._start(), GroupingProblem, self._spreader.store.root)

    def rejected(self) -> DataFrame:
        """Return every refused row (:func:`spark_impl.grouping.rejected`)."""
        return rejected(self._rows.sparkSession, self._spreader.store.root)

    def progress(self) -> Progress:
        """Return the position of the stream (:func:`spark_impl.grouping.progress`)."""
        return progress(self._spreader.store.root)

    def _batch(self, rows: DataFrame, number: int) -> None:
        self._spreader.advance(rows, self._work, number)

    def _start(self, interval: str | None = None) -> StreamingQuery:
        store = self._spreader.store
        require_checkpoint(self._checkpoint, store.root, store.done() - 1)
        self._spreader.require_seen(last_logged(self._checkpoint, "commits"))
        return start_batches(self._rows, self._checkpoint, self._batch, interval)
