"""What a user asks a store: current answers, whether their assumption holds, what it cost."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType

from model.vocabulary import SlackConfig
from model.vocabulary.slack import ADAPTIVE_CONTROLS
from spark_impl.slack import correlation
from spark_impl.slack.correlation import AssumptionStatus
from spark_impl.slack.store import Store, load_store

EXACT, PROVISIONAL = "exact", "provisional"
INDEPENDENT = "values exchangeable and independent of delay"
NEARLY_NORMAL = f"{INDEPENDENT}, missing sum nearly normal"
_Found = TypeVar("_Found")


def assumption(config: SlackConfig) -> str:
    """What the quality of the first answers rests on."""
    if config.control not in ADAPTIVE_CONTROLS:
        return "no (eps, delta) promise"
    if config.control != "conformal":
        return "no (eps, delta) promise: only the mean of the coverage is steered"
    if config.lambda_thr is not None:
        return "none for the coverage; it says nothing about the error of the value"
    if config.aggregate == "count" or config.sampling == "adversarial":
        return "none"
    if config.aggregate in ("sum", "avg") and config.method == "normal":
        return NEARLY_NORMAL
    return INDEPENDENT


def results(spark: SparkSession, store: str | Path) -> DataFrame:
    """Current answers of the query that keeps its state in ``store``.

    Columns: the grouping columns, ``task``, ``key``, ``start_us`` and ``end_us`` of the window,
    ``value``, ``n`` (tuples in it), ``revision`` (0 is the stream's own answer), ``n_rcv`` (tuples
    in the stream's answer), ``coverage`` (``n_rcv`` over the tuples known by now), ``state``
    (``exact`` or ``provisional``), ``assumption`` (what the quality of the first answers rests on)
    and ``assumption_status`` (``untested``, ``not contradicted`` or ``contradicted`` by what has
    been corrected by now, as to values and delay; NULL where nothing is assumed).

    A batch that is being written, or that a crash cut short, does not show. Raises
    :class:`spark_impl.streams.InputProblem` when ``store`` is not the store of a query.
    """
    config, place = load_store(Path(store).absolute())
    return _undisturbed(place, lambda last: _results(spark, config, place, last))


def _undisturbed(place: Store, look: Callable[[int], _Found]) -> _Found:
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


def _results(spark: SparkSession, config: SlackConfig, place: Store, last: int) -> DataFrame:
    """The same after one micro-batch."""
    rests_on = assumption(config)
    is_tested = rests_on.startswith(INDEPENDENT)
    status = _status(spark, place, last).status if is_tested else None
    window = [*place.by, "key", "start_us"]
    stream = _table(spark, place, "result", last)
    revised = _table(spark, place, "revision", last)
    current = F.max_by(F.struct("value", "n", "revision"), "revision")
    answers = (
        stream.select(*window, "value", F.col("n_rcv").alias("n"), F.lit(0).alias("revision"))
        .unionByName(revised.drop("batch"))
        .groupBy(*window)
        .agg(
            current.alias("current"),
            F.max(F.when(F.col("revision") == 0, F.col("n"))).alias("n_rcv"),
        )
        .select(*window, "current.*", F.coalesce("n_rcv", F.lit(0)).alias("n_rcv"))
    )
    missing = F.coalesce("pending", F.lit(0))
    return answers.join(_pending(spark, config, place, last), window, "left").select(
        *window[:-1],
        "start_us",
        (F.col("start_us") + config.size_us).alias("end_us"),
        "value",
        "n",
        F.col("revision").cast("int").alias("revision"),
        "n_rcv",
        (F.col("n_rcv") / (F.col("n") + missing)).alias("coverage"),
        F.when(F.col("pending").isNull(), EXACT).otherwise(PROVISIONAL).alias("state"),
        F.lit(rests_on).alias("assumption"),
        F.lit(status).cast("string").alias("assumption_status"),
    )


def assumption_status(spark: SparkSession, store: str | Path) -> AssumptionStatus:
    """Whether corrected windows contradict that values are independent of delay, with figures.

    Raises :class:`spark_impl.streams.InputProblem` when ``store`` is not the store of a query.
    """
    _, place = load_store(Path(store).absolute())
    return _undisturbed(place, lambda last: _status(spark, place, last))


def corrections(spark: SparkSession, store: str | Path) -> DataFrame:
    """What was corrected, and what that took: a row for each correction of a task.

    Columns: the grouping columns, ``task``, ``batch``, ``reason`` (``gamma``, ``age`` or
    ``flush``), ``pairs`` and ``windows`` that it covered, ``rows_needed`` (rows of the history in
    these windows) and ``rows_read`` (rows that were read to find them, then or before, for all
    tasks that the batch corrected). Raises :class:`spark_impl.streams.InputProblem` when ``store``
    is not the store of a query.
    """
    _, place = load_store(Path(store).absolute())
    rows = _undisturbed(place, lambda last: _table(spark, place, "correction", last))
    measures = ["pairs", "windows", "rows_needed", "rows_read"]
    return rows.select(*place.by, "batch", "reason", *measures)


def _status(spark: SparkSession, place: Store, last: int) -> AssumptionStatus:
    figures = ["cross", "delay_spread", "value_spread"]
    latest = F.max_by(F.struct(*figures), "revision")
    rows = (
        _table(spark, place, "correlation", last)
        .groupBy(*place.by, "key", "start_us")
        .agg(latest.alias("latest"))
        .select("latest.*")
        .toArrow()
    )
    return correlation.status(*(rows.column(name).to_numpy().astype(float) for name in figures))


def _pending(spark: SparkSession, config: SlackConfig, place: Store, last: int) -> DataFrame:
    """Pending pairs of every window that has some."""
    pairs = _table(spark, place, "pending", last).where(F.col("batch") == last)
    after_first = F.explode(F.sequence(F.lit(0), F.col("windows") - 1))
    return (
        pairs.withColumn("step", after_first)
        .withColumn("start_us", F.col("start_us") + F.col("step") * config.slide_us)
        .groupBy(*place.by, "key", "start_us")
        .agg(F.count("*").alias("pending"))
    )


def _table(spark: SparkSession, place: Store, name: str, last: int) -> DataFrame:
    """A table with its complete micro-batches."""
    schema = from_arrow_schema(place.schema(name)).add("batch", LongType())
    if last < 0 or not (place.root / name).exists():
        return spark.createDataFrame([], schema)
    rows = spark.read.schema(schema).parquet(str(place.root / name))
    return rows.where(F.col("batch") <= last)
