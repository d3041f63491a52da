"""The streaming query of room ``slack``, its answers, and the query as a System."""

from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import SlackConfig
from model.vocabulary.slack import ADAPTIVE_CONTROLS, Judged, Progress
from spark_impl.runtime.storage import Address
from spark_impl.runtime.systems import system_maker
from spark_impl.slack.judgement import JUDGED
from spark_impl.slack.rule import Memory, SlackRule
from spark_impl.windows import answers, query, system, waiting
from spark_impl.windows import progress as figures
from spark_impl.windows.room import WindowRoom, WindowSettings, window_settings
from spark_impl.windows.store import load_store

INDEPENDENT = "values exchangeable and independent of delay"
NEARLY_NORMAL = f"{INDEPENDENT}, missing sum nearly normal"


def _settings(config: SlackConfig) -> WindowSettings:
    return window_settings(config, corrects=True)


SLACK = WindowRoom(
    name="slack",
    read=SlackConfig.from_json,
    settings=_settings,
    rule=SlackRule,
    memory=Memory(),
    progress={"max_delay_us": pa.int64(), "alpha": pa.float64()},
    records={"judged": JUDGED},
    words={"judged": Judged, "progress": Progress},
)


class SlackQuery(query.WindowedQuery[SlackConfig]):
    """Adaptive K-slack windows over a history, whose answers end exact.

    Arguments and errors are those of :class:`spark_impl.windows.query.WindowedQuery`.
    """

    room = SLACK


def assumption(config: SlackConfig) -> str:
    """Return the assumption on which the quality of the first answers rests."""
    if config.control not in ADAPTIVE_CONTROLS:
        return "no (eps, delta) promise"
    if config.control != "conformal":
        return "no (eps, delta) promise: only the mean of the coverage is steered"
    if config.lambda_thr is not None:
        return "none for the coverage; it says nothing about the error of the value"
    of_method = NEARLY_NORMAL if config.method == "normal" else INDEPENDENT
    return {
        "count": "none",
        "sum": of_method,
        "avg": of_method,
        "median": INDEPENDENT,
        "quantile": INDEPENDENT,
    }[config.aggregate]


def results(spark: SparkSession, store: Address) -> DataFrame:
    """Return the current answers of the query that writes ``store``.

    The columns are those of :func:`spark_impl.windows.answers.results`, and ``assumption``: the
    assumption on which the quality of the first answers rests.

    Incomplete micro-batches are omitted. Raises :class:`InputProblem` if ``store`` is not the store
    of a query.
    """
    config, opened = load_store(store, SLACK)
    found = answers.current_answers(spark, SLACK.settings(config), opened)
    return found.withColumn("assumption", F.lit(assumption(config)))


rejected = partial(answers.rejected, SLACK)
"""Returns a row for each refused arrival (:func:`spark_impl.windows.answers.rejected`)."""
corrections = partial(answers.corrections, SLACK)
"""Returns a row for each correction, as :func:`spark_impl.windows.answers.corrections` does."""


pending = partial(waiting.pending, SLACK)
"""Returns each row that waits, as :func:`spark_impl.windows.waiting.pending` does."""
progress = partial(figures.progress, SLACK)
"""Returns the figures of the last micro-batch of a store, without Spark."""
run_workloads = partial(system.run_workloads, SLACK)
"""Runs many workloads of one configuration in one query."""
run_in_process = partial(system.run_in_process, SLACK)
"""Runs a workload without Spark; returns the steps of the stream part."""
make_system = system_maker("slack", run_workloads)
