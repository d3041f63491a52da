"""The streaming query of room ``watermark``, and what a user asks its store."""

from collections.abc import Collection
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import WatermarkConfig
from spark_impl.watermark.room import WATERMARK
from spark_impl.windows import answers
from spark_impl.windows.query import WindowedQuery


class WatermarkQuery(WindowedQuery[WatermarkConfig]):
    """Windows over a history, with a watermark that follows the disorder of the last arrivals.

    What comes late is a side output (:func:`late`), or is corrected for when the configuration says
    so. Arguments and errors are those of :class:`spark_impl.windows.query.WindowedQuery`.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: WatermarkConfig,
        source: str | Path,
        store: str | Path,
        group_columns: Collection[str] = (),
    ) -> None:
        super().__init__(spark, WATERMARK, config, source, store, group_columns)


def results(spark: SparkSession, store: str | Path) -> DataFrame:
    """Current answers: :func:`spark_impl.windows.answers.results`."""
    return answers.results(spark, WATERMARK, store)


def late(spark: SparkSession, store: str | Path) -> DataFrame:
    """The side output, a row for each (tuple, window): :func:`spark_impl.windows.answers.late`."""
    return answers.late(spark, WATERMARK, store)


def corrections(spark: SparkSession, store: str | Path) -> DataFrame:
    """What was corrected, and what it took: :func:`spark_impl.windows.answers.corrections`."""
    return answers.corrections(spark, WATERMARK, store)
