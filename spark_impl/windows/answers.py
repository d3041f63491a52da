"""What a user asks a store: current answers, and what they cost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType

from spark_impl.runtime.histories import literal
from spark_impl.windows.asked import Asked
from spark_impl.windows.room import Room
from spark_impl.windows.store import Store, load_store

EXACT, PROVISIONAL = "exact", "provisional"
_Found = TypeVar("_Found")


def results(spark: SparkSession, room: Room[Any], store: str | Path) -> DataFrame:
    """Current answers of the query of a room that keeps its state in ``store``.

    Columns: the grouping columns, ``task``, ``key``, ``start_us`` and ``end_us`` of the window,
    ``value``, ``n`` (tuples in it), ``revision`` (0 is the stream's own answer), ``n_rcv`` (tuples
    in the stream's answer), ``coverage`` (``n_rcv`` over the tuples known by now) and ``state``
    (``exact`` or ``provisional``).

    A batch that is being written, or that a crash cut short, does not show. Raises
    :class:`InputProblem` when ``store`` is not the store of a query.
    """
    config, place = load_store(Path(store).absolute(), room)
    asked = room.asked(config)
    return undisturbed(place, lambda last: current(spark, asked, place, last))


def corrections(spark: SparkSession, room: Room[Any], store: str | Path) -> DataFrame:
    """What was corrected, and what that took: a row for each correction of a task.

    Columns: the grouping columns, ``task``, ``batch``, ``reason`` (``gamma``, ``age`` or
    ``flush``), ``pairs`` and ``windows`` that it covered, ``rows_needed`` (rows of the history in
    these windows) and ``rows_read`` (rows that were read to find them, then or before, for all
    tasks that the batch corrected). Raises :class:`InputProblem` when ``store``
    is not the store of a query.
    """
    _, place = load_store(Path(store).absolute(), room)
    rows = undisturbed(place, lambda last: table(spark, place, "correction", last))
    measures = ["pairs", "windows", "rows_needed", "rows_read"]
    return rows.select(*place.by, "batch", "reason", *measures)


def late(spark: SparkSession, room: Room[Any], store: str | Path) -> DataFrame:
    """What came too late for the first answers: a row for each (tuple, window).

    Columns: the grouping columns, ``task``, ``key``, ``start_us`` and ``end_us`` of the window,
    ``source_id`` and ``event_time_us`` of the tuple, and ``batch``, the micro-batch in which it
    came, the first one if it came again after its identity was forgotten. Raises
    :class:`InputProblem` when ``store`` is not the store of a query.
    """
    config, place = load_store(Path(store).absolute(), room)
    asked = room.asked(config)
    rows = undisturbed(place, lambda last: table(spark, place, "late", last))
    pairs = _pairs(asked, rows).withColumn("end_us", F.col("start_us") + asked.size_us)
    pair = (*place.by, "key", "start_us", "end_us", "source_id", "event_time_us")
    return pairs.groupBy(*pair).agg(F.min("batch").alias("batch"))


def undisturbed(place: Store, look: Callable[[int], _Found]) -> _Found:
    """What a look at everything up to the last complete micro-batch finds.

    A query at work may begin this batch anew, or drop what was pending after it: we look again.
    """
    failed = None
    while True:
        last = place.committed()
        mark = place.mark(last)
        try:
            found = look(last)
        except Exception:
            if failed == (last, mark):  # twice; that is not the query at work
                raise
            failed = last, mark
        else:
            if last < 0 or (mark is not None and mark == place.mark(last)):
                return found


def current(spark: SparkSession, asked: Asked, place: Store, last: int) -> DataFrame:
    """The answers after one micro-batch, as :func:`results` gives them."""
    window = [*place.by, "key", "start_us"]
    stream = table(spark, place, "result", last)
    revised = table(spark, place, "revision", last)
    latest = F.max_by(F.struct("value", "n", "revision"), "revision")
    answers = (
        stream.select(*window, "value", F.col("n_rcv").alias("n"), F.lit(0).alias("revision"))
        .unionByName(revised.drop("batch"))
        .groupBy(*window)
        .agg(
            latest.alias("latest"),
            F.max(F.when(F.col("revision") == 0, F.col("n"))).alias("n_rcv"),
        )
        .select(*window, "latest.*", F.coalesce("n_rcv", F.lit(0)).alias("n_rcv"))
    )
    missing = F.coalesce("pending", F.lit(0))
    return answers.join(_pending(spark, asked, place, last), window, "left").select(
        *window[:-1],
        "start_us",
        (F.col("start_us") + asked.size_us).alias("end_us"),
        "value",
        "n",
        F.col("revision").cast("int").alias("revision"),
        "n_rcv",
        (F.col("n_rcv") / (F.col("n") + missing)).alias("coverage"),
        F.when(F.col("pending").isNull(), EXACT).otherwise(PROVISIONAL).alias("state"),
    )


def _pending(spark: SparkSession, asked: Asked, place: Store, last: int) -> DataFrame:
    """Pending pairs of every window that has some; what is not corrected is pending for ever."""
    if asked.corrects:
        pairs = table(spark, place, "pending", last).where(F.col("batch") == last)
    else:
        pairs = table(spark, place, "late", last)
    window = [*place.by, "key", "start_us"]
    # A redelivery whose identity was forgotten finds a pair late once more.
    tuples = F.count_distinct("source_id")
    return _pairs(asked, pairs).groupBy(*window).agg(tuples.alias("pending"))


def _pairs(asked: Asked, runs: DataFrame) -> DataFrame:
    """A row for each window of runs of windows."""
    after_first = F.explode(F.sequence(F.lit(0), F.col("windows") - 1))
    start = F.col("start_us") + F.col("step") * asked.slide_us
    return runs.withColumn("step", after_first).withColumn("start_us", start)


def table(spark: SparkSession, place: Store, name: str, last: int) -> DataFrame:
    """A table with its complete micro-batches."""
    schema = from_arrow_schema(place.schema(name)).add("batch", LongType())
    if last < 0 or not (place.root / name).exists():
        return spark.createDataFrame([], schema)
    rows = spark.read.schema(schema).parquet(literal(place.root / name))
    return rows.where(F.col("batch") <= last)
