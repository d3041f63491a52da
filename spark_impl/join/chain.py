"""A chain on Spark and its store: one epoch after the other.

Rules of this file:

* When a chain is opened, its store settles the past and the caller decides about the future.
* The runner of an epoch holds the lock of the store.
* An epoch is a barrier stage with a task for every worker. If a task fails, the stage fails, and
  Spark runs all of it again from the epoch before.
* Rows go to the worker where their stream enters. Every worker has a row of its own, so that there
  is a task for it even if there is nothing to do.
* Nothing that a task writes counts before the driver commits the epoch.
"""

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema

from model.vocabulary import JoinConfig
from model.vocabulary.join import S
from model.vocabulary.trace import Step
from spark_impl.join.matching import Counts, FreePredicate, ranks_of
from spark_impl.join.merging import merge_epochs
from spark_impl.join.rendezvous import Place, Rendezvous
from spark_impl.join.store import Commit, open_store
from spark_impl.join.task import COLUMNS, SUMMARY, Plan, Summary, run_task
from spark_impl.runtime import locks
from spark_impl.runtime.failures import last_error, sentence_of
from spark_impl.runtime.locks import Lock
from spark_impl.runtime.session import EnvironmentProblem
from spark_impl.runtime.storage import InputProblem, Location

Span: TypeAlias = tuple[int, int | None]
"""First and last epoch of a query; ``None``: it has no last one."""


def continue_config(
    before: JoinConfig,
    functions: Collection[str],
    given: JoinConfig,
    given_functions: Collection[str],
    epoch: int,
) -> JoinConfig:
    """Return the configuration from ``epoch`` on of a chain with a past.

    ``before`` is the configuration so far, ``given`` is the new one. A new query begins with this
    epoch; a removed one has ended with the epoch before. It stays in the configuration and pairs no
    new tuples, but pairs of old ones may still be owed. ``functions`` and ``given_functions`` name
    the queries whose predicates are functions. Raise :class:`InputProblem` if the past would have
    to change.
    """
    known, wanted = dict(before.queries), dict(given.queries)
    for name, predicate in known.items():
        if name not in wanted and name in functions:
            msg = f"the query {name!r} is a function: give it again, because it may still owe pairs"
            raise InputProblem(msg)
        same = (predicate, name in functions) == (wanted.get(name), name in given_functions)
        if name in wanted and not same:
            msg = f"the query {name!r} has changed: a changed query needs another name"
            raise InputProblem(msg)
    queries, limited = [], []
    for name, predicate in {**known, **wanted}.items():
        span = _find_span(name, before, given, epoch)
        if span is not None:
            queries.append((name, predicate))
            limited += [(name, *span)] if span != (0, None) else []
    return replace(given, queries=tuple(queries), epochs=tuple(limited))


def _find_span(name: str, before: JoinConfig, given: JoinConfig, epoch: int) -> Span | None:
    """Return the epochs of a query; ``None`` if it ends before it begins."""
    is_known = any(name == each for each, _ in before.queries)
    span: Span = before.span(name) if is_known else (epoch, None)
    if not any(name == each for each, _ in given.queries):
        return _end_span(span, epoch)
    if any(name == each for each, _, _ in given.epochs):
        return _move_span(name, span, given.span(name), is_known, epoch)
    if _is_over(span, epoch):
        msg = f"the query {name!r} ended with epoch {span[1]}: a new query needs another name"
        raise InputProblem(msg)
    return span


def _end_span(span: Span, epoch: int) -> Span | None:
    first, last = span
    if first >= epoch:
        return None
    return first, epoch - 1 if last is None else min(last, epoch - 1)


def _move_span(name: str, span: Span, wanted: Span, is_known: bool, epoch: int) -> Span:
    """Return the wanted epochs of a query, if they change only the future."""
    begin_moves = wanted[0] != span[0] and (is_known or wanted[0] < epoch)
    end_moves = wanted[1] != span[1] and (_is_over(span, epoch) or _is_over(wanted, epoch))
    if begin_moves or end_moves:
        msg = (
            f"the query {name!r} cannot have the epochs {wanted[0]} to {wanted[1]}:"
            f" the next epoch is {epoch}"
        )
        raise InputProblem(msg)
    return wanted


def _is_over(span: Span, epoch: int) -> bool:
    """Return whether the query ended before the last epoch, which can change no more."""
    return span[1] is not None and span[1] < epoch - 1


PATIENCE_S = 60.0
"""A neighbour that is silent for this long is taken for dead."""


