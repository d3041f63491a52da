"""Several aggregates of several columns in one expression: answers, failures, folders, refusals."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

import straggler
from model.vocabulary import SlackConfig, WatermarkConfig
from spark_impl.aggregates import Aggregation, avg, count, max_, median, min_, quantile, sum_
from spark_impl.landed import LandedQueries
from spark_impl.over import Windows
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.slack.query import SLACK
from spark_impl.windows.history import check_source
from spark_impl.windows.store import load_store, open_store

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


def files_in(folder: Path) -> dict[str, int]:
    """Return all files of a folder, with their modification times."""
    return {str(each): each.stat().st_mtime_ns for each in folder.rglob("*") if each.is_file()}


def test_each_answer_is_that_of_the_aggregate_alone(
    windows: Callable[[], Windows], tmp_path: Path
) -> None:
    add(tmp_path, 1, FIRST)
    add(tmp_path, 2, SECOND)
    together = windows().agg(sum_("watts"), avg("celsius").alias("warmth"), count())
    query = together.store_in(tmp_path / "kept")
    query.flush()
    found = query.results()
    assert found.columns[-4:] == ["window", "sum_watts", "warmth", "count"]
    begun = windows()
    for name, alone in (
        ("sum_watts", begun.sum("watts")),
        ("warmth", begun.avg("celsius")),
        ("count", begun.count()),
    ):
        single = alone.store_in(tmp_path / name)
        single.flush()
        assert answers(found, name) == answers(single.results())
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


def test_a_folder_takes_more_aggregates_of_its_columns_and_no_others(
    windows: Callable[[], Windows], tmp_path: Path
) -> None:
    add(tmp_path, 1, FIRST)
    windows().agg(sum_("watts")).store_in(tmp_path / "kept").run_available()
    add(tmp_path, 2, SECOND)
    later = windows().agg(count(), median("watts")).store_in(tmp_path / "kept")
    later.flush()
    every = windows().agg(count(), sum_("watts"), median("watts")).store_in(tmp_path / "kept")
    rows = every.results()
    assert answers(rows, "count")["a", 0][:2] == (2.0, 2)
    assert answers(rows, "median_watts")["a", 0][:2] == (1.0, 2)
    assert ("a", 30) not in answers(rows, "sum_watts"), "left out, so it waits"
    every.flush()
    assert answers(every.results(), "sum_watts")["a", 0][:2] == (9.0, 2)

    names = [*every.queries]
    kept = tmp_path / "kept"
    places = [(kept / "answers" / each, kept / "checkpoints" / "answers" / each) for each in names]
    assert straggler.drop_before(kept / "history", 1, readers=places) == 1
    before = files_in(kept)
    refused: list[tuple[Callable[[], LandedQueries], str]] = [
        (
            lambda: windows().agg(sum_("watts"), avg("celsius")).store_in(tmp_path / "kept"),
            r"history was landed with value = \['watts'\], not \['celsius', 'watts'\]",
        ),
        (
            lambda: (
                windows()
                .agg(max_("watts"), avg("watts").alias("sum_watts"))
                .store_in(tmp_path / "kept")
            ),
            "answers/sum_watts belongs to another query: its aggregate is 'sum', not 'avg'",
        ),
        (
            lambda: cast(LandedQueries, windows().sum("watts").store_in(tmp_path / "kept")),
            r"history was landed with value = \['watts'\], not 'watts'",
        ),
    ]
    for attempt, sentence in refused:
        with pytest.raises(InputProblem, match=sentence):
            attempt()
    assert files_in(tmp_path / "kept") == before


def test_settings_of_an_aggregate_are_its_own() -> None:
    stream = straggler.over(cast(DataFrame, None), event_time="at")
    chosen = stream.window("10 seconds", eps=0.1).agg(
        sum_("w"), avg("w", eps=0.2), min_("w", lambda_thr=0.9), quantile("w", 0.9)
    )
    expected = SlackConfig(10_000_000, 10_000_000, eps=0.1)
    assert chosen.configs["sum_w"] == expected
    configs = [cast(SlackConfig, each) for each in chosen.configs.values()]
    assert [each.aggregate for each in configs] == ["sum", "avg", "min", "quantile"]
    assert [each.eps for each in configs] == [0.1, 0.2, 0.1, 0.1]
    assert (configs[2].lambda_thr, configs[3].q) == (0.9, 0.9)
    bounded = stream.window("10 seconds", max_wait="1 minute").agg(count())
    assert isinstance(bounded.configs["count"], WatermarkConfig)
    assert bounded.values == {"count": None}


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


def test_a_query_names_the_column_of_its_values(
    windows: Callable[[], Windows], tmp_path: Path
) -> None:
    windows().agg(sum_("watts")).store_in(tmp_path / "kept")
    history = locate(tmp_path / "kept" / "history")
    assert check_source(history, (), (), "value_watts") == ()
    assert check_source(history, (), (), None) == ()
    for value, sentence in {
        "value_volts": "has no column 'value_volts'; its columns are .*, value_watts, arrival_us",
        "value": "has no column 'value'",
        "seq": "value is 'seq', which is a column of another meaning",
    }.items():
        with pytest.raises(InputProblem, match=sentence):
            check_source(history, (), (), value)


def test_a_store_belongs_to_one_column(tmp_path: Path) -> None:
    config = SlackConfig(10, 10)
    open_store(tmp_path / "s", SLACK, config, ())
    assert load_store(tmp_path / "s", SLACK)[1].value == "value"
    with pytest.raises(InputProblem, match="its value is 'value', not 'value_watts'"):
        open_store(tmp_path / "s", SLACK, config, (), "value_watts")
