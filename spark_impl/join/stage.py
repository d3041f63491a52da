"""One epoch on Spark: a barrier stage with a task for every worker.

Rules of this file:

* If a task fails, the stage fails, and Spark runs all of it again from the epoch before.
* Rows go to the worker where their stream enters. Every worker has a row of its own, so that there
  is a task for it even if there is nothing to do.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema

from model.vocabulary.join import STREAMS, S
from spark_impl.join.control import end_epoch
from spark_impl.join.inputs import types_of
from spark_impl.join.matching import Counts
from spark_impl.join.rendezvous import Rendezvous, addresses_of
from spark_impl.join.store import Commit
from spark_impl.join.task import COLUMNS, SUMMARY, Plan, Summary, read_summary, run_task
from spark_impl.runtime.failures import QueryProblem, sentence_of
from spark_impl.runtime.session import EnvironmentProblem

_EXECUTORS_COME_S = 15.0
"""Longest wait for the executors of a cluster that has just started."""


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


def run_epoch(spark: SparkSession, rows: DataFrame | None, plan: Plan) -> list[Summary]:
    """Run one epoch, of which nothing counts before it is committed; return the workers' reports.

    ``rows`` have the columns of :func:`spark_impl.join.inputs.union_inputs`; ``None`` is a flush.
    Raise :class:`QueryProblem` if the epoch fails.
    """
    host, bound_to = addresses_of(spark.sparkContext)
    workers = plan.config.workers
    check_slots(spark, workers)
    with Rendezvous(host, workers, bound_to=bound_to) as rendezvous:
        task = partial(run_task, plan=plan, place=rendezvous.place)
        more = types_of({stream: plan.config.columns(stream) for stream in STREAMS})
        stage = _place_rows(spark, rows, workers, more).mapInArrow(
            task, from_arrow_schema(SUMMARY), barrier=True
        )
        # Spark runs a failed barrier stage again only if its output is shuffled.
        shuffled = stage.repartition(1)
        try:
            told = [read_summary(row.summary) for row in shuffled.collect()]
        except (PySparkException, Py4JError) as error:
            raise QueryProblem(sentence_of(error)) from error
    summaries = sorted(told, key=lambda each: each.worker)
    attempts = {each.attempt for each in summaries}
    if len(attempts) != 1 or [each.worker for each in summaries] != list(range(workers)):
        msg = f"epoch {plan.epoch} is not the work of one attempt: {summaries}"
        raise QueryProblem(msg)
    return summaries


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
    spark: SparkSession, rows: DataFrame | None, workers: int, more: Mapping[str, str]
) -> DataFrame:
    """Return every row at the worker where its stream enters, and an empty row for every worker.

    ``more`` are the columns of the rows besides :data:`COLUMNS`, and their types.
    """
    kinds = {"worker": "int", "stream": "string", **COLUMNS, **more}
    seats = spark.range(workers).select(
        F.col("id").cast("int").alias("worker"),
        *(F.lit(None).cast(kind).alias(name) for name, kind in kinds.items() if name != "worker"),
    )
    if rows is not None:
        last = F.when(F.col("stream") == S, workers - 1).otherwise(0).cast("int")
        seats = seats.union(rows.withColumn("worker", last).select(*kinds))
    return seats.repartitionById(workers, "worker")
