"""A stage of Spark with a task for every worker, which runs one epoch or several.

Rules of this file:

* The rows of the first epoch go to the worker where their stream enters. Every worker has a row of
  its own, so that there is a task for it even if there is nothing to do.
* The rows of a later epoch are brought to the workers by a job with tasks of its own, so a stage
  that stays leaves at least one slot free.
* A stage ends with the connections to its workers. If one of them fails, all do; another stage
  begins with the states of the last commit.
"""

import socket
import threading
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema

from model.vocabulary.join import STREAMS, S
from model.vocabulary.settings import JsonObject
from spark_impl.join.control import end_epoch
from spark_impl.join.inputs import types_of
from spark_impl.join.matching import Counts
from spark_impl.join.messages import FrameProblem, encode_json
from spark_impl.join.post import BROUGHT, IDLE_S, bring_rows, wanted_by
from spark_impl.join.rendezvous import Rendezvous, addresses_of
from spark_impl.join.store import Commit
from spark_impl.join.task import COLUMNS, OUTPUT, Plan, Summary, read_summary, run_task
from spark_impl.join.transport import GREETING_S, read_json
from spark_impl.runtime.failures import QueryProblem, sentence_of
from spark_impl.runtime.session import EnvironmentProblem

_EXECUTORS_COME_S = 15.0
"""Longest wait for the executors of a cluster that has just started."""
REPLACED_S = 300.0
"""Longest wait for an executor in place of one that is lost."""
_TICK_S = 0.5
"""Interval at which the driver looks whether the stage still runs."""
_CAUSE_S = 60.0
"""Longest wait for Spark's own account of a failed stage."""
_END_S = 10.0
"""Longest wait for the end of a stage."""


def check_slots(spark: SparkSession, workers: int, wait_s: float = _EXECUTORS_COME_S) -> int:
    """Return the number of task slots; wait for those of executors that may still come.

    Raise :class:`EnvironmentProblem` unless all workers can run at the same time.
    """
    master = str(spark.sparkContext.master)
    deadline = time.monotonic() + (0.0 if master.startswith("local[") else wait_s)
    context = spark.sparkContext._jsc.sc()
    profile = context.resourceProfileManager().defaultResourceProfile()
    while (slots := int(context.maxNumConcurrentTasks(profile))) < workers:
        if time.monotonic() > deadline:
            msg = (
                f"a chain of {workers} workers needs {workers} task slots at the same time and"
                f" {master} has {slots}"
            )
            raise EnvironmentProblem(msg)
        time.sleep(0.1)
    return slots


class StageLost(QueryProblem):
    """A stage has failed; another one may run its epoch again."""


class Stage:
    """A stage whose workers run the epoch of ``plan``, then others if it ``stays``.

    ``rows`` have the columns of :func:`spark_impl.join.inputs.union_inputs`; ``None`` is a flush.
    Raise :class:`StageLost` if the stage fails, in any method, and :class:`QueryProblem` as soon as
    an epoch that runs is not awaited any more.
    """

    def __init__(
        self,
        spark: SparkSession,
        rows: DataFrame | None,
        plan: Plan,
        is_awaited: Callable[[], bool],
        *,
        stays: bool,
    ) -> None:
        self.plan, self.stays = plan, stays
        self.idle_since_s: float | None = None
        """The moment at which its last epoch ended; ``None`` while one runs."""
        self._context = spark.sparkContext
        self._tag = f"straggler-{uuid.uuid4().hex}"
        self._errors: list[Exception] = []
        self._connections: list[socket.socket] = []
        self._end = weakref.finalize(self, _close_all, self._connections)
        host, bound_to = addresses_of(self._context)
        with Rendezvous(host, plan.config.workers, bound_to=bound_to) as rendezvous:
            task = partial(run_task, plan=plan, place=rendezvous.place, stays=stays)
            more = types_of({stream: plan.config.columns(stream) for stream in STREAMS})
            self._columns = {**COLUMNS, **more}
            frame = _place_rows(spark, rows, plan.config.workers, self._columns).mapInArrow(
                task, from_arrow_schema(OUTPUT), barrier=True
            )
            arguments = frame, self._context, self._tag, self._errors
            self._job = threading.Thread(target=_run, args=arguments, name="stage", daemon=True)
            self._job.start()
            self._place = rendezvous.place
            try:
                met = rendezvous.gather(lambda: self._job.is_alive() and is_awaited())
                if met is None and self._job.is_alive():
                    raise _stopped()
            except BaseException:
                self.close()
                raise
        if met is None:
            raise self._lost("the workers have not met")
        self._meeting, connections = met
        self._connections += connections

    @property
    def is_running(self) -> bool:
        """Return whether Spark runs it."""
        return self._job.is_alive()

    def is_ready_for(self, plan: Plan) -> bool:
        """Return whether the stage can run an epoch now."""
        return (
            self.idle_since_s is not None
            and time.monotonic() - self.idle_since_s < IDLE_S
            and self.is_running
            and self.plan.following(plan.order) == plan._replace(states={})
            and not any(map(_is_closed, self._connections))
        )

    def begin(self, rows: DataFrame | None, plan: Plan, tasks: int) -> None:
        """Begin an epoch after the first one; at most ``tasks`` tasks bring its rows."""
        self.idle_since_s = None
        self._tell([{}] * len(self._connections))
        brought = [] if rows is None else self._bring(rows, tasks)
        workers = len(self._connections)
        self._tell(
            [
                {**plan.order, "brought": wanted_by(brought, number, workers)}
                for number in range(workers)
            ]
        )

    def finish(self, is_awaited: Callable[[], bool]) -> list[Summary]:
        """Return the reports of the workers about the epoch that runs."""
        found = []
        for number, connection in enumerate(self._connections):
            try:
                while not _has_answer(connection):
                    if not is_awaited():
                        raise _stopped()
                    if not self._job.is_alive():
                        raise self._lost(f"worker {number} has ended")
                told = read_json(connection, time.monotonic() + GREETING_S)
            except (OSError, FrameProblem) as error:
                raise self._lost(f"worker {number} is lost: {error}") from error
            found.append(read_summary(told))
        self.idle_since_s = time.monotonic()
        return found

    def close(self) -> None:
        """End the stage. Workers that wait end by themselves; those that work are stopped."""
        self._end()
        by_itself = time.monotonic() + (0.0 if self.idle_since_s is None else _END_S)
        while self._job.is_alive() and time.monotonic() < by_itself + _END_S:
            if time.monotonic() >= by_itself:  # again, because Spark may not know the job yet
                with suppress(Exception):  # Java may be gone
                    self._context.cancelJobsWithTag(self._tag)
            self._job.join(_TICK_S)

    def _bring(self, rows: DataFrame, tasks: int) -> list[tuple[int, ...]]:
        place = self._place._replace(timeout_s=self.plan.options.patience_s)
        bring = partial(bring_rows, meeting=self._meeting, place=place)
        chosen = rows.select("stream", *self._columns).coalesce(tasks)
        try:
            found = chosen.mapInArrow(bring, from_arrow_schema(BROUGHT)).collect()
        except (PySparkException, Py4JError) as error:
            if any(map(_is_closed, self._connections)):
                raise self._lost(sentence_of(error)) from error
            raise StageLost(sentence_of(error)) from error  # a worker that hangs says no cause
        return [tuple(row) for row in found]

    def _tell(self, orders: Sequence[JsonObject]) -> None:
        for number, (connection, order) in enumerate(zip(self._connections, orders, strict=True)):
            connection.settimeout(GREETING_S)
            try:
                connection.sendall(encode_json(order))
            except OSError as error:
                raise self._lost(f"worker {number} is lost: {error}") from error

    def _lost(self, otherwise: str) -> StageLost:
        """Return what to raise when the stage has failed: the first cause, as Spark knows it."""
        _close_all(self._connections)
        self._job.join(_CAUSE_S)
        return StageLost(sentence_of(self._errors[0]) if self._errors else otherwise)


