"""One epoch on Spark: a barrier stage with a task for every worker of the chain.

Rules of this file:

* A task that fails fails the stage, and Spark runs all of it again from the epoch before.
* Rows reach the worker where their stream enters; every worker has a row of its own, so that there
  is a task for it even if there is nothing to do.
* Nothing that a task writes counts before the driver says so.
"""

import re
import time
from collections.abc import Callable, Sequence
from functools import partial

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema

from model.vocabulary.join import S
from spark_impl.join.queries import Counts
from spark_impl.join.rendezvous import Place, Rendezvous
from spark_impl.join.store import Commit
from spark_impl.join.task import COLUMNS, SUMMARY, Plan, Summary, run_task
from spark_impl.runtime.failures import last_error, sentence_of
from spark_impl.runtime.histories import InputProblem
from spark_impl.runtime.session import EnvironmentProblem

_HELD = ("r_held", "s_held")
_EXECUTORS_COME_S = 15.0
"""How long executors of a cluster that has just started may take to be there."""


class ChainProblem(RuntimeError):  # noqa: N818 (a problem of the user, not a bug)
    """An epoch that failed; the message is one sentence that says why."""


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
            partial(run_task, plan=made), from_arrow_schema(SUMMARY), barrier=True
        )
        # Spark runs a barrier stage again only if what it finds is shuffled.
        shuffled = stage.repartition(1)
        try:
            summaries = sorted(Summary(**row.asDict()) for row in shuffled.collect())
        except (PySparkException, Py4JError) as error:
            told = _told(error, str(spark.sparkContext.master), made.epoch)
            raise ChainProblem(told) from error
    attempts = {each.attempt for each in summaries}
    if len(attempts) != 1 or [each.worker for each in summaries] != list(range(workers)):
        msg = f"epoch {made.epoch} is not the work of one attempt: {summaries}"
        raise ChainProblem(msg)
    made.store.commit(_commit(made, attempts.pop(), summaries))
    return summaries


def _commit(plan: Plan, attempt: str, summaries: Sequence[Summary]) -> Commit:
    """What the driver writes down of an epoch."""
    found = zip(*(each.matches for each in summaries), strict=True)
    names = (name for name, _ in plan.config.queries)
    return Commit(
        epoch=plan.epoch,
        attempt=attempt,
        flush=plan.flush,
        config=plan.config,
        functions=tuple(sorted(plan.free)),
        history=plan.history,
        committed_us=time.time_ns() // 1000,
        matches=dict(zip(names, map(sum, found), strict=True)),
        rejected=sum(each.rejected for each in summaries),
        admitted=Counts(summaries[0].r_admitted, summaries[-1].s_admitted),
        held=Counts(*(sum(getattr(each, name) for each in summaries) for name in _HELD)),
    )


def _told(error: Exception, master: str, epoch: int) -> str:
    """What failed, and what to do about it unless it would fail again."""
    sentence = sentence_of(error)
    if last_error(error)[0] == InputProblem.__name__:
        return sentence
    return f"{sentence} ({advice(master, epoch)})"


def advice(master: str, epoch: int) -> str:
    """What to do about an epoch that failed."""
    said = f"nothing of epoch {epoch} counts; whoever runs it again goes on from there"
    once = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master)
    if once is None:
        return said
    more = f"local[{once[1] or 1},4]"
    return f"{said}; Spark tries once under {master}, and up to four times under {more}"


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
