"""Windows over a streaming DataFrame in one expression, with one aggregate or several."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

import straggler
from spark_impl.aggregates import Aggregation, avg, count, median, min_, sum_
from spark_impl.over import Stream, Windows
from spark_impl.runtime.storage import InputProblem

ROWS = [("a", 3, 1.0), ("a", 12, 2.0), ("b", 1, 4.0)]


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Callable[[], Stream]:
    """Return a function that begins a query over a folder of CSV files."""
    (tmp_path / "in").mkdir()
    schema = "device string, at string, watts string"

    def begin() -> Stream:
        lines = spark.readStream.schema(schema).csv(str(tmp_path / "in"))
        return straggler.over(lines, event_time="at", key="device", time_unit="s")

    return begin


def add_rows(folder: Path, name: str, rows: Sequence[tuple[str, int, float]]) -> None:
    """Write a file of the source."""
    text = "\n".join(",".join(map(str, row)) for row in rows)
    (folder / "in" / name).write_text(text, encoding="utf-8")


def values(found: DataFrame) -> dict[tuple[str, int], float]:
    """Return the value of each window, by its key and its start in seconds."""
    return {(row.key, row.start_us // 1_000_000): row.value for row in found.collect()}


def test_a_sum_over_a_stream_is_stored_and_resumed(
    source: Callable[[], Stream], tmp_path: Path
) -> None:
    add_rows(tmp_path, "1.csv", ROWS)
    query = source().window("10 seconds").sum("watts").store_in(tmp_path / "kept")
    query.run_available()
    assert query.progress().batch >= 0
    add_rows(tmp_path, "2.csv", [("a", 4, 8.0)])
    again = source().window("10 seconds").sum("watts").store_in(tmp_path / "kept")
    again.flush()
    assert values(again.results()) == {("a", 0): 9.0, ("a", 10): 2.0, ("b", 0): 4.0}
    folders = sorted(path.name for path in (tmp_path / "kept").iterdir() if path.is_dir())
    assert folders == ["answers", "checkpoints", "history"]
    with pytest.raises(straggler.InputProblem, match="its size_us is 10000000, not 5000000"):
        source().window("5 seconds").sum("watts").store_in(tmp_path / "kept")


@pytest.mark.long
def test_a_longest_wait_makes_it_a_query_of_room_watermark(
    source: Callable[[], Stream], tmp_path: Path
) -> None:
    add_rows(tmp_path, "1.csv", ROWS)
    windows = source().window("10 seconds", "5 seconds", max_wait="1 minute", corrections=True)
    query = windows.count().store_in(tmp_path / "kept", checkpoint=tmp_path / "spark")
    running = query.start()
    try:
        for each in running:
            each.processAllAvailable()
        assert all(each.isActive for each in running)
    finally:
        for each in running:
            each.stop()
    query.flush()
    assert sum(values(query.results()).values()) == 6
    assert not (tmp_path / "kept" / "checkpoints").exists()


def test_a_mistake_is_one_sentence_and_writes_nothing(
    spark: SparkSession, source: Callable[[], Stream], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="size is 10; it must be a text such as '6 hours'"):
        source().window(10).sum("watts")
    with pytest.raises(ValueError, match="unknown setting 'k'"):
        source().window("10 seconds", k=5).sum("watts")
    with pytest.raises(straggler.InputProblem, match="volts"):
        source().window("10 seconds").sum("volts").store_in(tmp_path / "kept")
    table = spark.createDataFrame([(1, 1.0)], "at long, watts double")
    begun = straggler.over(table, event_time="at").window("10 seconds").sum("watts")
    with pytest.raises(straggler.InputProblem, match=r"read it with spark\.readStream"):
        begun.store_in(tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


# ----------------------------------------------------------------------------- several aggregates


ANSWER = ("value", "n", "revision", "n_rcv", "coverage", "state", "assumption_status")
FIRST = ["a,3,1,20", "a,12,x,21", "b,1,4,", "b,2,NaN,7", "a,31,2,19"]
SECOND = ["a,4,8,30", ",4,8,30", "b,5,,5", "a,14,8,x"]


@pytest.fixture
def windows(spark: SparkSession, tmp_path: Path) -> Callable[[], Windows]:
    """Return a function that begins a query over a folder of CSV files."""
    (tmp_path / "in").mkdir()
    schema = "device string, at string, watts string, celsius string"

    def begin() -> Windows:
        source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        lines = source.csv(str(tmp_path / "in"))
        stream = straggler.over(lines, event_time="at", key="device", time_unit="s")
        return stream.window("10 seconds", control="fixed", fixed_slack_us=5_000_000)

    return begin


def add(folder: Path, number: int, rows: Sequence[str]) -> None:
    """Write a file of the source."""
    path = folder / "in" / f"{number}.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    os.utime(path, (1_000 + number, 1_000 + number))


def answers(found: DataFrame, name: str = "") -> dict[tuple[str, int], tuple[Any, ...]]:
    """Return the answers by key and start (s), of one aggregate if its name is given."""
    columns = [F.col(f"{name}.{each}" if name else each) for each in ANSWER]
    rows = found.where(F.col(name).isNotNull()) if name else found
    second = (F.col("start_us") / 1_000_000).cast("int")
    return {
        (key, at): tuple(row) for key, at, *row in rows.select("key", second, *columns).collect()
    }


def test_answers_of_several_aggregates_by_hand(
    windows: Callable[[], Windows], tmp_path: Path
) -> None:
    add(tmp_path, 1, FIRST)
    add(tmp_path, 2, SECOND)
    together = windows().agg(sum_("watts"), avg("celsius").alias("warmth"), count())
    query = together.store_in(tmp_path / "kept")
    query.flush()
    found = query.results()
    assert found.columns[-4:] == ["window", "sum_watts", "warmth", "count"]
    values = {key: row[0] for key, row in answers(found, "sum_watts").items()}
    assert values == {("a", 0): 9.0, ("a", 10): 8.0, ("a", 30): 2.0, ("b", 0): 4.0}
    assert answers(found, "warmth")["a", 0][:4] == (25.0, 2, 1, 1)  # the late one was corrected
    assert answers(found, "count")["b", 0][:2] == (3.0, 3)

    bad = query.landing.rejected().collect()
    assert sorted((row.column, row.text or "", row.reason) for row in bad) == [
        ("celsius", "", "is missing"),
        ("celsius", "x", "is not a number"),
        ("device", "", "is missing"),
        ("watts", "", "is missing"),
        ("watts", "x", "is not a number"),
    ]
    assert query.landing.counts() == (8, 5)
    (path, *_) = sorted((tmp_path / "kept" / "history").glob("*.parquet"))
    stored = [name for name in pq.read_schema(path).names if name.startswith("value")]
    assert stored == ["value_celsius", "value_watts"]
    assert {name: each.batch for name, each in query.progress().items()} == dict.fromkeys(
        query.queries, 2
    )


def test_one_query_fails_and_the_others_go_on(
    windows: Callable[[], Windows], tmp_path: Path
) -> None:
    def fail(answers: DataFrame, batch: int) -> None:
        raise RuntimeError(f"no room for batch {batch}")

    seen: list[int] = []
    add(tmp_path, 1, FIRST)
    together = windows().agg(sum_("watts"), avg("watts"))
    sinks = {"sum_watts": fail, "avg_watts": lambda _, batch: seen.append(batch)}
    queries = together.store_in(tmp_path / "kept", sinks=sinks)
    queries.landing.run_available()  # or the first batch of a query may be empty
    running = queries.start()
    try:
        landing, failing, going = running
        with pytest.raises(Exception, match="no room for batch 0"):
            failing.processAllAvailable()
        add(tmp_path, 2, SECOND)
        landing.processAllAvailable()
        going.processAllAvailable()
        assert [each.isActive for each in running] == [True, False, True]
    finally:
        for each in running:
            each.stop()
    assert seen == [0, 1]
    again = windows().agg(sum_("watts"), avg("watts")).store_in(tmp_path / "kept")
    again.flush()
    sums, means = (answers(again.results(), name) for name in ("sum_watts", "avg_watts"))
    assert {key: row[1:] for key, row in sums.items()} == {k: row[1:] for k, row in means.items()}
    assert {key: row[0] / row[1] for key, row in sums.items()} == {
        key: row[0] for key, row in means.items()
    }
    assert sums["a", 0][0] == 9.0


@pytest.mark.long
def test_a_folder_takes_more_aggregates_of_its_columns(
    windows: Callable[[], Windows], tmp_path: Path
) -> None:
    add(tmp_path, 1, FIRST)
    windows().agg(sum_("watts")).store_in(tmp_path / "kept").run_available()
    add(tmp_path, 2, SECOND)
    windows().agg(median("watts")).store_in(tmp_path / "kept").flush()
    every = windows().agg(sum_("watts"), median("watts")).store_in(tmp_path / "kept")
    rows = every.results()
    assert answers(rows, "median_watts")["a", 0][:2] == (1.0, 2)
    assert ("a", 30) not in answers(rows, "sum_watts"), "left out, so it waits"
    every.flush()
    assert answers(every.results(), "sum_watts")["a", 0][:2] == (9.0, 2)


@pytest.mark.parametrize(
    ("aggregations", "sentence"),
    [
        ((), "agg() has no aggregate; it needs at least one, such as sum_('watts')"),
        (
            (sum_("w"), sum_("w")),
            "'sum_w'; its name must differ from those of the other aggregates",
        ),
        ((sum_("w"), avg("w").alias("SUM_W")), "must differ from those of the other aggregates"),
        ((sum_("w/../x"),), "'sum_w/../x'; its name must consist of letters, digits and _: choose"),
        ((sum_("w").alias("window"),), "must differ from the other columns of the results"),
        ((sum_("w").alias("site"),), "must differ from the other columns of the results"),
        ((min_("w"),), "aggregate 'min_w': "),
        ((sum_("w", k=5),), "aggregate 'sum_w': unknown setting 'k'"),
        (
            (sum_("w"), avg("w", tasks=2)),
            "aggregate 'avg_w' sets tasks; windows, tasks and keyed belong in window()",
        ),
        ((sum_("w", size="5 seconds"),), "aggregate 'sum_w' sets size; windows"),
        ((sum_("w", aggregate="avg"),), "aggregate 'sum_w' sets aggregate; it is"),
        (("w",), "agg() takes aggregates such as sum_('watts'), not 'w'"),
    ],
)
def test_aggregates_that_cannot_be_together_are_refused(
    aggregations: Sequence[Aggregation], sentence: str
) -> None:
    stream = straggler.over(cast(DataFrame, None), event_time="at", group_columns=["site"])
    with pytest.raises((TypeError, ValueError)) as problem:
        stream.window("10 seconds").agg(*aggregations)
    assert sentence in str(problem.value)
    assert "\n" not in str(problem.value)


def test_columns_and_sinks_that_do_not_fit_are_refused(
    spark: SparkSession, windows: Callable[[], Windows], tmp_path: Path
) -> None:
    begun = windows()
    with pytest.raises(InputProblem, match="the stream has no column 'volts'"):
        begun.agg(sum_("watts"), sum_("volts")).store_in(tmp_path / "kept")
    with pytest.raises(ValueError, match="sinks has 'sum_volts'; the aggregates are sum_watts"):
        begun.agg(sum_("watts")).store_in(
            tmp_path / "kept", sinks={"sum_volts": lambda rows, batch: None}
        )
    rows = begun.stream.rows.withColumnRenamed("device", "value_watts")
    named = straggler.over(rows, event_time="at", group_columns=["value_watts"], time_unit="s")
    with pytest.raises(InputProblem, match="cannot be called 'value_watts', which is taken"):
        named.window("10 seconds").agg(sum_("watts")).store_in(tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
