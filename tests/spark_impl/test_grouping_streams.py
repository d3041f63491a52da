"""Streams that are spread: restarts, failures between any two writes, times, state, bad input."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import Event, GroupingConfig, Workload
from model.vocabulary.grouping import Route
from spark_impl.grouping import Grouping, GroupingProblem, MicroBatch, at_instances, run_in_process
from spark_impl.grouping.query import Spreader
from spark_impl.grouping.store import INSTANCE, SENDER, STANDING, GroupingStore
from spark_impl.grouping.tasks import Columns
from spark_impl.grouping.windows import add_times, mean_times, set_times, start
from spark_impl.runtime.histories import append
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.runtime.stores import require_view
from spark_impl.runtime.tables import TableWriter
from spark_impl.runtime.versions import BATCH
from tests.spark_impl.test_grouping_query import skewed

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


def test_work_that_reads_nothing_still_moves_the_routers_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path / "in", pa.table({"seq": [0, 1, 2], "key": ["a", "b", "a"]}))
    stream = spark.readStream.schema("seq BIGINT, key STRING").parquet(str(tmp_path / "in"))
    seen = []
    spread = Grouping(2, senders=4).stream(
        stream, "key", tmp_path / "store", lambda _rows, batch: seen.append(batch.number)
    )
    spread.run_available()
    assert seen == [0]
    view = require_view(locate(tmp_path / "store"))
    assert (view.last, sorted(spread._spreader.store.states(view, SENDER, 0))) == (0, [0, 1, 2, 3])


# ------------------------------------------------------------------------- state and times


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


def state_of(store: GroupingStore, batch: int, instance: int) -> Any:
    files = store.states(require_view(store.root), INSTANCE, batch)
    state = store.load_worked(files[instance]).state
    assert state is not None
    return state


def test_state_of_instances_lasts_and_merges_to_the_whole(
    spark: SparkSession, tmp_path: Path
) -> None:
    events = skewed(6, 400)
    config = GroupingConfig(3, senders=2, window_tuples=100, times_us=((0, (1, 2, 5)),))
    found: dict[int, list[Any]] = {}

    def work(spread: DataFrame, batch: MicroBatch) -> None:
        rows = at_instances(spread, batch, totals, TOTALS).collect()
        found[batch.number] = rows
        if batch.number == 1 and not crashes:
            crashes.append(batch.number)
            msg = "the sink is full"
            raise RuntimeError(msg)

    crashes: list[int] = []
    for number, part in enumerate((events[:150], events[150:])):
        rows = spark.createDataFrame(table_of(part))
        spreader = Spreader(config, COLUMNS, locate(tmp_path / "store"))
        if number == 1:
            with pytest.raises(RuntimeError, match="the sink is full"):
                spreader.advance(rows, work, number)
            spreader.advance(rows, work, number)
        spreader.advance(rows, work, number)  # again, as Spark may after a crash
    merged = Counter[str]()
    counted = Counter[str]()
    store = GroupingStore(locate(tmp_path / "store"))
    for instance in range(3):
        for row in state_of(store, 1, instance).to_pylist():
            counted[row["key"]] += row["n"]
            merged[row["key"]] += row["total"]
    assert counted == Counter(event.key for event in events)
    for key in counted:
        assert merged[key] == sum(event.value for event in events if event.key == key)
    assert len(found[1]) > len(counted), "no key was at two instances"


def test_an_instance_without_rows_or_work_keeps_its_state(
    spark: SparkSession, tmp_path: Path
) -> None:
    config = GroupingConfig(2, "key")
    keys = [f"k{number}" for number in range(40)]
    place = routes(tuple(Event(n, n, key, 0, 0.0, 0) for n, key in enumerate(keys)), config)
    only = next(key for number, key in enumerate(keys) if place[number] == 0)
    spreader = Spreader(config, COLUMNS, locate(tmp_path / "store"))

    def work(rows: DataFrame, batch: MicroBatch) -> None:
        if batch.number != 1:
            found.append({row.key for row in at_instances(rows, batch, totals, TOTALS).collect()})

    found: list[set[str]] = []
    for number, own in enumerate((keys, [only], [only])):
        table = pa.table({"seq": range(len(own)), "key": own, "value": [1.0] * len(own)})
        spreader.advance(spark.createDataFrame(table), work, number)
    assert found == [set(keys)] * 2
    files = spreader.store.states(require_view(spreader.store.root), INSTANCE, 2)
    assert [spreader.store.spent(files[each])[0] for each in range(2)] == [1, 0]
    kept = state_of(spreader.store, 2, 1).column("key").to_pylist()
    assert sorted(kept) == sorted(key for number, key in enumerate(keys) if place[number] == 1)


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


def test_measured_times_decide_the_routes_of_the_next_window(
    spark: SparkSession, tmp_path: Path
) -> None:
    events = skewed(3, 60)
    spreader = Spreader(GroupingConfig(3, window_tuples=20), COLUMNS, locate(tmp_path / "store"))
    seen: dict[int, int] = {}

    def work(rows: DataFrame, batch: MicroBatch) -> None:
        found = at_instances(rows, batch, slow, ROUTED).toArrow()
        seen.update(zip(found["seq"].to_pylist(), found["instance"].to_pylist(), strict=True))

    times = []
    for number, part in enumerate((events[:20], events[20:])):
        times.append((number, spreader.standing().table.times))
        spreader.advance(spark.createDataFrame(table_of(part)), work, number)
    assert times[0][1] == (1, 1, 1)
    assert times[1][1][1] >= 2_000
    assert seen == routes(events, GroupingConfig(3, times_us=tuple(times), window_tuples=20), 20)


def test_times_are_means_over_a_window_and_stay_where_nothing_was_measured() -> None:
    config = GroupingConfig(3)
    known = GroupingConfig(3, times_us=((0, (5, 6, 7)),))
    standing = start(config)
    assert mean_times(config, standing) == ()
    assert mean_times(known, standing) == ()
    once = add_times(standing, [(4, 4000), (0, 0), (0, 0)])
    assert mean_times(config, once) == (1_000, 1_000, 1_000), "nothing is known but the first"
    assert mean_times(known, once) == (1_000, 6, 7)
    twice = add_times(once, [(6, 1000), (5, 10003), (0, 0)])
    assert mean_times(config, twice) == (500, 2_001, 1_000)
    assert mean_times(known, twice._replace(measured=(7, 8, 9))) == (500, 2_001, 9)
    assert mean_times(config, add_times(standing, [(5, 0), (5, 1), (5, 500)])) == (1, 1, 100)
    assert add_times(once, [(0, 0), (0, 0), (0, 0)]) == once
    assert mean_times(known, set_times(twice, (3, 2, 1))) == (3, 2, 1)


# ------------------------------------------------------------------------- failures


class DiskFullError(OSError):
    pass


def failing(method: Callable[..., Any], at: int, after: bool) -> Callable[..., Any]:
    """Return ``method`` with a failure in its call number ``at``, before or after its effect."""
    calls = [0]

    def call(*given: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == at and not after:
            raise DiskFullError
        result = method(*given, **named)
        if calls[0] == at:
            raise DiskFullError
        return result

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
        failures = (
            (GroupingStore, "states", True),
            (GroupingStore, "load_sender", False),
            (TableWriter, "commit", False),
            (TableWriter, "commit", True),
        )
        for kind, name, after in failures:
            if number == 1:
                with monkeypatch.context() as patch:
                    patch.setattr(kind, name, failing(getattr(kind, name), 1, after))
                    with pytest.raises(DiskFullError):
                        Spreader(config, COLUMNS, place).advance(rows, work, number)
        Spreader(config, COLUMNS, place).advance(rows, work, number)
    assert seen == routes(events, config, 100, 200)
    store = GroupingStore(place)
    view = require_view(place)
    files = store.states(view, INSTANCE, 2)
    states = [store.load_worked(files[instance]).state for instance in range(4)]
    counted = sum(pc.sum(state.column("n")).as_py() for state in states if state is not None)
    assert counted == 300
    assert {each.bounds[BATCH] for each in view.of(STANDING)} == {(1, 1), (2, 2)}


def count_rows(rows: pa.Table, state: pa.Table | None) -> tuple[pa.Table, pa.Table]:
    before = 0 if state is None else state.column("n")[0].as_py()
    return rows.select(["seq", "instance"]), pa.table({"n": [before + len(rows)]})


def test_unfinished_senders_are_run_again(spark: SparkSession, tmp_path: Path) -> None:
    events = skewed(9, 200)
    config = GroupingConfig(4, senders=3, window_tuples=90)
    seen: dict[int, int] = {}

    def work(rows: DataFrame, batch: MicroBatch) -> None:
        seen.update((row.seq, row.instance) for row in rows.collect())
        batch.reports.begin()  # as if this work had read nothing

    spreader = Spreader(config, COLUMNS, locate(tmp_path / "store"))
    for number, part in enumerate((events[:100], events[100:])):
        spreader.advance(spark.createDataFrame(table_of(part)), work, number)
    assert seen == routes(events, config, 100)


@pytest.mark.fails_tasks
def test_the_error_that_stops_a_stream_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path / "in", pa.table({"seq": [0, None], "key": ["a", "b"]}))
    stream = spark.readStream.schema("seq BIGINT, key STRING").parquet(str(tmp_path / "in"))

    def misnamed(rows: DataFrame, batch: MicroBatch) -> None:
        other = pa.schema([("n", pa.int64())])
        at_instances(rows, batch, lambda given, _: (given, None), other).collect()

    def full(_rows: DataFrame, _batch: MicroBatch) -> None:
        msg = "the sink is full"
        raise RuntimeError(msg)

    for work, seq, sentence in (
        (lambda _rows, _batch: None, "seq", "the column 'seq' has 1 rows without a value"),
        (misnamed, None, r"the work at instance \d returns \['seq', 'key', 'instance'\], not"),
        (full, None, "the sink is full"),
    ):
        with pytest.raises(GroupingProblem, match=f"^{sentence}"):
            Grouping(2).stream(stream, "key", tmp_path / "store", work, seq).run_available()
    assert require_view(locate(tmp_path / "store")).last == -1
