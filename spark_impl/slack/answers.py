"""What a user asks the store of a query: current answers, whether their assumption holds."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import SlackConfig
from model.vocabulary.slack import ADAPTIVE_CONTROLS
from spark_impl.slack.room import SLACK
from spark_impl.windows import answers, correlation
from spark_impl.windows.correlation import AssumptionStatus
from spark_impl.windows.store import Store, load_store

INDEPENDENT = "values exchangeable and independent of delay"
NEARLY_NORMAL = f"{INDEPENDENT}, missing sum nearly normal"


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
    :class:`InputProblem` when ``store`` is not the store of a query.
    """
    config, place = load_store(Path(store).absolute(), SLACK)
    return answers.undisturbed(place, lambda last: _results(spark, config, place, last))


def _results(spark: SparkSession, config: SlackConfig, place: Store, last: int) -> DataFrame:
    """The same after one micro-batch."""
    rests_on = assumption(config)
    is_tested = rests_on.startswith(INDEPENDENT)
    status = _status(spark, place, last).status if is_tested else None
    return answers.current(spark, SLACK.asked(config), place, last).select(
        "*",
        F.lit(rests_on).alias("assumption"),
        F.lit(status).cast("string").alias("assumption_status"),
    )


def assumption_status(spark: SparkSession, store: str | Path) -> AssumptionStatus:
    """Whether corrected windows contradict that values are independent of delay, with figures.

    Raises :class:`InputProblem` when ``store`` is not the store of a query.
    """
    _, place = load_store(Path(store).absolute(), SLACK)
    return answers.undisturbed(place, lambda last: _status(spark, place, last))


def corrections(spark: SparkSession, store: str | Path) -> DataFrame:
    """What was corrected, and what that took: :func:`spark_impl.windows.answers.corrections`."""
    return answers.corrections(spark, SLACK, store)


def _status(spark: SparkSession, place: Store, last: int) -> AssumptionStatus:
    figures = ["cross", "delay_spread", "value_spread"]
    latest = F.max_by(F.struct(*figures), "revision")
    rows = (
        answers.table(spark, place, "correlation", last)
        .groupBy(*place.by, "key", "start_us")
        .agg(latest.alias("latest"))
        .select("latest.*")
        .toArrow()
    )
    return correlation.status(*(rows.column(name).to_numpy().astype(float) for name in figures))
