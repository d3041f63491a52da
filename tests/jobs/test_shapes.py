"""Facts that a plan tells about a job: what a later answer replaces, delays and lengths."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own habit)

from straggler.jobs.api import inputs_of
from straggler.jobs.check import begin
from straggler.jobs.running import Job
from straggler.strategies.examples import collect
from tests.jobs.variations import VARIATIONS

SCHEMA = "device string, at timestamp, watts double"
INPUT_COLUMNS = ("device", "at", "watts")
MINUTE_US = 60_000_000


def windows(readings: DataFrame) -> DataFrame:
    rows = readings.withWatermark("at", "1500 milliseconds")
    return rows.groupBy("device", F.window("at", "1 minute")).agg(F.sum("watts").alias("watts"))


def sessions(readings: DataFrame) -> DataFrame:
    rows = readings.withWatermark("at", "1 hour 30 minutes")
    return rows.groupBy(F.session_window("at", "5 minutes")).count()


def opening(readings: DataFrame) -> DataFrame:
    span = F.struct(F.col("at").alias("start"), F.lit(1).alias("end")).alias("span")
    return readings.groupBy(span).count().select("span.start", "count")


def by_functions(readings: DataFrame) -> DataFrame:
    first, second = (F.udf(each, "string") for each in (str.upper, str.lower))
    keys = first("device").alias("f"), second("device").alias("g")
    return readings.groupBy(*keys).count().select("f", "count")


def distinct(readings: DataFrame) -> DataFrame:
    return readings.sparkSession.sql(
        "SELECT DISTINCT device, watts FROM {readings}", readings=readings
    )


CASES: list[tuple[Callable[[DataFrame], DataFrame], tuple[str, tuple[str, ...] | None]]] = [
    (windows, ("update", ("device", "window"))),
    (lambda r: windows(r).select("device", "window", "watts"), ("update", ("device", "window"))),
    (lambda r: windows(r).select("device", "watts"), ("update", None)),
    (lambda r: windows(r).select("device", "window.end", "watts"), ("update", ("device", "end"))),
    (lambda r: windows(r).select("device", F.hour("window.end"), "watts"), ("update", None)),
    (lambda r: r.groupBy().count(), ("update", ())),
    (lambda r: r.groupBy(F.upper("device")).count(), ("update", ("upper(device)",))),
    (lambda r: windows(r).select("*", F.explode(F.array("watts"))), ("update", None)),
    (opening, ("update", None)),
    (by_functions, ("update", None)),
    (distinct, ("update", ("device", "watts"))),
    (lambda r: r.withWatermark("at", "1 day").dropDuplicates(["at"]), ("append", ())),
    (lambda r: r.where("watts > 5"), ("append", ())),
]


@pytest.mark.parametrize(("job", "expected"), CASES)
def test_the_plan_says_which_answers_a_later_one_replaces(
    spark: SparkSession,
    job: Callable[[DataFrame], DataFrame],
    expected: tuple[str, tuple[str, ...] | None],
) -> None:
    tried = Job(job, inputs_of(SCHEMA, "at"), is_named=False, mode="update")
    shape = begin(spark, tried).shape
    assert (shape.mode, shape.keys) == expected


@pytest.mark.parametrize(
    ("job", "lateness_us", "lengths_us"),
    [
        (windows, 1_500_000, (MINUTE_US,)),
        (sessions, 90 * MINUTE_US, (5 * MINUTE_US,)),
        (
            lambda r: r.where("at < DATE'2026-01-01' + INTERVAL 2 HOURS"),
            None,
            (120 * MINUTE_US,),
        ),
    ],
)
def test_the_plan_says_how_late_rows_may_be_and_how_long_windows_are(
    spark: SparkSession,
    job: Callable[[DataFrame], DataFrame],
    lateness_us: int | None,
    lengths_us: tuple[int, ...],
) -> None:
    tried = Job(job, inputs_of(SCHEMA, "at"), is_named=False)
    times = begin(spark, tried).shape.times
    assert times.lateness_us == (lateness_us,)
    assert times.lengths_us == lengths_us


def filtered(condition: str) -> Callable[[DataFrame], DataFrame]:
    return lambda r: r.withWatermark("at", "1 minute").where(condition)


@pytest.mark.parametrize(
    ("job", "is_filtered"),
    [
        (windows, False),
        (lambda r: windows(r.where("watts > 5")), True),
        (filtered("watts > 5"), True),  # Spark moves it
        (filtered("at > DATE'2026-01-01'"), False),
    ],
)
def test_the_plan_says_whether_a_filter_decides_what_moves_the_watermark(
    spark: SparkSession, job: Callable[[DataFrame], DataFrame], is_filtered: bool
) -> None:
    tried = Job(job, inputs_of(SCHEMA, "at"), is_named=False)
    assert begin(spark, tried).shape.is_filtered is is_filtered


@pytest.mark.parametrize(
    ("name", "lateness_us", "clocks"),
    [
        ("union", (MINUTE_US, MINUTE_US), (0, 0)),
        ("join, then windows", (2 * MINUTE_US, 3 * MINUTE_US), (0, 1)),
    ],
)
def test_inputs_below_one_watermark_have_one_clock(
    spark: SparkSession, name: str, lateness_us: tuple[int, ...], clocks: tuple[int, ...]
) -> None:
    entry = VARIATIONS[name]
    tried = Job(entry.job, inputs_of(entry.schema, entry.event_time), is_named=True)
    times = begin(spark, tried).shape.times
    assert (times.lateness_us, times.clocks) == (lateness_us, clocks)


@pytest.mark.parametrize(
    ("columns", "redelivered", "is_told"),
    [(["device", "at"], [], True), (["device", "at"], ["watts"], False), (None, [], False)],
)
def test_it_is_told_if_a_job_is_believed_what_identifies_a_row(
    spark: SparkSession, columns: list[str] | None, redelivered: list[str], is_told: bool
) -> None:
    def job(readings: DataFrame) -> DataFrame:
        return readings.withWatermark("at", "1 minute").dropDuplicates(columns)

    check = begin(spark, Job(job, inputs_of(SCHEMA, "at", redelivered=redelivered), is_named=False))
    assert {*check.job.inputs[0].identity} == {*(redelivered or columns or INPUT_COLUMNS)}
    assert not check.job.inputs[0].is_united
    told = ["unless redelivered= names" in each.sentence for each in check.remarks]
    assert told == ([True] if is_told else [])


ORDERS = st.permutations(INPUT_COLUMNS)


@pytest.mark.parametrize(
    ("orders", "keys"),
    collect(
        st.tuples(st.lists(ORDERS, min_size=1, max_size=3), st.sets(st.integers(0, 2), min_size=1)),
        6,
        1,
    ),
)
@pytest.mark.parametrize("function", ["dropDuplicates", "dropDuplicatesWithinWatermark"])
def test_renamed_columns_identify_a_row_as_they_were_called_before(
    spark: SparkSession, orders: list[Sequence[str]], keys: set[int], function: str
) -> None:
    def job(readings: DataFrame) -> DataFrame:
        renamed = readings.withWatermark("at", "1 minute")
        for order in orders:  # names change their places
            renamed = renamed.toDF(*order)
        dropped: DataFrame = getattr(renamed, function)([orders[-1][place] for place in keys])
        return dropped

    check = begin(spark, Job(job, inputs_of(SCHEMA, "at"), is_named=False))
    assert {*check.job.inputs[0].identity} == {INPUT_COLUMNS[place] for place in keys}


def test_columns_of_a_union_identify_the_rows_of_each_input(spark: SparkSession) -> None:
    def job(orders: DataFrame, payments: DataFrame) -> DataFrame:
        paid = payments.select(F.col("by").alias("id"), F.col("paid").alias("time"))
        events = orders.select("id", F.col("at").alias("time")).union(paid)
        return events.withWatermark("time", "1 minute").dropDuplicates()

    schemas = {"orders": "id int, at timestamp", "payments": "by int, paid timestamp, sum int"}
    inputs = inputs_of(schemas, {"orders": "at", "payments": "paid"})
    found = begin(spark, Job(job, inputs, is_named=True)).job.inputs
    assert [{*each.identity} for each in found] == [{"id", "at"}, {"by", "paid"}]
    assert all(each.is_united for each in found)


def test_a_computed_key_asks_for_the_columns_that_identify_a_row(spark: SparkSession) -> None:
    def job(readings: DataFrame) -> DataFrame:
        return readings.withColumn("key", F.sha2("device", 256)).dropDuplicates(["key"])

    check = begin(spark, Job(job, inputs_of(SCHEMA, "at"), is_named=False))
    assert not check.job.inputs[0].identity
    asked = [each.sentence for each in check.remarks if "redelivered=" in each.sentence]
    assert asked == [
        "the job drops duplicates by key, which no input has: "
        "name the columns that identify a row with redelivered="
    ]
