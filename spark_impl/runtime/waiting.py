"""Rows of a history that a query has yet to read: the first of its pending rows."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from spark_impl.runtime.accounts import first_unread
from spark_impl.runtime.histories import COLUMNS, bounds_of, files_of, read_footer
from spark_impl.runtime.queries import read_files
from spark_impl.runtime.storage import Location, locate
from spark_impl.runtime.stores import TableStore

ROW = tuple(pa.field(name, COLUMNS[name]) for name in ("seq", "source_id", "key", "event_time_us"))
"""Columns of a pending row, after the grouping columns and before the reason."""
NOT_READ = "the query has not read it"


def unread(spark: SparkSession, store: TableStore, groups: Sequence[pa.Field] = ()) -> DataFrame:
    """Return the rows of a store's history that the query has not read, with the reason.

    There are none unless a :class:`Landing` has written the history, as in the ledger.
    """
    first, files = first_unread(store.view), list[Location]()
    if first is not None:
        assert store.view.history is not None  # else ``first`` is None
        for file in reversed(files_of(locate(store.view.history["address"]))):
            if bounds_of(read_footer(file), ("seq",))["seq"][0] < first:
                break  # read, because a micro-batch reads whole files
            files.append(file)
    rows = read_files(spark, files, pa.schema([*groups, *ROW]))
    return rows.where(F.col("seq") >= (first or 0)).withColumn("reason", F.lit(NOT_READ))
