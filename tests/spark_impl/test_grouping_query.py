"""Rows and streams spread by Spark: balance, resumption, failures between writes, bad input."""

import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import Event, GroupingConfig, Workload
from model.vocabulary.grouping import Route
from model.vocabulary.windows import REASON_NOT_FINITE
from spark_impl.grouping import (
    Grouping,
    MicroBatch,
    at_instances,
    merged_answers,
    partial_aggregates,
    run_in_process,
)
from spark_impl.grouping.query import Spreader
from spark_impl.grouping.router import SenderState
from spark_impl.grouping.store import INSTANCE as WORKED
from spark_impl.grouping.store import GroupingStore, decode_table
from spark_impl.grouping.tasks import Columns, refused_rows
from spark_impl.grouping.windows import add_times, advance, mean_times, start
from spark_impl.runtime.failures import QueryProblem
from spark_impl.runtime.histories import append
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.runtime.tables import TableWriter


def skewed(seed: int, size: int) -> tuple[Event, ...]:
    random = Random(seed)
    return tuple(
        Event(seq, seq, f"k{int(40 * random.random() ** 4)}", seq, random.randrange(9) / 4, seq)
        for seq in range(size)
    )


def frame(spark: SparkSession, keys: list[str | None]) -> DataFrame:
    table = pa.table({"word": pa.array(keys, pa.string()), "n": list(range(len(keys)))})
    return spark.createDataFrame(table)


def test_a_refused_row_is_listed_by_columns_of_any_type() -> None:
    own = {
        "key": [7, 8],
        "value": [1.0, None],
        "source_id": ["a", "b"],
        "event_time_us": [0.5, 1.5],
    }
    found = refused_rows(pa.table(own), Columns("key", value="value")).to_pylist()
    nothing = {"seq": None, "source_id": None, "event_time_us": None}
    assert found == [{**nothing, "key": "8", "reason": REASON_NOT_FINITE}]


def test_bounded_rows_are_spread_by_speed(spark: SparkSession) -> None:
    random = Random(3)
    keys: list[str | None] = [f"k{int(300 * random.random() ** 5)}" for _ in range(20_000)]
    grouping = Grouping(4, times_us=[1, 1, 2, 4])
    found = grouping.assign(frame(spark, keys).repartition(3), "word").toArrow()
    assert sorted(found.column("n").to_pylist()) == list(range(len(keys)))
    work = Counter[int]()
    for place in found.column("instance").to_pylist():
        work[place] += grouping.config.times_of(0)[place]
    assert max(work.values()) < 1.1 * min(work.values())


def test_partition_i_holds_the_rows_of_instance_i(spark: SparkSession) -> None:
    keys: list[str | None] = [f"k{number % 50}" for number in range(2_000)]
    rows = Grouping(5).spread(frame(spark, keys), "word")
    seen = rows.selectExpr("instance", "spark_partition_id() AS part").distinct().collect()
    assert sorted((row.instance, row.part) for row in seen) == [(n, n) for n in range(5)]
    parts = partial_aggregates(rows, "word", "n")
    assert parts.count() > 50
    answers = {row.key: row for row in merged_answers(parts).collect()}
    assert len(answers) == 50
    assert {row.window for row in answers.values()} == {0}
    assert answers["k7"].n == 40
    assert answers["k7"].total == sum(range(7, 2_000, 50))
    assert answers["k7"].top == [1957.0, 1907.0, 1857.0]
    none = merged_answers(partial_aggregates(rows, "word", "n", top=0), top=0).collect()
    assert {(row.n, row.distinct, *row.top) for row in none} == {(40, 40)}


@pytest.mark.fails_tasks
def test_bad_input_is_named(spark: SparkSession, tmp_path: Path) -> None:
    rows = frame(spark, ["a", None])
    taken = rows.withColumnRenamed("n", "instance")
    stream = spark.readStream.format("rate").load().selectExpr("string(value) AS key", "timestamp")
    for grouping, given, key, sentence in (
        (Grouping(2), rows, "wort", "the input has no column 'wort'; it has word, n"),
        (Grouping(2), rows, "n", "is of type bigint; a key is a string"),
        (Grouping(2, "dkg"), rows, "word", "learns from a stream"),
        (Grouping(2), taken, "word", "already has a column 'instance'"),
        (Grouping(2), stream, "key", "the input is a stream; it must be bounded"),
    ):
        with pytest.raises(InputProblem, match=sentence):
            grouping.assign(given, key)
    with pytest.raises(QueryProblem, match=r"^the column 'word' has 1 rows without a value$"):
        Grouping(2).assign(rows, "word")
    with pytest.raises(InputProblem, match="the input is bounded; it must be a stream"):
        Grouping(2).stream(rows, "word", tmp_path / "store", lambda _rows, _batch: None)
    with pytest.raises(InputProblem, match="'timestamp' is of type timestamp; an order is made of"):
        Grouping(2).stream(stream, "key", tmp_path / "s", lambda _rows, _batch: None, "timestamp")
    with pytest.raises(InputProblem, match="column 'key' is of type string; a value is a number"):
        Grouping(2).stream(stream, "key", tmp_path / "s", lambda _rows, _batch: None, value="key")
    assert not any(tmp_path.iterdir())


