"""Windows over a streaming DataFrame in one expression: aggregates, refusals, bad rows."""

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

import straggler
from model.vocabulary import WatermarkConfig, stable_hash
from spark_impl.aggregates import avg, count, median, sum_
from spark_impl.over import Aggregates, Stream, Windows
from spark_impl.retention import drop_before
from spark_impl.runtime.accounts import Ledger
from spark_impl.runtime.failures import QueryProblem
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.storage import InputProblem
from spark_impl.watermark import WatermarkQuery
from tests.spark_impl.test_landing import landing_of

COLUMNS = "device string, at string, watts string, celsius string"
ANSWER = ("value", "n", "revision", "n_rcv", "coverage", "state")
FIRST = ["a,3,1,20", "a,12,x,21", "b,1,4,", "b,2,NaN,7", "a,31,2,19"]
SECOND = ["a,4,8,30", ",4,8,30", "b,5,,5", "a,14,8,x"]


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Callable[[], Stream]:
    """Return a function that begins a query over a folder of CSV files."""
    (tmp_path / "in").mkdir()

    def begin(columns: str = COLUMNS, **named: Any) -> Stream:
        lines = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
        wanted = {"event_time": "at", "key": "device", "time_unit": "s", **named}
        return straggler.over(lines.csv(str(tmp_path / "in")), **wanted)

    return begin


@pytest.fixture
def windows(source: Callable[[], Stream]) -> Callable[[], Windows]:
    """Return a function that begins windows which wait for five seconds."""
    return lambda: source().window("10 seconds", control="fixed", fixed_slack_us=5_000_000)


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


def test_one_aggregate_of_several_fails_and_all_are_exact_in_the_end(
    source: Callable[[], Stream], windows: Callable[[], Windows], tmp_path: Path
) -> None:
    def fail(answers: DataFrame, batch: int) -> None:
        raise RuntimeError(f"no room for batch {batch}")

    def asked() -> Aggregates:
        return windows().agg(sum_("watts"), avg("celsius").alias("warmth"), count())

    seen: list[int] = []
    add(tmp_path, 1, FIRST)
    sinks = {"sum_watts": fail, "warmth": lambda _, batch: seen.append(batch)}
    queries = asked().store_in(tmp_path / "kept", sinks=sinks)
    queries.landing.run_available()  # or the first batch of a query may be empty
    running = queries.start(timedelta())
    try:
        landing, failing, *going = running
        with pytest.raises(Exception, match="no room for batch 0"):
            failing.processAllAvailable()
        add(tmp_path, 2, SECOND)
        for each in (landing, *going):
            each.processAllAvailable()
        assert [each.isActive for each in running] == [True, False, True, True]
    finally:
        for each in running:
            each.stop()
    assert seen == [0, 1]
    query = asked().store_in(tmp_path / "kept")
    query.flush()
    found = query.results()
    assert found.columns[-4:] == ["window", "sum_watts", "warmth", "count"]
    values = {key: row[0] for key, row in answers(found, "sum_watts").items()}
    assert values == {("a", 0): 9.0, ("a", 10): 8.0, ("a", 30): 2.0, ("b", 0): 4.0}
    assert answers(found, "warmth")["a", 0][:4] == (25.0, 2, 1, 1)  # the late one was corrected
    assert answers(found, "count")["b", 0][:2] == (3.0, 3)
    (path, *_) = sorted((tmp_path / "kept" / "history").glob("*.parquet"))
    stored = [name for name in pq.read_schema(path).names if name.startswith("value")]
    assert stored == ["value_celsius", "value_watts"]
    assert {name: each.batch for name, each in query.progress().items()} == dict.fromkeys(
        query.queries, 2
    )
    same = sum_("watts"), avg("celsius").alias("warmth")
    other = source().window("20 seconds").agg(count().alias("a"), *same)
    with pytest.raises(InputProblem, match="answers/sum_watts belongs to another query"):
        other.store_in(tmp_path / "kept")
    assert not (tmp_path / "kept" / "answers" / "a").exists(), "nothing is made before a refusal"


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


