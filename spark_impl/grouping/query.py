"""What a user calls: rows spread over instances, once or micro-batch by micro-batch."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from model.vocabulary import GroupingConfig
from spark_impl.grouping.router import SenderState
from spark_impl.grouping.routing import (
    INSTANCE,
    Columns,
    assigned,
    learned,
    require_columns,
    routed,
    sender_before,
)
from spark_impl.grouping.store import open_store
from spark_impl.grouping.windows import Standing, advanced, rebalanced, start
from spark_impl.streams import InputProblem, tidy


class MicroBatch(NamedTuple):
    """Which rows these are."""

    number: int
    """Of the micro-batch, without those that had no rows: 0, 1, 2, ..."""
    window: int


Work: TypeAlias = Callable[[DataFrame, MicroBatch], Sequence[int] | None]
"""What is done with the rows of a micro-batch: partition i is instance i's.

It may return how long a tuple takes at each instance, in microseconds, as it was measured: the next
window is balanced by that. After a crash it may be called once more for the last micro-batch.
"""


class Grouping:
    """Spreads rows over ``instances`` by key: hot keys over many, others over two at most.

    ``times_us`` says how long an instance is busy with a tuple (by default all take equally long);
    other settings are those of ``model.vocabulary.GroupingConfig``. Raises ``ValueError`` for one
    that cannot be.
    """

    def __init__(
        self,
        instances: int,
        policy: str = "tag",
        *,
        times_us: Sequence[int] | None = None,
        **settings: Any,
    ) -> None:
        times = () if times_us is None else ((0, tuple(times_us)),)
        self.config = GroupingConfig(instances, policy, times, **settings)

    def assign(self, rows: DataFrame, key: str) -> DataFrame:
        """Bounded rows with a column ``instance``.

        The rows are read twice: hot keys are found first. Every partition is a sender of its own,
        so the order of rows within partitions decides where single tuples go. Raises
        :class:`spark_impl.streams.InputProblem` for a column that is not as it must be.
        """
        columns = Columns(key)
        require_columns(rows, columns)
        table = start(self.config).table
        if self.config.policy == "dkg":
            msg = "the policy 'dkg' learns from a stream; it cannot spread bounded rows"
            raise InputProblem(msg)
        state = SenderState(summary=learned(rows, self.config, columns))
        return assigned(
            rows, self.config, columns, rebalanced(self.config, table, [state], table.times)
        )

    def spread(self, rows: DataFrame, key: str) -> DataFrame:
        """The same, with the rows of instance i in partition i."""
        return self.assign(rows, key).repartitionById(self.config.instances, INSTANCE)

    def stream(
        self, rows: DataFrame, key: str, checkpoint: str | Path, work: Work, seq: str | None = None
    ) -> "GroupingStream":
        """Spread a stream; ``work`` is done with every micro-batch.

        ``checkpoint`` is a folder that the driver and all workers reach under this path; whoever
        opens it again goes on where it stopped. ``seq`` numbers the arrivals; with it every tuple
        goes where docs/grouping.md says, whatever the files and partitions are.
        """
        columns = Columns(key, seq)
        require_columns(rows, columns)
        return GroupingStream(Spreader(self.config, columns, Path(checkpoint)), rows, work)


class Spreader:
    """A stream's routers and their store: one micro-batch after the other."""

    def __init__(self, config: GroupingConfig, columns: Columns, store: Path) -> None:
        self.config = config
        self.columns = columns
        self.store = open_store(store.absolute(), config)

    def standing(self) -> Standing:
        """Where the stream stands."""
        done = self.store.done()
        return self.store.standing(done - 1) if done else start(self.config)

    def advance(self, rows: DataFrame, work: Work, source_batch: int) -> None:
        """Spread a micro-batch, have it worked on, and note that it is done.

        ``source_batch`` is its number at the source; the one that came last is spread as it was.
        """
        standing = self.standing()
        if source_batch == standing.source_batch:
            before = standing.batch - 2
            standing = self.store.standing(before) if before >= 0 else start(self.config)
        self.store.forget_senders(standing.batch)
        found = routed(rows, self.config, self.columns, standing, self.store)
        spread = found.repartitionById(self.config.instances, INSTANCE)
        measured = work(spread, MicroBatch(standing.batch, standing.table.window))
        states = self._senders(standing, found)
        tuples = sum(each.routed for each in states) - standing.routed
        if tuples:
            times = None if measured is None else self._times(measured)
            after = advanced(self.config, standing, states, tuples, times)
            self.store.finish(after._replace(source_batch=source_batch))

    def _senders(self, standing: Standing, found: DataFrame) -> list[SenderState]:
        """What all senders hold after a micro-batch."""
        paths = [
            self.store.sender_path(standing.batch, each) for each in range(self.config.senders)
        ]
        if not all(path.exists() for path in paths):
            # Work that did not read every row has left routers where they were.
            found.write.format("noop").mode("overwrite").save()
        for sender, path in enumerate(paths):
            # There may be fewer partitions than senders.
            if not path.exists():
                state = sender_before(self.config, standing, self.store, sender)
                self.store.write_sender(standing.batch, sender, state)
        return [self.store.load_sender(standing.batch, each) for each in range(len(paths))]

    def _times(self, measured: Sequence[int]) -> tuple[int, ...]:
        times = tuple(int(each) for each in measured)
        if len(times) != self.config.instances or min(times) < 1:
            msg = f"the times {list(measured)} are not one for each instance, at least 1"
            raise InputProblem(msg)
        return times


class GroupingStream:
    """A stream that is to be spread, to be started."""

    def __init__(self, spreader: Spreader, rows: DataFrame, work: Work) -> None:
        self._spreader = spreader
        self._rows = rows
        self._work = work

    def start(self, interval: str = "0 seconds") -> StreamingQuery:
        """Start and leave it running."""
        return self._start(processingTime=interval)

    def run_available(self) -> None:
        """Spread what is in the source now; whoever calls again goes on from there."""
        query = self._start(availableNow=True)
        try:
            query.awaitTermination()
        finally:
            query.stop()

    def _batch(self, rows: DataFrame, number: int) -> None:
        self._spreader.advance(rows, self._work, number)

    def _start(self, **trigger: str | bool) -> StreamingQuery:
        tidy(self._spreader.store.checkpoint)
        return (
            self._rows.writeStream.option(
                "checkpointLocation", str(self._spreader.store.checkpoint)
            )
            .foreachBatch(self._batch)
            .trigger(**trigger)  # type: ignore[arg-type]
            .start()
        )
