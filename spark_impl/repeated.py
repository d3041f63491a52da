"""Arrivals whose identity an earlier arrival has with other content, found in the history.

A query drops them as redeliveries and keeps nothing of them; the history still has both.
"""

from functools import reduce
from operator import or_

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from spark_impl.runtime.histories import COLUMNS, SOURCE_TEXT, files_of, read_footer
from spark_impl.runtime.queries import read_files
from spark_impl.runtime.storage import Location
from spark_impl.windows.room import WindowSettings
from spark_impl.windows.store import WindowStore, with_task

_PARTS = {"event_time_us": "event time", "key": "key", "value": "value"}


def find_repeated(
    spark: SparkSession,
    settings: WindowSettings,
    store: WindowStore,
    history: Location,
    refused: DataFrame,
) -> DataFrame | None:
    """Return the arrivals that a query took for redeliveries of other tuples, with the reason.

    Arrivals of one task are compared, each with the first one of its identity that is not in
    ``refused``. The columns are those of ``rejected`` of the room, without a ``batch``, and
    ``text``, the identity. None stands for a history without files.
    """
    files = files_of(history) if settings.dedup else []
    if not files:
        return None
    value = [] if settings.value is None else [pa.field(settings.value, pa.float64())]
    fixed = ("seq", "source_id", "key", "event_time_us")
    fields = [*store.groups, *(pa.field(name, COLUMNS[name]) for name in fixed), *value]
    text = F.col("source_id").cast("string")
    if SOURCE_TEXT in read_footer(files[0]).schema.to_arrow_schema().names:
        fields.append(pa.field(SOURCE_TEXT, pa.string()))
        text = F.coalesce(SOURCE_TEXT, text)
    rows = read_files(spark, files, pa.schema(fields)).withColumn("text", text)
    number = F.lit(None).cast("double") if settings.value is None else F.col(settings.value)
    rows = with_task(rows.withColumn("value", number), settings.tasks)
    rows = rows.join(refused.select("seq"), "seq", "left_anti")
    tuples = [*store.by, "source_id"]
    content = F.struct("text", *_PARTS)
    first = rows.groupBy(*tuples).agg(
        F.min_by(content, "seq").alias("first"), F.count("seq").alias("deliveries")
    )
    pairs = rows.join(first.where("deliveries > 1"), tuples).where(
        reduce(or_, map(_differs, ("text", *_PARTS)))
    )
    found = pairs.withColumn("reason", _reason())
    if not settings.keyed:
        found = found.withColumn("key", F.lit(""))
    columns = ["seq", "source_id", "key", "event_time_us", "value", "reason", "text"]
    return found.select(*store.by, *columns)


def _differs(name: str) -> Column:
    return ~F.col(name).eqNullSafe(F.col(f"first.{name}"))


def _reason() -> Column:
    """Return the first difference of an arrival, in the words of the command line."""
    number = F.concat(F.lit("has the number of another identity, "), "first.text")
    found = F.when(_differs("text"), number)
    for name, what in _PARTS.items():
        found = found.when(_differs(name), f"comes again with another {what}")
    return found
