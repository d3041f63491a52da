"""One epoch on Spark: a barrier stage with a task for every worker.

Rules of this file:

* If a task fails, the stage fails, and Spark runs all of it again from the epoch before.
* Rows go to the worker where their stream enters. Every worker has a row of its own, so that there
  is a task for it even if there is nothing to do.
* Nothing that a task writes counts before the driver commits the epoch.
"""

import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema

from model.vocabulary.join import REASON_LATE, REASON_NOT_FINITE, REASON_SHED, R, S
from spark_impl.join.idle import end_epoch
from spark_impl.join.matching import Counts
from spark_impl.join.rendezvous import Rendezvous, addresses_of
from spark_impl.join.store import STATE, Commit, commit_epoch, name_of
from spark_impl.join.task import COLUMNS, SUMMARY, Plan, Summary, run_task
from spark_impl.runtime.failures import last_error, sentence_of
from spark_impl.runtime.session import EnvironmentProblem
from spark_impl.runtime.storage import InputProblem
from spark_impl.runtime.tables import TableWriter

Conclude: TypeAlias = Callable[[Commit, Sequence[Summary]], Commit]
_HELD = ("r_held", "s_held")
_EXECUTORS_COME_S = 15.0
"""Longest wait for the executors of a cluster that has just started."""


class ChainProblem(RuntimeError):  # noqa: N818 (a problem of the user, not a bug)
    """An epoch failed; the message is one sentence with the reason."""


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
    spark: SparkSession,
    rows: DataFrame | None,
    plan: Plan,
    writer: TableWriter,
    conclude: Conclude,
) -> tuple[list[Summary], Commit]:
    """Run one epoch and commit what ``conclude`` makes of it; return that, too.

    ``rows`` have ``stream`` and :data:`COLUMNS`; ``None`` is a flush. Raise :class:`ChainProblem`
    if the epoch fails, and :class:`InputProblem` if what workers have written is not in the store,
    or if another chain has committed the epoch; then nothing of it counts.
    """
    host, bound_to = addresses_of(spark.sparkContext)
    workers = plan.config.workers
    check_slots(spark, workers)
    with Rendezvous(host, workers, bound_to=bound_to) as rendezvous:
        made = plan._replace(place=rendezvous.place)
        stage = _place_rows(spark, rows, workers).mapInArrow(
            partial(run_task, plan=made), from_arrow_schema(SUMMARY), barrier=True
        )
        # Spark runs a failed barrier stage again only if its output is shuffled.
        shuffled = stage.repartition(1)
        try:
            summaries = sorted(Summary(**row.asDict()) for row in shuffled.collect())
        except (PySparkException, Py4JError) as error:
            sentence = _describe_failure(error, str(spark.sparkContext.master), plan.epoch)
            raise ChainProblem(sentence) from error
    attempts = {each.attempt for each in summaries}
    if len(attempts) != 1 or [each.worker for each in summaries] != list(range(workers)):
        msg = f"epoch {plan.epoch} is not the work of one attempt: {summaries}"
        raise ChainProblem(msg)
    done = conclude(_commit(plan, attempts.pop(), summaries), summaries)
    commit_epoch(plan.store, writer, done, _files(plan, done, summaries))
    return summaries, done


def _files(plan: Plan, done: Commit, summaries: Sequence[Summary]) -> dict[str, dict[str, int]]:
    """Return the files of workers by kind and name, with the number of their rows."""
    files: dict[str, dict[str, int]] = {kind: {} for kind in ("matches", "rejected", STATE)}
    for each in summaries:
        name = name_of(each.attempt, each.worker)
        rows = {"matches": sum(each.matches), "rejected": each.rejected, STATE: 1}
        for kind, count in rows.items():
            if count:
                files[kind][name] = count
    if plan.history:
        before = Counts(0, 0) if plan.before is None else plan.before.admitted
        for stream, at, new in (
            (R, summaries[0], done.admitted.r - before.r),
            (S, summaries[-1], done.admitted.s - before.s),
        ):
            files[f"admitted-{stream}"] = {name_of(at.attempt, at.worker): new} if new else {}
    return files


def _commit(plan: Plan, attempt: str, summaries: Sequence[Summary]) -> Commit:
    """Return the record of an epoch that succeeded."""
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
        reasons=_reasons(summaries),
        clocks=end_epoch(
            plan.config,
            plan.clocks,
            Counts(summaries[0].r_t_max_us, summaries[-1].s_t_max_us),
            Counts(summaries[0].r_accepted, summaries[-1].s_accepted),
        ),
        admitted=Counts(summaries[0].r_admitted, summaries[-1].s_admitted),
        held=Counts(*(sum(getattr(each, name) for each in summaries) for name in _HELD)),
        complete_us=_complete_us(summaries),
    )


def _reasons(summaries: Sequence[Summary]) -> dict[str, int]:
    """Return the number of rejected arrivals by reason, without reasons that nobody has."""
    late, shed = (sum(getattr(each, name) for each in summaries) for name in ("late", "shed"))
    others = sum(each.rejected for each in summaries) - late - shed
    found = {REASON_NOT_FINITE: others, REASON_LATE: late, REASON_SHED: shed}
    return {reason: n for reason, n in found.items() if n}


def _complete_us(summaries: Sequence[Summary]) -> int:
    """Return the time below which no pair is owed and no tuple will come.

    A pair that is owed has both of its tuples in the chain.
    """
    r_least_us = min(each.r_least_us for each in summaries)
    s_least_us = min(each.s_least_us for each in summaries)
    return min(summaries[0].r_wm_us, summaries[-1].s_wm_us, max(r_least_us, s_least_us))


def _describe_failure(error: Exception, master: str, epoch: int) -> str:
    """Return why an epoch failed, with advice unless it would fail again."""
    sentence = sentence_of(error)
    if last_error(error)[0] == InputProblem.__name__:
        return sentence
    return f"{sentence} ({advice(master, epoch)})"


def advice(master: str, epoch: int) -> str:
    """Return what to do about an epoch that failed."""
    said = f"nothing of epoch {epoch} counts; the next run resumes there"
    once = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master)
    if once is None:
        return said
    more = f"local[{once[1] or 1},4]"
    return f"{said}; Spark tries once under {master}, and up to four times under {more}"


def _place_rows(spark: SparkSession, rows: DataFrame | None, workers: int) -> DataFrame:
    """Return every row at the worker where its stream enters, and an empty row for every worker."""
    kinds = {"worker": "int", "stream": "string", **COLUMNS}
    seats = spark.range(workers).select(
        F.col("id").cast("int").alias("worker"),
        *(F.lit(None).cast(kind).alias(name) for name, kind in kinds.items() if name != "worker"),
    )
    if rows is not None:
        last = F.when(F.col("stream") == S, workers - 1).otherwise(0).cast("int")
        seats = seats.union(rows.withColumn("worker", last).select(*kinds))
    return seats.repartitionById(workers, "worker")
