"""The streaming query of room ``slack``."""

import json
import re
import uuid
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from model.vocabulary import SlackConfig
from spark_impl.slack import correction, sink
from spark_impl.slack.blocks import COLUMNS, pack
from spark_impl.slack.history import History
from spark_impl.slack.processor import SlackProcessor, input_schema, output_schema
from spark_impl.slack.store import Store, open_store, write_parquet

_HISTORY_TYPES = {"key": StringType(), "value": DoubleType()}


class QueryProblem(RuntimeError):  # noqa: N818 (a problem of the user, not a bug)
    """A query that stopped; the message is one sentence that says why."""


class SlackQuery:
    """Adaptive K-slack windows over a history, with answers that end exact.

    ``source`` is a history: a folder of Parquet files, one micro-batch each, in the order of their
    modification times (:mod:`spark_impl.streams` writes such folders). ``store`` is the folder for
    what the query finds; whoever opens it again goes on where the query stopped. Both have to be
    reachable under the same path from the driver and from all workers.

    ``group_columns`` are further columns of the history; every combination of their values is a
    query of its own.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: SlackConfig,
        source: str | Path,
        store: str | Path,
        group_columns: Collection[str] = (),
    ) -> None:
        self._spark = spark
        self._config = config
        self._source = Path(source).absolute()
        self._groups = StructType([StructField(name, StringType()) for name in group_columns])
        arrow = tuple(to_arrow_schema(self._groups)) if len(self._groups) else ()
        self._store = open_store(Path(store).absolute(), config, arrow)
        self._history = History(config, self._store, self._source)

    @property
    def store(self) -> Store:
        """Where the answers are."""
        return self._store

    def run_available(self) -> None:
        """Process everything that is in the source now, one file a micro-batch."""
        query = self._writer().trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            raise QueryProblem(_sentence(error)) from error
        finally:
            query.stop()

    def start(self, interval: str = "0 seconds") -> StreamingQuery:
        """Start the query and leave it running; files are taken as they come."""
        return self._writer().trigger(processingTime=interval).start()

    def flush(self, wanted: Callable[[tuple[Any, ...]], bool] | None = None) -> None:
        """Process what is in the source, then close all windows and correct what is pending.

        ``wanted`` chooses among the combinations of the grouping columns' values. The request is
        durable: a flush that was interrupted is carried out, once, by the next run.
        """
        self.run_available()
        progress = self._store.read_all("progress", self._store.committed())
        known = sorted(
            {tuple(row[name] for name in self._store.by) for row in progress.to_pylist()}
        )
        rows = [who for who in known if wanted is None or wanted(who[:-1])]
        if rows:
            schema = self._control_schema()
            columns = [
                pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), schema, strict=True)
            ]
            path = self._store.control / f"flush-{uuid.uuid4().hex}.parquet"
            write_parquet(pa.table(columns, schema=schema), path)
            self.run_available()

    def _control_schema(self) -> pa.Schema:
        return pa.schema([*self._store.groups, pa.field("task", pa.int32())])

    def _writer(self) -> DataStreamWriter:
        out: DataStreamWriter = (
            self._answers()
            .writeStream.outputMode("append")
            .option("checkpointLocation", str(self._store.checkpoint))
            .foreachBatch(self._finish)
        )
        return out

    def _answers(self) -> DataFrame:
        """The stream part: output rows of the processor."""
        by = self._store.by
        packed = input_schema(self._groups)
        blocks = self._arrivals().mapInArrow(
            partial(pack, by=by, schema=to_arrow_schema(packed)), packed
        )
        flushes = _files(
            self._spark, self._store.control, StructType([*self._groups, _int("task")])
        ).withColumn("block", F.lit(None).cast("binary"))
        return (
            blocks.unionByName(flushes)
            .groupBy(*by)
            .transformWithStateInPandas(
                SlackProcessor(self._config, by[:-1]),
                outputStructType=output_schema(self._groups),
                outputMode="append",
                timeMode="none",
            )
        )

    def _arrivals(self) -> DataFrame:
        columns = [StructField(name, _HISTORY_TYPES.get(name, LongType())) for name in COLUMNS]
        rows = _files(self._spark, self._source, StructType([*self._groups, *columns]))
        task = F.pmod(F.xxhash64("key"), F.lit(self._config.tasks)).cast("int")
        return rows.withColumn("task", task)

    def _finish(self, answers: DataFrame, batch: int) -> None:
        """Everything that a micro-batch writes; Spark calls it, again after a crash."""
        self._store.begin(batch)
        schema = self._store.schema("progress")
        columns = StructType([field for field in answers.schema if field.name in schema.names])
        arranged = StructType([columns[name] for name in schema.names])
        write = sink.stage(self._store, self._config, batch)
        progress = answers.mapInArrow(write, arranged).toArrow().cast(schema)
        correction.run(self._config, self._store, batch, progress, self._history.correct_all)


def _files(spark: SparkSession, folder: Path, schema: StructType) -> DataFrame:
    """A folder of Parquet files as a stream, one file a micro-batch."""
    return (
        spark.readStream.schema(schema)
        .option("maxFilesPerTrigger", 1)
        .option("maxFileAge", "36500d")  # an old file is an early one, never one to leave out
        .parquet(str(folder))
    )


def _int(name: str) -> StructField:
    return StructField(name, IntegerType())


def _sentence(error: StreamingQueryException) -> str:
    """What the first Python error in the message says, without any stack trace."""
    text = str(error)
    found = re.findall(
        r"^\s*(?:[\w.]+\.)?\w*(?:Error|Problem|Exception): (.+)$", text, re.MULTILINE
    )
    return found[-1].strip() if found else json.dumps(text.split("\n", maxsplit=1)[0])
