"""One epoch on Spark: a barrier stage with a task for every worker of the chain.

Rules of this file:

* A task that fails fails the stage, and Spark runs all of it again from the epoch before.
* Rows reach the worker where their stream enters; every worker has a row of its own, so that there
  is a task for it even if there is nothing to do.
* Nothing that a task writes counts before the driver says so.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import BarrierTaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import JoinConfig
from model.vocabulary.join import END_US, STREAMS, R, S
from model.vocabulary.trace import Step, kind_of
from spark_impl.join.admission import Arrivals
from spark_impl.join.drive import drive
from spark_impl.join.matching import FreePredicate, tuples_from_arrow
from spark_impl.join.rendezvous import Meeting, Place, Rendezvous, join_neighbours, meet
from spark_impl.join.side import Matcher
from spark_impl.join.store import MATCHES, REJECTED, Commit, Store
from spark_impl.join.transport import Links, NeighbourLost, listen
from spark_impl.join.worker import Worker
from spark_impl.session import EnvironmentProblem
from spark_impl.streams import InputProblem

COLUMNS = {
    "seq": "bigint",
    "source_id": "bigint",
    "key": "string",
    "event_time_us": "bigint",
    "value": "double",
}
"""Columns of both inputs and their types."""
_SUMMARY = "worker int, attempt string, matches bigint, rejected bigint, bytes_sent bigint"


_EXECUTORS_COME_S = 15.0
"""How long executors of a cluster that has just started may take to be there."""
_CAUSE_FIRST_S = 1.0
"""A worker that lost its neighbour fails this much later, so that the cause is reported first."""


class ChainProblem(RuntimeError):  # noqa: N818 (a problem of the user, not a bug)
    """An epoch that failed; the message is one sentence that says why."""


class Plan(NamedTuple):
    """Everything that the tasks of an epoch have to know."""

    config: JoinConfig
    free: Mapping[str, FreePredicate]
    store: Store
    before: Commit | None
    epoch: int
    flush: bool
    place: Place
    patience_s: float
    recording: bool
    on_step: Callable[[Step], None] | None


class Summary(NamedTuple):
    """What a worker says of its epoch."""

    worker: int
    attempt: str
    matches: int
    rejected: int
    bytes_sent: int
    """To its neighbours."""


def check_slots(spark: SparkSession, workers: int) -> None:
    """Raise :class:`EnvironmentProblem` unless all workers can run at the same time."""
    master = str(spark.sparkContext.master)
    deadline = time.monotonic() + (0.0 if master.startswith("local[") else _EXECUTORS_COME_S)
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


def run_epoch(
    spark: SparkSession, rows: DataFrame | None, plan: Callable[[Place], Plan]
) -> list[Summary]:
    """Run one epoch and commit it; ``rows`` has ``stream`` and :data:`COLUMNS`, none in a flush.

    Raises :class:`ChainProblem` when it fails; then nothing of it counts.
    """
    settings = spark.sparkContext.getConf()
    host = str(settings.get("spark.driver.host"))
    bound_to = str(settings.get("spark.driver.bindAddress", host))
    workers = plan(Place((host, 0), "", 0.0)).config.workers
    check_slots(spark, workers)
    with Rendezvous(host, workers, bound_to=bound_to) as rendezvous:
        made = plan(rendezvous.place)
        stage = _placed(spark, rows, workers).mapInArrow(
            partial(run_task, plan=made), _SUMMARY, barrier=True
        )
        # Spark runs a barrier stage again only if what it finds is shuffled.
        shuffled = stage.repartition(1)
        try:
            summaries = sorted(Summary(**row.asDict()) for row in shuffled.collect())
        except (PySparkException, Py4JError) as error:
            raise ChainProblem(sentence_of(error)) from error
    attempts = {each.attempt for each in summaries}
    if len(attempts) != 1 or [each.worker for each in summaries] != list(range(workers)):
        msg = f"epoch {made.epoch} is not the work of one attempt: {summaries}"
        raise ChainProblem(msg)
    made.store.commit(Commit(made.epoch, attempts.pop(), made.flush))
    return summaries


def run_task(batches: Iterable[pa.RecordBatch], plan: Plan) -> Iterator[pa.RecordBatch]:
    """One worker: for ``mapInArrow`` with a barrier."""
    context = BarrierTaskContext.get()
    number = context.partitionId()
    host = context.getTaskInfos()[number].address.rpartition(":")[0]
    arrivals = _arrivals(pa.Table.from_batches(batches), plan, number)
    steps: list[str] = []
    worker = Worker(
        plan.config,
        number,
        Matcher(plan.config, plan.free),
        plan.store.load_state(plan.before, number),
        plan.epoch,
        flush=plan.flush,
        record=_recorder(plan, steps),
    )
    with closing(listen(host)) as listener:
        address = listener.getsockname()[:2]
        meeting = meet(plan.place, number, context.taskAttemptId(), address)
        connections = join_neighbours(listener, number, meeting, plan.place)
    with closing(Links(number, connections, plan.patience_s)) as links:
        try:
            drive(worker, arrivals, links)
        except NeighbourLost:
            time.sleep(_CAUSE_FIRST_S)
            raise
    yield _write(plan, meeting, worker, steps, links.bytes_sent)


def _write(
    plan: Plan, meeting: Meeting, worker: Worker, steps: list[str], bytes_sent: int
) -> pa.RecordBatch:
    """Put down what a worker found and holds, in the folder of this attempt; its summary."""
    where = (plan.epoch, meeting.attempt)
    matches = _matches(plan.config, worker)
    rejected = pa.Table.from_pylist([each._asdict() for each in worker.rejected], REJECTED)
    plan.store.write_table(*where, f"matches-{worker.number}", matches)
    plan.store.write_table(*where, f"rejected-{worker.number}", rejected)
    if plan.recording:
        plan.store.write_lines(*where, f"steps-{worker.number}", steps)
    plan.store.write_state(*where, worker.number, worker.state())
    summary = Summary(
        worker.number, meeting.attempt, matches.num_rows, rejected.num_rows, bytes_sent
    )
    types = [pa.int32(), pa.string(), pa.int64(), pa.int64(), pa.int64()]
    columns = [pa.array([value], kind) for value, kind in zip(summary, types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=list(Summary._fields))


def _matches(config: JoinConfig, worker: Worker) -> pa.Table:
    """Everything that a worker found, a row a pair."""
    tables = [MATCHES.empty_table()]
    for (name, _), found in zip(config.queries, worker.found, strict=True):
        for pairs in found:
            count = len(pairs.r_id)
            query, epoch = pa.repeat(name, count), pa.repeat(worker.epoch, count)
            columns = [query, pa.array(pairs.r_id), pa.array(pairs.s_id), epoch.cast(pa.int64())]
            tables.append(pa.table(columns, schema=MATCHES))
    return pa.concat_tables(tables)


def _recorder(plan: Plan, lines: list[str]) -> Callable[[Step], None] | None:
    if not plan.recording and plan.on_step is None:
        return None

    def record(step: Step) -> None:
        if plan.recording:
            lines.append(json.dumps({"kind": kind_of(type(step)), **step._asdict()}))
        if plan.on_step is not None:
            plan.on_step(step)

    return record


def _placed(spark: SparkSession, rows: DataFrame | None, workers: int) -> DataFrame:
    """Every row where its stream enters, and a row without a stream for every worker."""
    kinds = {"worker": "int", "stream": "string", **COLUMNS}
    seats = spark.range(workers).select(
        F.col("id").cast("int").alias("worker"),
        *(F.lit(None).cast(kind).alias(name) for name, kind in kinds.items() if name != "worker"),
    )
    if rows is not None:
        last = F.when(F.col("stream") == S, workers - 1).otherwise(0).cast("int")
        seats = seats.union(rows.withColumn("worker", last).select(*kinds))
    return seats.repartitionById(workers, "worker")


def _arrivals(given: pa.Table, plan: Plan, number: int) -> dict[str, Arrivals]:
    """The arrivals of the streams that enter here, in order; none in a flush."""
    seats = given.column("stream").is_null()
    if given.filter(seats).column("worker").to_pylist() != [number]:
        msg = f"the rows of worker {number} went elsewhere"
        raise RuntimeError(msg)
    rows = given.filter(pc.invert(seats))
    for name in COLUMNS:
        if rows.column(name).null_count:
            msg = f"the column {name!r} has {rows.column(name).null_count} rows without a value"
            raise InputProblem(msg)
    if plan.flush:
        return {}
    entering = {R: 0, S: plan.config.workers - 1}
    return {
        stream: _in_order(rows.filter(pc.equal(rows.column("stream"), stream)), plan)
        for stream in STREAMS
        if entering[stream] == number
    }


def _in_order(rows: pa.Table, plan: Plan) -> Arrivals:
    rows = rows.sort_by("seq")
    times = rows.column("event_time_us")
    if rows.num_rows and pc.max(times).as_py() + plan.config.window_us >= END_US:
        msg = f"an event time plus the window of {plan.config.window_us} us is beyond all times"
        raise InputProblem(msg)
    tuples = pa.table(
        {
            "rank": pa.array(np.zeros(rows.num_rows, np.int64)),
            "source_id": rows.column("source_id"),
            "ts": times,
            "value": rows.column("value"),
            "key": rows.column("key"),
        }
    )
    return Arrivals(rows.column("seq").to_numpy().astype(np.int64), tuples_from_arrow(tuples))


def sentence_of(error: Exception) -> str:
    """What the last Python error in the message says, without any stack trace."""
    text = str(error)
    found: list[str] = re.findall(
        r"^\s*(?:[\w.]+\.)?\w*(?:Error|Problem|Exception|Lost): (.+)$", text, re.MULTILINE
    )
    return found[-1].strip() if found else text.split("\n", maxsplit=1)[0]
