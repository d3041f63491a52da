"""Rows that wait for the first answer of a window, or for a correction of all of their windows.

The state of a query knows no identities. The history does, and the watermarks in the store say
which of its rows are in a window that is still open.
"""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from spark_impl.runtime import queries
from spark_impl.runtime.histories import files_of
from spark_impl.runtime.provenance import require_history
from spark_impl.runtime.storage import Address, locate
from spark_impl.runtime.waiting import ROW, unread
from spark_impl.windows.arrival_files import ALL_TIMES_US
from spark_impl.windows.room import AnyRoom, WindowSettings
from spark_impl.windows.store import PENDING, WindowStore, load_store, with_task

OPEN, UNCORRECTED = "its last window is open", "it waits for a correction"


def pending(room: AnyRoom, spark: SparkSession, store: Address) -> DataFrame:
    """Return each row that waits, with the reason; their number is ``pending`` of the ledger.

    The columns are the grouping columns, ``seq`` (NULL for rows that wait for a correction),
    ``source_id``, ``key``, ``event_time_us`` and ``reason``. The whole history is read to find rows
    in open windows: those of removed files are not listed. If identities come again with other
    event times, it may list other rows than the query has kept.

    Raise :class:`InputProblem` if ``store`` is not the store of a query, or if its history has
    moved or is gone.
    """
    config, opened = load_store(store, room)
    settings = room.settings(config)
    columns = [*(each.name for each in opened.groups), *(each.name for each in ROW), "reason"]
    late = queries.read_table(spark, opened, PENDING)
    numbers = F.expr(f"{_last(settings)} - start_us div {settings.slide_us} + 1")
    late = late.where(F.col("windows") == numbers).withColumn("seq", F.lit(None).cast("long"))
    found = unread(spark, opened, opened.groups).select(columns)
    for rows, reason in ((_in_open_windows(spark, settings, opened), OPEN), (late, UNCORRECTED)):
        found = found.unionByName(rows.withColumn("reason", F.lit(reason)).select(columns))
    return found


def _in_open_windows(
    spark: SparkSession, settings: WindowSettings, store: WindowStore
) -> DataFrame:
    """Return the rows that a query has accepted and whose last window has not closed."""
    noted = store.view.history
    files = []
    if noted is not None:
        history = locate(noted["address"])
        require_history(store.view, history)
        files = files_of(history)
    rows = queries.read_files(spark, files, pa.schema([*store.groups, *ROW]))
    last = queries.read_table(spark, store, "account").agg(F.max("seq").alias("last"))
    rows = rows.join(F.broadcast(last)).where("seq <= last")
    rows = rows.join(queries.read_table(spark, store, "rejected").select("seq"), "seq", "left_anti")
    rows = with_task(rows, settings.tasks)
    kinds = ("progress", "result")
    clocks = [queries.read_table(spark, store, kind).select(*store.by, "wm_us") for kind in kinds]
    clock = clocks[0].unionByName(clocks[1]).groupBy(*store.by).agg(F.max("wm_us").alias("wm_us"))
    end = F.expr(f"({_last(settings)}) * {settings.slide_us} + {settings.size_us}")
    on_calendar = F.col("event_time_us").between(-ALL_TIMES_US, ALL_TIMES_US)
    rows = rows.join(clock, [*store.by]).withColumn("end_us", F.when(on_calendar, end))
    if settings.dedup:  # for a while, a task knows the identities of rows that are answered
        known = rows.where(F.col("end_us") + settings.feedback > F.col("wm_us"))
        first = F.min_by(F.struct("seq", "key", "event_time_us", "end_us", "wm_us"), "seq")
        rows = known.groupBy(*store.by, "source_id").agg(first.alias("row")).select("*", "row.*")
    return rows.where("event_time_us < end_us and end_us > wm_us")


def _last(settings: WindowSettings) -> str:
    """Return the expression of the number of a row's last window."""
    slide = settings.slide_us
    return f"(event_time_us - pmod(event_time_us, {slide})) div {slide}"
