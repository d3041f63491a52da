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
from spark_impl.grouping.instances import MicroBatch, carry_over
from spark_impl.grouping.router import SenderState
from spark_impl.grouping.store import open_store
from spark_impl.grouping.tasks import (
    INSTANCE,
    Columns,
    count_keys,
    require_columns,
    route_bounded,
    route_stream,
    sender_before,
)
from spark_impl.grouping.windows import Standing, add_times, advance, rebalance, set_times, start
from spark_impl.runtime import stores
from spark_impl.runtime.failures import sentence_of, wait_for, without_stack_traces
from spark_impl.runtime.histories import InputProblem
from spark_impl.runtime.queries import start_batches

Work: TypeAlias = Callable[[DataFrame, MicroBatch], Sequence[int] | None]
"""Work on the rows of a micro-batch: partition i is that of instance i.

It may return the time of a tuple at each instance, in microseconds; these times balance the next
window. Otherwise the times of :func:`spark_impl.grouping.instances.at_instances` do, if it is used.
After a crash it may be called once more for the last micro-batch.
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
        self, rows: DataFrame, key: str, checkpoint: str | Path, work: Work, seq: str | None = None
    ) -> "GroupingStream":
        """Return a stream whose rows are spread, and worked on micro-batch by micro-batch.

        ``checkpoint`` is a folder that the driver and all workers reach under this path; the next
        run with this folder resumes where the last one stopped. ``seq`` numbers the arrivals; with
        it every tuple goes where docs/grouping.md says, whatever the files and partitions are.
        Raise :class:`InputProblem` for columns or a folder that cannot be used.
        """
        columns = Columns(key, seq)
        require_columns(rows, columns, is_stream=True)
        return GroupingStream(Spreader(self.config, columns, Path(checkpoint)), rows, work)


class Spreader:
    """A stream's routers and their store: one micro-batch after the other."""

    def __init__(self, config: GroupingConfig, columns: Columns, store: Path) -> None:
        self.config = config
        self.columns = columns
        self.store = open_store(store.absolute(), config)

    def standing(self) -> Standing:
        """Return the progress of the stream."""
        done = self.store.done()
        return self.store.standing(done - 1) if done else start(self.config)

    def advance(self, rows: DataFrame, work: Work, source_batch: int) -> None:
        """Spread a micro-batch, have it worked on, and commit it.

        ``source_batch`` is its number at the source. If it comes again, it is spread as before.
        Raise :class:`InputProblem` for an older one, and while another process spreads one.
        """
        held = stores.lock(self.store.root)
        try:
            self._advance(rows, work, source_batch)
        finally:
            stores.unlock(held)

    def _advance(self, rows: DataFrame, work: Work, source_batch: int) -> None:
        standing = self._before(source_batch)
        self.store.forget(standing.batch)
        found = route_stream(rows, self.config, self.columns, standing, self.store)
        spread = found.repartitionById(self.config.instances, INSTANCE)
        given = work(spread, MicroBatch(standing.batch, standing.table.window, self.store))
        states = self._senders(standing, found)
        tuples = sum(each.routed for each in states) - standing.routed
        if tuples:
            carry_over(self.store, standing.batch, self.config.instances)
            if given is None:
                standing = add_times(standing, self._spent(standing.batch))
            else:
                standing = set_times(standing, times_of(self.config, given))
            after = advance(self.config, standing, states, tuples)
            self.store.finish(after._replace(source_batch=source_batch))

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
            return standing
        before = standing.batch - 2
        return self.store.standing(before) if before >= 0 else start(self.config)

    def _spent(self, batch: int) -> list[tuple[int, int]]:
        """Return tuples and microseconds of every instance."""
        return [self.store.spent(batch, each) for each in range(self.config.instances)]

    def _senders(self, standing: Standing, found: DataFrame) -> list[SenderState]:
        """Return the states of all senders after a micro-batch."""
        paths = [
            self.store.sender_path(standing.batch, each) for each in range(self.config.senders)
        ]
        if not all(path.exists() for path in paths):
            # The work did not read every row, so some routers have not run.
            found.write.format("noop").mode("overwrite").save()
        for sender, path in enumerate(paths):
            # There may be fewer partitions than senders.
            if not path.exists():
                state = sender_before(self.config, standing, self.store, sender)
                self.store.write_sender(standing.batch, sender, state)
        return [self.store.load_sender(standing.batch, each) for each in range(len(paths))]


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

    def __init__(self, spreader: Spreader, rows: DataFrame, work: Work) -> None:
        self._spreader = spreader
        self._rows = rows
        self._work = work

    def start(self, interval: str = "0 seconds") -> StreamingQuery:
        """Start the stream and leave it running."""
        return self._start(interval)

    def run_available(self) -> None:
        """Spread everything that is in the source now; the next call resumes there.

        Raise :class:`GroupingProblem` if it fails; the next call resumes after the last
        micro-batch.
        """
        with without_stack_traces():
            wait_for(self._start(), GroupingProblem, self._spreader.store.root)

    def _batch(self, rows: DataFrame, number: int) -> None:
        self._spreader.advance(rows, self._work, number)

    def _start(self, interval: str | None = None) -> StreamingQuery:
        checkpoint = self._spreader.store.checkpoint
        return start_batches(self._rows, checkpoint, self._batch, interval)
