"""Plans of jobs: what is told and what is proved, besides what the gallery has."""

from collections.abc import Callable
from typing import TypeAlias

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own habit)

from straggler.jobs.plans import EXACT, STATE, remarks

Told: TypeAlias = list[tuple[bool, str]]
PROOF, NOTE, UNDECIDED = (True, STATE), (False, ""), (False, EXACT)
HOUR = "ad = clicked_ad AND clicked_at BETWEEN shown_at AND shown_at + INTERVAL 1 HOUR"


@pytest.fixture(name="readings")
def streaming_readings(spark: SparkSession) -> DataFrame:
    source = spark.readStream.format("rate").load()
    return source.selectExpr("timestamp AS at", "value AS device", "value AS watts")


def marked(frame: DataFrame) -> DataFrame:
    return frame.withWatermark("at", "10 seconds")


def minute(frame: DataFrame) -> DataFrame:
    return frame.groupBy("device", F.window("at", "1 minute")).agg(F.sum("watts").alias("watts"))


def chosen(expression: str) -> Callable[[DataFrame], DataFrame]:
    return lambda r: r.select(F.expr(expression))


def of_windows(aggregate: str) -> Callable[[DataFrame], DataFrame]:
    return lambda r: marked(r).groupBy(F.window("at", "1 minute")).agg(F.expr(aggregate))


def distinct(columns: str) -> Callable[[DataFrame], DataFrame]:
    query = f"SELECT DISTINCT {columns} FROM {{rows}}"
    return lambda r: r.sparkSession.sql(query, rows=marked(r))


def lucky(readings: DataFrame) -> DataFrame:
    return readings.select(F.udf(lambda x: x, "long").asNondeterministic()("watts"))


def plain(readings: DataFrame) -> DataFrame:
    return readings.select(F.udf(lambda x: x, "long")("watts"))


def totals(readings: DataFrame) -> DataFrame:
    return readings.groupBy("device").count()


def stamped(readings: DataFrame) -> DataFrame:
    return minute(marked(readings)).withColumn("loaded", F.now())


MOMENTS = ("current_timestamp", "now", "current_date", "unix_timestamp", "rand", "uuid")
ARRIVALS = ("first", "last", "collect_list", "collect_set", "any_value")
CASES: dict[str, tuple[Callable[[DataFrame], DataFrame], str, Told]] = {
    "windows without a watermark": (minute, "update", [PROOF]),
    "complete windows without a watermark": (minute, "complete", []),
    "totals of keys": (totals, "update", [NOTE]),
    "complete totals of keys": (totals, "complete", []),
    "totals of keys that Spark refuses": (totals, "append", [(True, EXACT)]),
    "duplicates forever": (lambda r: r.dropDuplicates(["device"]), "append", [PROOF]),
    "distinct rows and times": (distinct("device, at"), "append", []),
    "distinct rows": (distinct("device"), "append", [PROOF]),
    "function left to chance": (lucky, "append", [UNDECIDED]),
    "function": (plain, "append", []),
    "time of processing in an answer": (stamped, "append", [UNDECIDED]),
    "shuffled array": (chosen("shuffle(array(1, 2))"), "append", [UNDECIDED]),
    **{name: (chosen(f"{name}()"), "append", [UNDECIDED]) for name in MOMENTS},
    **{name: (of_windows(f"{name}(watts)"), "append", []) for name in ARRIVALS},
}


@pytest.mark.parametrize("name", CASES)
def test_a_plan_proves_or_tells_or_hears_nothing(readings: DataFrame, name: str) -> None:
    job, mode, expected = CASES[name]
    found = remarks(job(readings), mode=mode)
    assert [(each.is_broken, each.claim) for each in found] == expected
    if expected == [UNDECIDED]:
        assert found[0].sentence.endswith("() has another value in each run")


def test_a_plan_says_why_state_stays_forever(readings: DataFrame) -> None:
    (found,) = remarks(readings.dropDuplicates(["device"]))
    reason = "there is no watermark"
    assert found.sentence == f"dropDuplicates keeps every value of device forever: {reason}"
    (found,) = remarks(distinct("device")(readings))
    reason = "the column of the watermark is not among them"
    assert found.sentence == f"SELECT DISTINCT keeps every value of device forever: {reason}"


# ------------------------------------------------------------------------------------------ joins


@pytest.fixture(name="sides")
def two_sides(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    source = spark.readStream.format("rate").load()
    shown = source.selectExpr("value AS ad", "timestamp AS shown_at")
    clicked = source.selectExpr("value AS clicked_ad", "timestamp AS clicked_at")
    return shown, clicked.withWatermark("clicked_at", "3 hours")


def test_the_condition_of_a_join_bounds_its_state_even_if_it_follows(
    sides: tuple[DataFrame, DataFrame],
) -> None:
    pairs = sides[0].withWatermark("shown_at", "2 hours").join(sides[1], F.expr("ad = clicked_ad"))
    assert remarks(pairs.where(HOUR)) == ()
    found = remarks(pairs)
    assert [each.sentence.partition(":")[0] for each in found] == [
        "the join keeps all rows of its left side forever",
        "the join keeps all rows of its right side forever",
    ]
    assert "does not bound their times" in found[0].sentence


def test_a_table_beside_the_stream_is_told_and_a_constant_is_not(
    readings: DataFrame, tmp_path: object
) -> None:
    spark = readings.sparkSession
    constant = spark.createDataFrame([(1, "a")], "device long, name string")
    assert remarks(readings.join(constant, "device")) == ()
    constant.write.parquet(f"{tmp_path}/table")
    (found,) = remarks(readings.join(spark.read.parquet(f"{tmp_path}/table"), "device"))
    assert not found.is_broken
