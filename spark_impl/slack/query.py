"""The streaming query of room ``slack``."""

from collections.abc import Collection
from pathlib import Path

from pyspark.sql import SparkSession

from model.vocabulary import SlackConfig
from spark_impl.slack.room import SLACK
from spark_impl.windows.query import WindowedQuery


class SlackQuery(WindowedQuery[SlackConfig]):
    """Adaptive K-slack windows over a history, with answers that end exact.

    Arguments and errors are those of :class:`spark_impl.windows.query.WindowedQuery`.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: SlackConfig,
        source: str | Path,
        store: str | Path,
        group_columns: Collection[str] = (),
    ) -> None:
        super().__init__(spark, SLACK, config, source, store, group_columns)