def _stopped() -> QueryProblem:
    return QueryProblem("the query was stopped")


def _run(frame: DataFrame, context: SparkContext, tag: str, errors: list[Exception]) -> None:
    """Run a stage to its end; keep the error if it fails."""
    try:
        context.addJobTag(tag)
        frame.collect()
    except Exception as error:
        errors.append(error)


def _close_all(connections: Sequence[socket.socket]) -> None:
    for each in connections:
        each.close()


def _has_answer(connection: socket.socket) -> bool:
    """Wait for a moment; return whether a worker has said something.

    Raise ``OSError`` if its connection is closed.
    """
    connection.settimeout(_TICK_S)
    try:
        if connection.recv(1, socket.MSG_PEEK):
            return True
    except TimeoutError:
        return False
    msg = "the connection was closed"
    raise ConnectionError(msg)


def _is_closed(connection: socket.socket) -> bool:
    """Return whether a worker that has nothing to say has closed its connection."""
    connection.settimeout(0)
    try:
        connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def make_commit(plan: Plan, summaries: Sequence[Summary]) -> Commit:
    """Return the record of an epoch that succeeded."""

    def fold(how: Callable[[Iterable[int]], int], name: str) -> Counts:
        """Combine what all workers say about each stream."""
        return Counts(*map(how, zip(*(getattr(each, name) for each in summaries), strict=True)))

    matches, reasons = Counter[str](), Counter[str]()
    for each in summaries:
        matches.update(each.matches)
        reasons.update(each.reasons)
    # A pair that is owed has both of its tuples in the chain.
    owed_us = max(fold(min, "least_us"))
    return Commit(
        epoch=plan.epoch,
        flush=plan.flush,
        config=plan.config,
        history=plan.options.history,
        committed_us=time.time_ns() // 1000,
        matches=matches,
        reasons=reasons,
        admitted=fold(sum, "admitted"),
        held=fold(sum, "held"),
        complete_us=min(summaries[0].wm_us.r, summaries[-1].wm_us.s, owed_us),
        clocks=end_epoch(plan.config, plan.clocks, fold(max, "t_max_us"), fold(sum, "accepted")),
    )


def _place_rows(
    spark: SparkSession, rows: DataFrame | None, workers: int, columns: Mapping[str, str]
) -> DataFrame:
    """Return every row at the worker where its stream enters, and an empty row for every worker.

    ``columns`` are those of the rows besides the stream, and their types.
    """
    kinds = {"worker": "int", "stream": "string", **columns}
    seats = spark.range(workers).select(
        F.col("id").cast("int").alias("worker"),
        *(F.lit(None).cast(kind).alias(name) for name, kind in kinds.items() if name != "worker"),
    )
    if rows is not None:
        last = F.when(F.col("stream") == S, workers - 1).otherwise(0).cast("int")
        seats = seats.union(rows.withColumn("worker", last).select(*kinds))
    return seats.repartitionById(workers, "worker")
