"""Readers of a store: the answers of a windowed query, what it corrected, and what it refused."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from spark_impl.runtime import queries
from spark_impl.runtime.storage import Address
from spark_impl.windows.room import AnyRoom, WindowSettings
from spark_impl.windows.store import PENDING, WindowStore, load_store

FARTHEST_US = 291 * 366 * 86_400_000_000
"""Distance from 1970 up to which pandas, which counts nanoseconds in 64 bits, has timestamps."""
EXACT, PROVISIONAL, INCOMPLETE = "exact", "provisional", "incomplete"


def results(room: AnyRoom, spark: SparkSession, store: Address) -> DataFrame:
    """Return the current answers of the query that writes ``store``.

    The columns are:

    * the grouping columns, ``task``, ``key``, ``start_us`` and ``end_us`` of the window;
    * ``value``, ``n`` (number of tuples) and ``revision`` (0 is the stream's own answer);
    * ``n_rcv`` (tuples in the stream's answer) and ``coverage`` (``n_rcv`` over the tuples known
      by now);
    * ``required``, in room ``slack``: the coverage that was required when the window was judged,
      NULL until then. A first answer with less ``coverage`` had too few tuples, even if those that
      it lacked came too late to be counted as a miss;
    * ``n_refused`` (rows of the window that the query has refused, see :func:`rejected`);
    * ``state``: ``exact`` if the answer counts every row of the window that has arrived,
      ``provisional`` if a correction will count more, ``incomplete`` if rows were refused. A window
      of which every row was refused has neither ``value``, ``revision`` nor ``coverage``;
    * ``window``: ``start`` and ``end`` of the window as timestamps, as Spark's own ``window`` has
      them; NULL if it lies outside of the years 1678 to 2261, which pandas cannot hold.

    Incomplete micro-batches are omitted. Raises :class:`InputProblem` if ``store`` is not the store
    of a query.
    """
    config, opened = load_store(store, room)
    return current_answers(spark, room.settings(config), opened)


def corrections(room: AnyRoom, spark: SparkSession, store: Address) -> DataFrame:
    """Return a row for each correction of a task.

    The columns are:

    * the grouping columns, ``task``, ``batch`` and ``reason`` (``gamma``, ``age`` or ``flush``);
    * ``pairs`` and ``windows`` that it covered;
    * ``rows_needed``: rows of the history in these windows;
    * ``rows_read``: rows that were read to find them, then or before, for all tasks that the
      micro-batch corrected.

    Raises :class:`InputProblem` if ``store`` is not the store of a query.
    """
    _, opened = load_store(store, room)
    rows = queries.read_table(spark, opened, "correction")
    measures = ["pairs", "windows", "rows_needed", "rows_read"]
    return rows.select(*opened.by, "batch", "reason", *measures)


def late(room: AnyRoom, spark: SparkSession, store: Address) -> DataFrame:
    """Return a row for each (tuple, window) that was late for the first answers.

    The columns are:

    * the grouping columns, ``task``, ``key``, ``start_us`` and ``end_us`` of the window;
    * ``source_id`` and ``event_time_us`` of the tuple;
    * ``batch``, the micro-batch in which it came; the first one, if it came again after its
      identity was forgotten.

    Raises :class:`InputProblem` if ``store`` is not the store of a query.
    """
    config, opened = load_store(store, room)
    settings = room.settings(config)
    rows = queries.read_table(spark, opened, "late")
    pairs = _pairs(settings, rows).withColumn("end_us", F.col("start_us") + settings.size_us)
    pair = (*opened.by, "key", "start_us", "end_us", "source_id", "event_time_us")
    return pairs.groupBy(*pair).agg(F.min("batch").alias("batch"))


def rejected(room: AnyRoom, spark: SparkSession, store: Address) -> DataFrame:
    """Return a row for each arrival that the query has refused: it is in no answer.

    The columns are the grouping columns, ``task``, ``seq``, ``source_id``, ``key``,
    ``event_time_us``, ``value``, ``reason`` and ``batch``. Key and event time are NULL if one of
    them is missing in the history, ``value`` if anything is.

    Raises :class:`InputProblem` if ``store`` is not the store of a query.
    """
    _, opened = load_store(store, room)
    rows = queries.read_table(spark, opened, "rejected")
    columns = ["seq", "source_id", "key", "event_time_us", "value", "reason", "batch"]
    return rows.select(*opened.by, *columns)


def current_answers(
    spark: SparkSession,
    settings: WindowSettings,
    store: WindowStore,
    repeated: DataFrame | None = None,
) -> DataFrame:
    """Return the answers in a store, with the columns of :func:`results`.

    Arrivals that are ``repeated`` (:mod:`spark_impl.repeated`) count as refused.
    """
    window = [*store.by, "key", "start_us"]
    stream = queries.read_table(spark, store, "result")
    revised = queries.read_table(spark, store, "revision")
    answers = _latest_answers(store, stream, revised)
    answers = answers.join(_pending(spark, settings, store), window, "left")
    known = F.col("n") + F.coalesce("pending", F.lit(0))
    state = F.when(F.col("n_refused") > 0, INCOMPLETE).when(F.col("pending").isNull(), EXACT)
    counted = with_refused(spark, settings, store, answers, "full", repeated)
    required: tuple[str, ...] = ()
    if "judged" in store.kinds:
        judged = queries.read_table(spark, store, "judged")
        share = (F.col("n_req") / (F.col("n_rcv") + F.col("n_late"))).alias("required")
        counted = counted.join(judged.select(*window, share), window, "left")
        required = ("required",)
    return counted.withColumn("end_us", F.col("start_us") + settings.size_us).select(
        *window,
        "end_us",
        "value",
        F.coalesce("n", F.lit(0)).alias("n"),
        "revision",
        F.coalesce("n_rcv", F.lit(0)).alias("n_rcv"),
        F.try_divide(F.coalesce("n_rcv", F.lit(0)), known).alias("coverage"),
        *required,
        "n_refused",
        state.otherwise(PROVISIONAL).alias("state"),
        window_struct().alias("window"),
    )


def with_refused(
    spark: SparkSession,
    settings: WindowSettings,
    store: WindowStore,
    answers: DataFrame,
    how: str,
    repeated: DataFrame | None = None,
) -> DataFrame:
    """Join answers with the number of refused and repeated rows of their windows, ``n_refused``."""
    if repeated is None and not store.view.of("rejected"):  # the usual case: nothing to read
        return answers.withColumn("n_refused", F.lit(0).cast("long"))
    row = [*store.by, "key", "event_time_us"]
    rows = queries.read_table(spark, store, "rejected").where("event_time_us IS NOT NULL")
    rows = rows.select(*row)
    if repeated is not None:
        rows = rows.unionByName(repeated.select(*row))
    refused = count_refused(rows, settings, store.by)
    joined = answers.join(refused, [*store.by, "key", "start_us"], how)
    return joined.withColumn("n_refused", F.coalesce("n_refused", F.lit(0)))


def count_refused(rows: DataFrame, settings: WindowSettings, by: Sequence[str]) -> DataFrame:
    """Return the number of some refused rows, ``n_refused``, in each of their windows."""
    size, slide = settings.size_us, settings.slide_us
    first = f"(event_time_us - {size} - pmod(event_time_us - {size}, {slide})) div {slide} + 1"
    until = f"(event_time_us - pmod(event_time_us, {slide})) div {slide}"
    starts = F.expr(f"transform(sequence({first}, {until}), j -> j * {slide})")
    in_a_window = F.expr(f"{first} <= {until}")
    window = [*by, "key", "start_us"]
    return (
        rows.where(in_a_window)
        .select(*by, "key", F.explode(starts).alias("start_us"))
        .groupBy(*window)
        .agg(F.count("*").alias("n_refused"))
    )


def window_struct() -> Column:
    """Return the window of a row as a struct of two timestamps."""
    ends = F.struct(*(F.timestamp_micros(f"{end}_us").alias(end) for end in ("start", "end")))
    is_held = (F.col("start_us") >= -FARTHEST_US) & (F.col("end_us") <= FARTHEST_US)
    return F.when(is_held, ends)


def all_answers(store: WindowStore, stream: DataFrame, revised: DataFrame) -> DataFrame:
    """Return first answers, as revision 0, and revisions."""
    columns = [*store.by, "key", "start_us", "value", "n", "revision"]
    first = stream.withColumn("n", F.col("n_rcv")).withColumn("revision", F.lit(0))
    every = first.select(*columns).unionByName(revised.select(*columns))
    return every.withColumn("revision", F.col("revision").cast("int"))


def _latest_answers(store: WindowStore, stream: DataFrame, revised: DataFrame) -> DataFrame:
    """Return the latest answer of every window among first answers and revisions.

    ``n_rcv`` is NULL if the first answer is not among them.
    """
    window = [*store.by, "key", "start_us"]
    latest = F.max_by(F.struct("value", "n", "revision"), "revision").alias("latest")
    n_rcv = F.max(F.when(F.col("revision") == 0, F.col("n"))).alias("n_rcv")
    answers = all_answers(store, stream, revised).groupBy(*window).agg(latest, n_rcv)
    return answers.select(*window, "latest.value", "latest.n", "latest.revision", "n_rcv")


def _pending(spark: SparkSession, settings: WindowSettings, store: WindowStore) -> DataFrame:
    """Return the number of pending pairs of every window with some.

    Late pairs of a query without corrections are pending for ever.
    """
    pairs = queries.read_table(spark, store, PENDING if settings.corrects else "late")
    window = [*store.by, "key", "start_us"]
    # A redelivery whose identity was forgotten makes a pair late once more.
    tuples = F.count_distinct("source_id")
    return _pairs(settings, pairs).groupBy(*window).agg(tuples.alias("pending"))


def _pairs(settings: WindowSettings, runs: DataFrame) -> DataFrame:
    """Return a row for each window of runs of windows."""
    after_first = F.explode(F.sequence(F.lit(0), F.col("windows") - 1))
    start = F.col("start_us") + F.col("step") * settings.slide_us
    return runs.withColumn("step", after_first).withColumn("start_us", start)