def test_a_mistake_is_one_sentence_and_writes_nothing(
    source: Callable[..., Stream], tmp_path: Path
) -> None:
    begun = source().window("10 seconds")
    kept = tmp_path / "kept"
    taken = source(
        "value_watts string, at string, watts string", key=None, group_columns=["value_watts"]
    )
    for error, sentence, does in (
        (
            ValueError,
            "size is 10; it must be a text such as '6 hours'",
            lambda: source().window(10).sum("watts"),  # type: ignore[arg-type]  # a test of that
        ),
        (
            TypeError,
            r"takes aggregates such as sum_\(.watts.\), not .watts.",
            lambda: begun.agg("watts"),  # type: ignore[arg-type]  # that is the mistake
        ),
        (
            ValueError,
            "sinks has 'sum_volts'; the aggregates are sum_watts",
            lambda: begun.agg(sum_("watts")).store_in(kept, sinks={"sum_volts": print}),
        ),
        (
            InputProblem,
            "cannot be called 'value_watts', which is taken",
            lambda: taken.window("10 seconds").agg(sum_("watts")).store_in(kept),
        ),
    ):
        with pytest.raises(error, match=sentence):
            does()
    assert not kept.exists()


# ----------------------------------------------------------------- identities with other content


T = 1_714_521_600  # 2024-05-01 00:00 UTC


KNOWN = f"07,k,{T + 1},100"
TWIN = str(stable_hash("07"))
"""Text of an identity that has the number of the identity 07."""
KINDS = [
    (f"01,a,{T + 1},100", f"01,a,{T + 3},999", "comes again with another event time"),
    (f"02,b,{T + 1},100", f"02,b,{T + 13},100", "comes again with another event time"),
    (f"03,c,{T + 1},100", f"03,d,{T + 1},100", "comes again with another key"),
    (f"04,e,{T + 1},100", f"04,e,{T + 1},999", "comes again with another value"),
    (KNOWN, f"{TWIN},k,{T + 1},100", "has the number of another identity, 07"),
]
"""A delivery, another one with other content, and the reason for which that is refused."""


def test_limits_are_asked_by_the_landing_and_by_the_query(
    source: Callable[..., Stream], tmp_path: Path
) -> None:
    kept, (row, *rows) = tmp_path / "kept", ["a,3,1", "a,4,x", "a,?,2", "a,90,1", "a,5,1"]
    add(tmp_path, 1, [row])
    add(tmp_path, 2, rows)
    with pytest.raises(InputProblem, match=r"^max_late is 0; it must be None, because late rows"):
        source().window("10 seconds").sum("watts").store_in(kept, max_late=0)
    assert not kept.exists()
    grouped = source(group_columns=["celsius"]).window("10 seconds").sum("watts")
    first = ["celsius", "key", "window", "value", "coverage", "state", "task", "start_us", "end_us"]
    others = ["n", "revision", "n_rcv", "required", "n_refused"]
    assert grouped.store_in(tmp_path / "grouped").results().columns == [*first, *others]

    def run(max_refused: float | None, max_late: float | None = None) -> None:
        windows = source().window("10 seconds", max_wait="5 seconds").sum("watts")
        windows.store_in(kept, max_refused=max_refused, max_late=max_late).run_available()

    with pytest.raises(QueryProblem, match="kept/history has not committed micro-batch 1: 1 of it"):
        run(0.2)
    with pytest.raises(QueryProblem, match=r"kept/answers has .*-batch 1: 1 of its 3 rows are re"):
        run(0.25)
    with pytest.raises(QueryProblem, match=r"kept/answers has .*-batch 1: 1 of its 3 rows are la"):
        run(1, 0)
    late = pq.read_table(kept / "answers" / "_stopped" / "00000001.parquet")
    assert late.column("event_time_us").to_pylist() == [5_000_000]


