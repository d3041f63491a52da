"""Plans of jobs: what is told, what is proved to be wrong, and what nobody complains about."""

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own habit)

from straggler.jobs.plans import EXACT, STATE, Remark, remarks


@pytest.fixture(name="readings")
def streaming_readings(spark: SparkSession) -> DataFrame:
    source = spark.readStream.format("rate").load()
    return source.select(
        F.col("timestamp").alias("at"),
        F.col("value").alias("device"),
        F.col("value").alias("watts"),
    )


def minute(frame: DataFrame) -> DataFrame:
    return frame.groupBy("device", F.window("at", "1 minute")).agg(F.sum("watts").alias("watts"))


def told(frame: DataFrame, mode: str = "append") -> list[tuple[bool, str]]:
    return [(each.is_broken, each.claim) for each in remarks(frame, mode=mode)]


def only(frame: DataFrame, mode: str = "append") -> Remark:
    (found,) = remarks(frame, mode=mode)
    return found


def test_windows_without_a_watermark_never_close(readings: DataFrame) -> None:
    assert told(minute(readings), "update") == [(True, STATE)]
    assert told(minute(readings), "complete") == []


def test_totals_of_keys_are_told_and_not_blamed(readings: DataFrame) -> None:
    assert told(readings.groupBy("device").count(), "update") == [(False, "")]
    assert told(readings.groupBy("device").count(), "complete") == []


def test_spark_refuses_totals_of_keys_in_append_mode(readings: DataFrame) -> None:
    found = only(readings.groupBy("device").count())
    assert (found.is_broken, found.claim) == (True, EXACT)
    assert found.sentence.startswith("Spark refuses the query: ")


def test_duplicates_without_a_watermark_are_remembered_forever(readings: DataFrame) -> None:
    found = only(readings.dropDuplicates(["device"]))
    assert (found.is_broken, found.claim) == (True, STATE)
    reason = "there is no watermark"
    assert found.sentence == f"dropDuplicates keeps every value of device forever: {reason}"


def test_a_select_distinct_without_the_time_keeps_every_row(readings: DataFrame) -> None:
    rows = readings.withWatermark("at", "10 seconds")

    def distinct(columns: str) -> DataFrame:
        return rows.sparkSession.sql(f"SELECT DISTINCT {columns} FROM {{rows}}", rows=rows)

    assert remarks(distinct("device, at")) == ()
    found = only(distinct("device"))
    assert (found.is_broken, found.claim) == (True, STATE)
    reason = "the column of the watermark is not among them"
    assert found.sentence == f"SELECT DISTINCT keeps every value of device forever: {reason}"


# ------------------------------------------------------------------------------------------ joins


@pytest.fixture(name="sides")
def two_sides(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    source = spark.readStream.format("rate").load()
    shown = source.selectExpr("value AS ad", "timestamp AS shown_at")
    clicked = source.selectExpr("value AS clicked_ad", "timestamp AS clicked_at")
    return shown, clicked


HOUR = "ad = clicked_ad AND clicked_at BETWEEN shown_at AND shown_at + INTERVAL 1 HOUR"
Sides = tuple[DataFrame, DataFrame]


def test_a_range_of_time_may_follow_the_join(sides: Sides) -> None:
    shown = sides[0].withWatermark("shown_at", "2 hours")
    clicked = sides[1].withWatermark("clicked_at", "3 hours")
    assert remarks(shown.join(clicked, F.expr("ad = clicked_ad")).where(HOUR)) == ()


def test_a_join_without_a_range_of_time_keeps_rows_forever(sides: Sides) -> None:
    shown = sides[0].withWatermark("shown_at", "2 hours")
    clicked = sides[1].withWatermark("clicked_at", "3 hours")
    found = remarks(shown.join(clicked, F.expr("ad = clicked_ad")))
    assert [each.sentence.partition(":")[0] for each in found] == [
        "the join keeps all rows of its left side forever",
        "the join keeps all rows of its right side forever",
    ]
    assert "does not bound their times" in found[0].sentence


def test_a_filter_before_one_of_two_watermarks_is_told(sides: Sides) -> None:
    shown = sides[0].where("ad > 3").withWatermark("shown_at", "2 hours")
    clicked = sides[1].withWatermark("clicked_at", "3 hours")
    assert told(shown.join(clicked, F.expr(HOUR))) == [(False, "")]


def test_a_table_beside_the_stream_is_told_and_a_constant_is_not(
    sides: Sides, spark: SparkSession, tmp_path: object
) -> None:
    constant = spark.createDataFrame([(1, "a")], "ad long, name string")
    assert remarks(sides[0].join(constant, "ad")) == ()
    constant.write.parquet(f"{tmp_path}/table")
    assert told(sides[0].join(spark.read.parquet(f"{tmp_path}/table"), "ad")) == [(False, "")]


# --------------------------------------------------------------------------------- clock and chance


@pytest.mark.parametrize(
    "expression",
    [
        "current_timestamp()",
        "now()",
        "current_date()",
        "unix_timestamp()",
        "rand()",
        "uuid()",
        "shuffle(array(1, 2))",
    ],
)
def test_a_function_of_the_moment_cannot_be_judged(readings: DataFrame, expression: str) -> None:
    found = only(readings.withColumn("x", F.expr(expression)))
    assert (found.is_broken, found.claim) == (False, EXACT)
    assert found.sentence.endswith("has another value in each run")


def test_a_python_function_that_says_so_cannot_be_judged(readings: DataFrame) -> None:
    lucky = F.udf(lambda x: x, "long").asNondeterministic()
    assert told(readings.withColumn("x", lucky("device"))) == [(False, EXACT)]
    plain = F.udf(lambda x: x, "long")
    assert told(readings.withColumn("x", plain("device"))) == []


def test_a_column_of_the_time_of_processing_is_no_mistake(readings: DataFrame) -> None:
    stamped = minute(readings.withWatermark("at", "1 minute")).withColumn("loaded", F.now())
    assert told(stamped) == [(False, EXACT)]


@pytest.mark.parametrize("function", ["first", "last", "collect_list", "collect_set", "any_value"])
def test_an_aggregate_of_the_order_of_arrival_is_told(readings: DataFrame, function: str) -> None:
    windows = readings.withWatermark("at", "1 minute").groupBy(F.window("at", "1 minute"))
    assert told(windows.agg(F.expr(f"{function}(watts)"))) == [(False, "")]


# ------------------------------------------------------------------------------------ update mode


def test_update_mode_without_a_key_in_its_answer_is_told(readings: DataFrame) -> None:
    windows = minute(readings.withWatermark("at", "10 seconds"))
    assert told(windows.select("device", "watts"), "update") == [(False, "")]
    assert told(windows.select("device", "window.start", "watts"), "update") == []
    assert told(windows, "update") == []
    assert told(windows.select("device", "watts"), "append") == []