def test_durations_are_texts_or_timedeltas() -> None:
    told = Grouping(2, times=["1ms", timedelta(milliseconds=2)], latency=["5us", "6us"])
    assert told.config == Grouping(2, times_us=[1_000, 2_000], latency_us=[5, 6]).config
    assert told.config.times_us == ((0, (1_000, 2_000)),)
    named = Grouping(2, times_us=["1ms", timedelta(milliseconds=2)], latency_us=("5us", "6us"))
    assert named.config == told.config
    with pytest.raises(ValueError, match=r"times is 1; it must be a text .*; times_us takes micro"):
        Grouping(2, times=[1, 2])
    with pytest.raises(ValueError, match=r"unknown setting 'tims'; known are .*times_us"):
        Grouping(2, tims=[1, 2])


# ---------------------------------------------------------------------------------------- streams


SCHEMA = "seq BIGINT, key STRING, value DOUBLE"
COLUMNS = Columns("key", "seq")
ROUTED = pa.schema([("seq", pa.int64()), ("instance", pa.int32())])
TOTALS = pa.schema([("key", pa.string()), ("n", pa.int64()), ("total", pa.float64())])


def table_of(events: tuple[Event, ...]) -> pa.Table:
    rows = pa.Table.from_pylist([event._asdict() for event in events])
    return rows.select(["seq", "key", "value"])


def routes(events: tuple[Event, ...], config: GroupingConfig, *cuts: int) -> dict[int, int]:
    trace = run_in_process(Workload("grouping", events, config.to_json(), cuts))
    return {step.seq: step.instance for step in trace.of(Route)}