@pytest.mark.long
def test_other_content_of_a_known_identity_is_refused(
    source: Callable[..., Stream], tmp_path: Path
) -> None:
    """Both deliveries are in one file; ``properties/accounts.py`` draws them over several."""
    add(tmp_path, 0, [each[at] for at in (0, 1) for each in KINDS])
    stream = source("id string, device string, at string, watts string", source_id="id")
    query = stream.window("10 seconds").sum("watts").store_in(tmp_path / "kept")
    query.flush()
    bad, lost = (100.0, 1, 1, "incomplete"), (None, 0, 1, "incomplete")
    good = (100.0, 1, 0, "exact")
    answered = {
        (row.key, row.start_us // 1_000_000 - T): (row.value, row.n, row.n_refused, row.state)
        for row in query.results().collect()
    }
    assert answered == {
        ("a", 0): bad,
        ("e", 0): bad,
        ("k", 0): bad,
        ("b", 0): good,
        ("b", 10): lost,
        ("c", 0): good,
        ("d", 0): lost,
    }
    listed = {row.seq: row for row in query.rejected().collect()}
    assert sorted(listed) == [5, 6, 7, 8, 9]
    for number, (_, again, reason) in enumerate(KINDS):
        row, (identity, key, *_) = listed[5 + number], again.split(",")
        found = (row.stage, row.reason, row.column, row.text, row.key)
        assert found == ("query", reason, "id", identity, key)


def test_the_ledger_knows_rows_that_are_late_between_windows_or_dropped(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Windows of 5 s leave gaps of 5 s, wait for a second, and are never corrected."""
    (tmp_path / "in").mkdir()
    for number, times in enumerate([(10, 12), (40, 27), (11, 41)]):
        add(tmp_path, number, [f"{each},1" for each in times])
    lines = spark.readStream.schema("at string, v string").option("maxFilesPerTrigger", 1)
    history = tmp_path / "history"
    rows = lines.csv(str(tmp_path / "in"))
    landing_of(rows, tmp_path, event_time="at", key=None).run_available()
    config = WatermarkConfig(5_000_000, 10_000_000, 1_000_000, reading="fixed")
    query = WatermarkQuery(spark, config, history, tmp_path / "store")
    query.run_available()
    found = Ledger(6, 6, {}, late=1, unasked=1, answered=2, pending=2)
    assert straggler.ledger(query.store.root) == found
    drop_before(history, 1, readers=[tmp_path / "store"])
    assert straggler.ledger(query.store.root) == found
    later = WatermarkQuery(spark, config, history, tmp_path / "later")
    assert straggler.ledger(later.store.root) == Ledger(0, None, {}), "it knows of no history yet"
    later.run_available()
    assert straggler.ledger(later.store.root) == found._replace(answered=0, dropped=2)


def test_files_that_spark_never_reads_are_named(spark: SparkSession, tmp_path: Path) -> None:
    def open_landing() -> Landing:
        stream = spark.readStream.schema("ts string, v string").options(
            pathGlobFilter="*.{csv,tsv}"
        )
        files, others = stream.csv(str(tmp_path / "in")), stream.csv(str(tmp_path / "others"))
        # Spark reads another source once, however often a stream has it, and a table is none.
        several = others.crossJoin(spark.range(1)).drop("id").union(others).union(files)
        return landing_of(several, tmp_path, key=None)

    def put(name: str, at: int) -> None:
        (tmp_path / "in" / name).write_text("1,1\n", encoding="utf-8")
        os.utime(tmp_path / "in" / name, (at * 86_400, at * 86_400))

    (tmp_path / "in" / "below").mkdir(parents=True)
    (tmp_path / "others").mkdir()
    for name in ("again.csv", "a b.csv", "below/deep.csv", "notes.txt", "_hidden.csv"):
        put(name, at=100)
    put("first.csv", at=94)
    open_landing().run_available()
    put("again.csv", at=101)
    put("old.csv", at=92)
    landing = open_landing()
    landing.run_available()
    assert landing.ledger().landed == 3
    put("to_come.csv", at=99)
    reasons = {Path(file).name: reason for file, reason in landing.left_out()}
    assert reasons == {
        "_hidden.csv": "is hidden: its name begins with _ or .",
        "deep.csv": "lies in a folder below, and recursiveFileLookup is not set",
        "again.csv": "was rewritten under the name of a file that was read before",
        "notes.txt": "does not match pathGlobFilter, '*.{csv,tsv}'",
        "old.csv": "is older than maxFileAge, 7 days, beside the newest file that was read",
    }


def test_files_that_wait_for_spark_are_not_left_out(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a" / "below").mkdir(parents=True)
    named = ("a/new.csv", 100), ("a/old.csv", 50), ("a/below/deep.csv", 1), ("a/notes.txt", 100)
    for name, day in named:
        (tmp_path / name).write_text("1,1\n", encoding="utf-8")
        os.utime(tmp_path / name, (day * 86_400, day * 86_400))
    stream = spark.readStream.schema("ts string, v string")
    stream = stream.options(maxFilesPerTrigger=1, latestFirst=True)
    landing = landing_of(stream.csv(str(tmp_path / "{a,b}" / "*.csv")), tmp_path, key=None)
    assert landing.left_out() == []
    landing.run_available()
    assert landing.ledger().landed == 2
    assert landing.left_out() == []