class Chain:
    """A chain with its store.

    On the store of an earlier run it resumes there. The number of workers may differ, new queries
    begin with the next epoch, and missing ones have ended. Raise :class:`InputProblem` if the store
    belongs to another chain, and :class:`EnvironmentProblem` if there are fewer task slots than
    workers.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: JoinConfig,
        store: str | Path | Location,
        free: Mapping[str, FreePredicate] | None = None,
        *,
        recording: bool = False,
        history: bool = False,
        on_step: Callable[[Step], None] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        check_slots(spark, config.workers)
        self._spark = spark
        self._free = dict(free or {})
        self._recording = recording
        self._history = history
        self._on_step = on_step
        self._patience_s = patience_s
        self.store = open_store(store, config)
        self._last = before = self.store.last()
        if before is not None:
            config = continue_config(
                before.config, before.functions, config, self._free, before.epoch + 1
            )
        self.config = config
        """The configuration, with all queries that the chain ever had, and the epochs of each."""

    @property
    def flushed(self) -> bool:
        """Whether the last epoch was a flush; nothing follows it."""
        return self._last is not None and self._last.flush

    @property
    def epochs(self) -> int:
        """Number of committed epochs, which is the number of the next one."""
        return 0 if self._last is None else self._last.epoch + 1

    def advance(self, rows: DataFrame | None) -> list[Summary]:
        """Run the next epoch.

        ``rows`` are arrivals with ``stream`` and the columns of inputs; ``None`` is a flush.
        """
        lock = locks.lock(self.store.root)
        try:
            before = self.store.last(self._last)
            if before != self._last:
                msg = f"the chain in {self.store.root} was continued elsewhere: open it again"
                raise InputProblem(msg)
            if before is not None and before.flush:
                msg = f"the chain in {self.store.root} was flushed, and nothing may follow that"
                raise InputProblem(msg)
            merge_epochs(self.store)
            summaries = run_epoch(
                self._spark, rows, lambda place: self._plan(place, before, rows), lock
            )
            self._last = self.store.last(before)
            return summaries
        finally:
            lock.release()

    def _plan(self, place: Place, before: Commit | None, rows: DataFrame | None) -> Plan:
        return Plan(
            config=self.config,
            free=self._free,
            ranks=ranks_of(self.config, self.epochs, self.store.admitted_before),
            store=self.store,
            before=before,
            epoch=self.epochs,
            flush=rows is None,
            place=place,
            patience_s=self._patience_s,
            recording=self._recording,
            history=self._history,
            on_step=self._on_step,
        )


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
    spark: SparkSession, rows: DataFrame | None, plan: Callable[[Place], Plan], lock: Lock
) -> list[Summary]:
    """Run one epoch and commit it, under the lock of the store.

    ``rows`` have ``stream`` and :data:`COLUMNS`; ``None`` is a flush. Raise :class:`ChainProblem`
    if the epoch fails, and :class:`InputProblem` if what workers have written is not in the store;
    then nothing of it counts.
    """
    settings = spark.sparkContext.getConf()
    host = str(settings.get("spark.driver.host"))
    bound_to = str(settings.get("spark.driver.bindAddress", host))
    workers = plan(Place((host, 0), "", 0.0)).config.workers
    check_slots(spark, workers)
    with Rendezvous(host, workers, bound_to=bound_to) as rendezvous:
        made = plan(rendezvous.place)
        stage = _place_rows(spark, rows, workers).mapInArrow(
            partial(run_task, plan=made), from_arrow_schema(SUMMARY), barrier=True
        )
        # Spark runs a failed barrier stage again only if its output is shuffled.
        shuffled = stage.repartition(1)
        try:
            summaries = sorted(Summary(**row.asDict()) for row in shuffled.collect())
        except (PySparkException, Py4JError) as error:
            sentence = _describe_failure(error, str(spark.sparkContext.master), made.epoch)
            raise ChainProblem(sentence) from error
    attempts = {each.attempt for each in summaries}
    if len(attempts) != 1 or [each.worker for each in summaries] != list(range(workers)):
        msg = f"epoch {made.epoch} is not the work of one attempt: {summaries}"
        raise ChainProblem(msg)
    if not lock.is_held:
        msg = (
            f"{made.store.root} was not locked any more at the end of epoch {made.epoch}, which"
            " does not count; the next run resumes there"
        )
        raise ChainProblem(msg)
    made.store.commit(_commit(made, attempts.pop(), summaries))
    return summaries


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
        admitted=Counts(summaries[0].r_admitted, summaries[-1].s_admitted),
        held=Counts(*(sum(getattr(each, name) for each in summaries) for name in _HELD)),
    )


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