def test_a_stream_resumes_and_learns_times(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    events = skewed(5, 600)
    whole: dict[int, int] = {}
    batches = []

    def work(spread: DataFrame, batch: MicroBatch) -> list[int]:
        batches.append((batch.number, batch.window))
        whole.update((row.seq, row.instance) for row in spread.collect())
        return [1, 1, 9]

    grouping = Grouping(3, senders=2, window_tuples=250)
    for part in range(2):
        append(source, table_of(events[300 * part : 300 * part + 300]))
        stream = spark.readStream.schema(SCHEMA).parquet(str(source))
        grouping.stream(stream, "key", tmp_path / "store", work, seq="seq").run_available()
    assert batches == [(0, 0), (1, 1)]
    times = ((0, (1, 1, 1)), (1, (1, 1, 9)))
    config = GroupingConfig(3, times_us=times, senders=2, window_tuples=250)
    assert whole == routes(events, config, 300)


def totals(rows: pa.Table, state: pa.Table | None) -> tuple[pa.Table, pa.Table]:
    """Update the number and sum of the tuples of each key: a stateful operator of one instance."""
    each = rows.select(["key", "value"]).append_column("n", pa.repeat(1, len(rows)))
    each = each.rename_columns(["key", "total", "n"]).select(TOTALS.names).cast(TOTALS)
    together = pa.concat_tables(
        [each, TOTALS.empty_table() if state is None else state.cast(TOTALS)]
    )
    summed = together.group_by("key").aggregate([("n", "sum"), ("total", "sum")])
    state = summed.rename_columns(TOTALS.names)
    return state, state


def test_results_of_every_instance_have_to_be_read(spark: SparkSession, tmp_path: Path) -> None:
    spreader = Spreader(GroupingConfig(3), COLUMNS, locate(tmp_path / "store"))
    table = table_of(skewed(8, 60))
    rows = spark.createDataFrame(table).withColumn("at", F.timestamp_seconds("seq"))
    parts = []

    def some(rows: DataFrame, batch: MicroBatch) -> None:
        at_instances(rows, batch, totals, TOTALS).take(1)

    def work(rows: DataFrame, batch: MicroBatch) -> None:
        parts.extend(at_instances(rows, batch, totals, TOTALS).collect())

    with pytest.raises(
        InputProblem, match=r"the output of only \d of 3 instances was read to its end"
    ):
        spreader.advance(rows, some, 0)
    zone = "spark.sql.session.timeZone"
    before = spark.conf.get(zone)
    try:
        spark.conf.set(zone, "America/New_York")  # a user may have set it in the session
        spreader.advance(rows, work, 0)
    finally:
        spark.conf.set(zone, str(before))
    assert sum(part.n for part in parts) == len(table)


def slow(rows: pa.Table, _state: pa.Table | None) -> tuple[pa.Table, None]:
    """Take at least 2 ms per tuple at instance 1."""
    if 1 in rows.column("instance").to_pylist():
        time.sleep(0.002 * len(rows))
    return rows.select(["seq", "instance"]), None


def test_a_measured_time_is_no_shorter_than_the_transfer() -> None:
    config = GroupingConfig(3)
    # Instance 0 works for longer than its line, instance 1 for less, and instance 2 had no tuple.
    spent = [(10, 400), (10, 400), (0, 0)]
    standing = add_times(start(config), spent)
    assert mean_times(config, standing) == (40, 40, 40)
    assert mean_times(config, standing, (30, 70, 900)) == (40, 70, 900)
    quick = add_times(start(config), [(10, 2), (10, 12), (0, 0)])
    assert mean_times(config, quick) == (1, 1, 1)


def test_a_micro_batch_without_tuples_is_not_counted() -> None:
    config = GroupingConfig(2, "key", ((0, (1, 1)), (1, (1, 9)), (2, (9, 1))), window_tuples=1)
    begun = advance(config, start(config), [SenderState()], 0)
    assert begun == start(config)
    after = advance(config, begun, [SenderState()], 1)
    assert (after.batch, after.routed, after.table.window, after.table.times) == (1, 1, 1, (1, 9))


def test_measured_times_decide_the_routes_of_the_next_window(
    spark: SparkSession, tmp_path: Path
) -> None:
    events = skewed(3, 60)
    spreader = Spreader(GroupingConfig(3, window_tuples=20), COLUMNS, locate(tmp_path / "store"))
    seen: dict[int, int] = {}

    def work(rows: DataFrame, batch: MicroBatch) -> None:
        found = at_instances(rows, batch, slow, ROUTED).toArrow()
        seen.update(zip(found["seq"].to_pylist(), found["instance"].to_pylist(), strict=True))

    times: list[tuple[int, tuple[int, ...]]] = [(0, (1, 1, 1))]
    for number, part in enumerate((events[:20], events[20:])):
        spreader.advance(spark.createDataFrame(table_of(part)), work, number)
        times.append((number + 1, spreader.store.at().standing(number).table.times))
    times.pop()
    assert times[1][1][1] >= 2_000
    assert seen == routes(events, GroupingConfig(3, times_us=tuple(times), window_tuples=20), 20)


# ------------------------------------------------------------------------- failures


class DiskFullError(OSError):
    pass


def failing(method: Callable[..., Any], after: bool) -> Callable[..., Any]:
    """Return a method that fails before or after its effect."""

    def call(*given: Any, **named: Any) -> Any:
        if after:
            method(*given, **named)
        raise DiskFullError

    return call


def test_a_failure_between_the_writes_of_the_driver_changes_no_route(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = skewed(8, 300)
    config = GroupingConfig(4, senders=2, window_tuples=90)
    parts = [events[:100], events[100:200], events[200:]]
    place = locate(tmp_path / "store")
    seen: dict[int, int] = {}

    def work(rows: DataFrame, batch: MicroBatch) -> list[int]:
        found = at_instances(rows, batch, count_rows, ROUTED).toArrow()
        seen.update(zip(found["seq"].to_pylist(), found["instance"].to_pylist(), strict=True))
        return [1, 1, 1, 1]

    for number, part in enumerate(parts):
        rows = spark.createDataFrame(table_of(part))
        for place_of, name, after in (
            (GroupingStore, "load", False),
            (TableWriter, "commit", False),
            (TableWriter, "commit", True),
        ):
            if number == 1:
                with monkeypatch.context() as patch:
                    patch.setattr(place_of, name, failing(getattr(place_of, name), after))
                    with pytest.raises(DiskFullError):
                        Spreader(config, COLUMNS, place).advance(rows, work, number)
        Spreader(config, COLUMNS, place).advance(rows, work, number)
    assert seen == routes(events, config, 100, 200)
    store = GroupingStore(place).at()
    files = store.states(WORKED, 2)
    states = [decode_table(store.load(WORKED, files[instance])) for instance in range(4)]
    counted = sum(pc.sum(state.column("n")).as_py() for state in states if state is not None)
    assert counted == 300
    assert {each.bounds["batch"] for each in store.view.of(WORKED)} == {(1, 1), (2, 2)}


def count_rows(rows: pa.Table, state: pa.Table | None) -> tuple[pa.Table, pa.Table]:
    before = 0 if state is None else state.column("n")[0].as_py()
    return rows.select(["seq", "instance"]), pa.table({"n": [before + len(rows)]})


@pytest.mark.fails_tasks
def test_the_error_that_stops_a_stream_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path / "in", pa.table({"seq": [0, 1], "key": ["a", "b"]}))
    stream = spark.readStream.schema("seq BIGINT, key STRING").parquet(str(tmp_path / "in"))

    def misnamed(rows: DataFrame, batch: MicroBatch) -> None:
        other = pa.schema([("n", pa.int64())])
        at_instances(rows, batch, lambda given, _: (given, None), other).collect()

    sentence = r"^the work at instance \d returns \['seq', 'key', 'instance'\], not"
    with pytest.raises(QueryProblem, match=sentence):
        Grouping(2).stream(stream, "key", tmp_path / "store", misnamed, None).run_available()
    assert GroupingStore(locate(tmp_path / "store")).at().view.last == -1
