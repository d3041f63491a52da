"""What a user calls: rows spread over instances, once or micro-batch by micro-batch."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import index
from pathlib import Path
from typing import Any, TypeAlias

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from model.vocabulary import GroupingConfig
from spark_impl.grouping.candidates import TELLS_HEAVY_KEYS
from spark_impl.grouping.instances import MicroBatch, carry_over
from spark_impl.grouping.router import SenderState
from spark_impl.grouping.store import open_store
from spark_impl.grouping.tasks import (
    INSTANCE,
    Columns,
    assigned,
    learned,
    require_columns,
    routed,
    sender_before,
)
from spark_impl.grouping.windows import Standing, advanced, rebalanced, start, timed, told
from spark_impl.runtime import stores
from spark_impl.runtime.failures import sentence_of, wait_for, without_stack_traces
from spark_impl.runtime.histories import InputProblem
from spark_impl.runtime.queries import start_batches

Work: TypeAlias = Callable[[DataFrame, MicroBatch], Sequence[int] | None]
"""What is done with the rows of a micro-batch: partition i is instance i's.

It may return how long a tuple takes at each instance, in microseconds: the next window is balanced
by that; else by what :func:`spark_impl.grouping.instances.at_instances` measures, if it is used.
After a crash it may be called once more for the last micro-batch.
"""


class GroupingProblem(RuntimeError):  # noqa: N818 (a problem of the user, not a bug)
    """A job that failed; the message is one sentence that says why."""


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
        plain = GroupingConfig(instances, policy, **settings)
        times = () if times_us is None else ((0, times_of(plain, times_us)),)
        self.config = replace(plain, times_us=times)

    def assign(self, rows: DataFrame, key: str) -> DataFrame:
        """Bounded rows with a column ``instance``.

        Where the policy tells hot keys from others the rows are read twice: hot keys are found
        first. Every partition is a sender of its own, so the order of rows within partitions
        decides where single tuples go. Raises :class:`InputProblem` for a column
        that is not as it must be, :class:`GroupingProblem` when the rows cannot be read.
        """
        columns = Columns(key)
        require_columns(rows, columns, is_stream=False)
        if self.config.policy == "dkg":
            msg = "the policy 'dkg' learns from a stream; it cannot spread bounded rows"
            raise InputProblem(msg)
        table = start(self.config).table
        if self.config.policy in TELLS_HEAVY_KEYS:
            try:
                state = SenderState(summary=learned(rows, self.config, columns))
            except (PySparkException, Py4JError) as error:
                raise GroupingProblem(sentence_of(error)) from error
            table = rebalanced(self.config, table, [state], table.times)
        return assigned(rows, self.config, columns, table)

    def spread(self, rows: DataFrame, key: str) -> DataFrame:
        """The same, with the rows of instance i in partition i."""
        return self.assign(rows, key).repartitionById(self.config.instances, INSTANCE)

    def stream(
        self, rows: DataFrame, key: str, checkpoint: str | Path, work: Work, seq: str | None = None
    ) -> "GroupingStream":
        """Spread a stream; ``work`` is done with every micro-batch.

        ``checkpoint`` is a folder that the driver and all workers reach under this path; whoever
        opens it again goes on where it stopped. ``seq`` numbers the arrivals; with it every tuple
        goes where docs/grouping.md says, whatever the files and partitions are. Raises
        :class:`InputProblem` for columns or a folder that cannot be used.
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
        """Where the stream stands."""
        done = self.store.done()
        return self.store.standing(done - 1) if done else start(self.config)

    def advance(self, rows: DataFrame, work: Work, source_batch: int) -> None:
        """Spread a micro-batch, have it worked on, and note that it is done.

        ``source_batch`` is its number at the source; the one that came last is spread as it was.
        Raises :class:`InputProblem` for an older one, and while somebody else spreads one.
        """
        held = stores.lock(self.store.root)
        try:
            self._advance(rows, work, source_batch)
        finally:
            stores.unlock(held)

    def _advance(self, rows: DataFrame, work: Work, source_batch: int) -> None:
        standing = self._before(source_batch)
        self.store.forget(standing.batch)
        found = routed(rows, self.config, self.columns, standing, self.store)
        spread = found.repartitionById(self.config.instances, INSTANCE)
        given = work(spread, MicroBatch(standing.batch, standing.table.window, self.store))
        states = self._senders(standing, found)
        tuples = sum(each.routed for each in states) - standing.routed
        if tuples:
            carry_over(self.store, standing.batch, self.config.instances)
            if given is None:
                standing = timed(standing, self._spent(standing.batch))
            else:
                standing = told(standing, times_of(self.config, given))
            after = advanced(self.config, standing, states, tuples)
            self.store.finish(after._replace(source_batch=source_batch))

    def _before(self, source_batch: int) -> Standing:
        """Where the stream stood before a micro-batch."""
        standing = self.standing()
        if source_batch < standing.source_batch:
            msg = (
                f"the source is at micro-batch {source_batch}, {self.store.root} at"
                f" {standing.source_batch} already"
            )
            raise InputProblem(msg)
        if source_batch > standing.source_batch:
            return standing
        before = standing.batch - 2
        return self.store.standing(before) if before >= 0 else start(self.config)

    def _spent(self, batch: int) -> list[tuple[int, int]]:
        """Tuples and microseconds of every instance."""
        return [self.store.spent(batch, each) for each in range(self.config.instances)]

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


def times_of(config: GroupingConfig, given: Sequence[int]) -> tuple[int, ...]:
    """Times that somebody gives; :class:`InputProblem` unless they can be those of instances."""
    try:
        times = tuple(map(index, given))
    except TypeError:
        times = ()
    if len(times) != config.instances or min(times) < 1:
        msg = f"the times {given!r} are not {config.instances} whole microseconds, each at least 1"
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
        return self._start(interval)

    def run_available(self) -> None:
        """Spread what is in the source now; whoever calls again goes on from there.

        Raises :class:`GroupingProblem` when it fails; then, too, whoever calls again goes on.
        """
        with without_stack_traces():
            wait_for(self._start(), GroupingProblem, self._spreader.store.root)

    def _batch(self, rows: DataFrame, number: int) -> None:
        self._spreader.advance(rows, self._work, number)

    def _start(self, interval: str | None = None) -> StreamingQuery:
        checkpoint = self._spreader.store.checkpoint
        return start_batches(self._rows, checkpoint, self._batch, interval)
