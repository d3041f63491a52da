"""Whole queries on Spark: answers by hand, restarts, replays, flushes, errors."""

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import SlackConfig
from model.vocabulary.settings import PlainData
from spark_impl.runtime import tables
from spark_impl.runtime.histories import COLUMNS, append
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.runtime.stores import Draft, require_view
from spark_impl.runtime.systems import lose_commit
from spark_impl.runtime.tables import TableWriter
from spark_impl.slack import (
    QueryProblem,
    SlackQuery,
    assumption_status,
    corrections,
    results,
)
from spark_impl.slack.query import SLACK
from spark_impl.windows import answers as answers_module
from spark_impl.windows import query as query_module
from spark_impl.windows.history import check_source
from spark_impl.windows.store import VERSION, all_tables, load_store, open_store

FIXED = SlackConfig(size_us=10, slide_us=5, control="fixed", gamma_us=100)
FIRST = [(3, 1.0), (12, 2.0), (26, 4.0)]
LATE = [(12, 8.0), (17, 16.0)]
HEAD = {"version": VERSION, "room": "slack", "value": None}


def history(folder: Path, *batches: Iterable[tuple[Any, Any]], **changes: Any) -> Path:
    """Write one file for each list of (event time, value), with increasing arrival numbers."""
    seq = sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet"))
    for batch in batches:
        rows = []
        for ts, value in batch:
            row = {"seq": seq, "source_id": seq, "key": "a", "event_time_us": ts, "value": value}
            rows.append({**row, "arrival_us": 0, **changes})
            seq += 1
        append(folder, pa.Table.from_pylist(rows, schema=pa.schema(list(COLUMNS.items()))))
    return folder


def answers(spark: SparkSession, store: Path | Location) -> dict[int, tuple[Any, ...]]:
    rows = results(spark, store).collect()
    return {r.start_us: (r.value, r.n, r.revision, r.coverage, r.state) for r in rows}


def rows_of(query: SlackQuery) -> dict[str, list[dict[str, PlainData]]]:
    found = {name: query.store.read_all(name).to_pylist() for name in all_tables(SLACK)}
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def test_answers_by_hand(spark: SparkSession, tmp_path: Path) -> None:
    query = SlackQuery(spark, FIXED, history(tmp_path / "h", FIRST, LATE), tmp_path / "s")
    query.run_available()
    assert answers(spark, tmp_path / "s") == {
        -5: (1.0, 1, 0, 1.0, "exact"),
        0: (1.0, 1, 0, 1.0, "exact"),
        5: (2.0, 1, 0, 0.5, "provisional"),  # one of two
        10: (2.0, 1, 0, 1 / 3, "provisional"),
    }
    query.flush()
    exact = {
        -5: (1.0, 1, 0, 1.0, "exact"),
        0: (1.0, 1, 0, 1.0, "exact"),
        5: (10.0, 2, 1, 0.5, "exact"),
        10: (26.0, 3, 1, 1 / 3, "exact"),
        15: (16.0, 1, 1, 0.0, "exact"),
        20: (4.0, 1, 0, 1.0, "exact"),
        25: (4.0, 1, 0, 1.0, "exact"),
    }
    assert answers(spark, tmp_path / "s") == exact
    (correction,) = query.store.read_all("correction").to_pylist()
    assert correction["reason"] == "flush"
    assert (correction["pairs"], correction["windows"]) == (4, 3)
    assert (correction["rows_read"], correction["rows_needed"]) == (5, 3)

    # more data may follow a flush: everything up to 45 is closed
    history(tmp_path / "h", [(40, 32.0)])
    query.flush()
    late = dict.fromkeys((35,), (32.0, 1, 1, 0.0, "exact"))
    after = answers(spark, tmp_path / "s")
    assert after == {**exact, **late, 40: (32.0, 1, 0, 1.0, "exact")}
    row = results(spark, tmp_path / "s").first()
    assert row is not None
    assert row.assumption == "no (eps, delta) promise"
    assert row.assumption_status is None
    assert assumption_status(spark, tmp_path / "s").status == "untested"
    (spent, _) = corrections(spark, tmp_path / "s").orderBy("batch").collect()
    assert (spent.reason, spent.pairs, spent.rows_needed, spent.rows_read) == ("flush", 4, 3, 5)


@pytest.mark.parametrize("few_tasks", [0, 1])  # with arrivals that travel, and without
def test_names_of_folders_are_no_patterns(
    spark: SparkSession, tmp_path: Path, few_tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_module, "FEW_TASKS", few_tasks)
    history(tmp_path / "ab", [(3, 64.0)])
    place = tmp_path / r"a? \ [b], {c,d}* ü"
    history(place / "[a]{b}", FIRST)
    query = SlackQuery(
        spark,
        FIXED,
        place / "up" / ".." / "[a]{b}",
        tmp_path / "up" / ".." / "a? [b], {c,d}* ü" / "{store}",
    )
    query.flush()
    totals = [value for value, *_ in answers(spark, query.store.root).values()]
    assert totals == [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]


def test_results_have_the_window_as_two_timestamps(spark: SparkSession, tmp_path: Path) -> None:
    far = answers_module.FARTHEST_US // 10 * 10
    events = [(5, 1.0), (far + 5, 2.0)]
    config = SlackConfig(size_us=10, slide_us=10, control="fixed")
    query = SlackQuery(spark, config, history(tmp_path / "h", events), tmp_path / "s")
    query.flush()
    found = results(spark, tmp_path / "s").orderBy("start_us")
    assert found.schema["window"].dataType.simpleString() == "struct<start:timestamp,end:timestamp>"
    near, beyond = found.collect()
    epoch = datetime.fromtimestamp(0)  # noqa: DTZ006 (Spark gives local times without a zone)
    assert near.window.start == epoch
    assert near.window.end == epoch + timedelta(microseconds=10)
    assert (beyond.start_us, beyond.window) == (far, None)


def test_status_rests_on_the_latest_revisions(spark: SparkSession, tmp_path: Path) -> None:
    config = SlackConfig(size_us=10, slide_us=10)
    query = SlackQuery(spark, config, history(tmp_path / "h", FIRST), tmp_path / "s")
    schema = query.store.schema("correlation")

    def record(batch: int, revision: int, cross: int) -> None:
        same = {"task": 0, "key": "a", "revision": revision, "n": 9, "cross": cross}
        spreads = {"delay_spread": 100, "value_spread": 400}
        rows = [{**same, **spreads, "start_us": 10 * i} for i in range(25)]
        writer = TableWriter(query.store.root)
        draft = Draft(query.store, writer.view, batch)
        draft.write("correlation", pa.Table.from_pylist(rows, schema), "ours")
        draft.commit(writer)

    query.run_available()
    assert [row.assumption_status for row in results(spark, tmp_path / "s").collect()] == [
        "untested"
    ] * 2
    record(1, 1, 20)
    found = assumption_status(spark, tmp_path / "s")
    assert (found.status, found.windows) == ("contradicted", 25)
    assert found[2:] == pytest.approx((0.1, 0.1, 0.1))
    record(2, 2, 0)
    assert assumption_status(spark, tmp_path / "s") == ("not contradicted", 25, 0.0, 0.0, 0.0)


def test_restarts_and_replays_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    config = SlackConfig(size_us=20, slide_us=5, tasks=2, gamma_us=10)
    batches = [
        [(100 + 7 * i + 10 * b - 13 * (i % 5 == 0), float(i)) for i in range(12)] for b in range(3)
    ]
    straight = SlackQuery(spark, config, history(tmp_path / "h", *batches), tmp_path / "s")
    straight.flush()
    expected = rows_of(straight)
    assert expected["late"]
    assert expected["revision"]

    bumpy = SlackQuery(spark, config, history(tmp_path / "h2", *batches[:2]), tmp_path / "s2")
    bumpy.run_available()
    # A crash between the commit and Spark's own, and one of an attempt that was given up.
    (tmp_path / "s2" / "kind=progress" / "00000001-torn.parquet").write_bytes(b"torn")
    lose_commit(tmp_path / "s2")
    again = SlackQuery(spark, config, tmp_path / "h2", tmp_path / "s2")
    assert again.store.committed() == 1
    history(tmp_path / "h2", batches[2])
    again.flush()
    assert rows_of(again) == expected


def test_grouping_columns_of_a_history_without_files(tmp_path: Path) -> None:
    history = locate(tmp_path)
    kinds = (pa.field("site", pa.string()), pa.field("line", pa.string()))
    assert check_source(history, (), ("site", "line")) == kinds
    landed = {"group_columns": {"line": "int64", "site": "string"}}
    (tmp_path / "_landing.json").write_text(json.dumps(landed))
    assert check_source(history, (), ("line", "site")) == (pa.field("line", pa.int64()), kinds[0])


def folded(kept: dict[int, list[dict[str, PlainData]]]) -> dict[tuple[PlainData, ...], PlainData]:
    """Return the last row of every window among those that a sink has kept by micro-batch."""
    rows = [row for batch in sorted(kept) for row in kept[batch]]
    return {(row["task"], row["key"], row["start_us"]): row for row in rows}


def test_what_a_sink_keeps_folds_into_the_answers(spark: SparkSession, tmp_path: Path) -> None:
    source, store = history(tmp_path / "h", FIRST), tmp_path / "s"
    calls: list[int] = []
    kept: dict[int, list[dict[str, PlainData]]] = {}

    def sink(rows: DataFrame, batch: int) -> None:
        found = rows.toArrow().to_pylist()  # in the order of revisions
        assert kept.setdefault(batch, found) == found
        calls.append(batch)
        if calls == [0, 1]:
            raise ValueError("the sink is full")

    def query() -> SlackQuery:
        return SlackQuery(spark, FIXED, source, store, sink=sink)

    query().run_available()
    history(source, LATE)
    with pytest.raises(QueryProblem, match=r"^the sink is full$"):
        query().run_available()
    query().flush()
    lose_commit(store)
    history(source, [(40, 32.0)])
    query().flush()
    assert calls == [0, 1, 1, 2, 2, 3, 4]
    assert [len(kept[batch]) for batch in range(5)] == [4, 0, 5, 0, 2]
    columns = ("task", "key", "start_us", "end_us", "value", "n", "revision", "n_refused")
    rows = results(spark, store).select(*columns).toArrow().to_pylist()
    assert folded(kept) == folded({0: rows})
    assert {row["revision"] for row in kept[2]} == {0, 1}


def session_settings(spark: SparkSession) -> dict[str, str]:
    return {row.key: row.value for row in spark.sql("SET").collect()}


@pytest.mark.parametrize(("tasks", "partitions"), [(1, 1), (2, 2), (20, 2)])
def test_query_has_settings_of_its_own(
    spark: SparkSession, tmp_path: Path, tasks: int, partitions: int
) -> None:
    """Spark runs as many tasks at a time by default as it has partitions here: two."""
    assert spark.sparkContext.defaultParallelism == 2
    before, active, seen = session_settings(spark), SparkSession.getActiveSession(), list[Any]()

    def sink(_rows: DataFrame, _batch: int) -> None:
        seen.append(session_settings(spark))

    config = SlackConfig(size_us=10, slide_us=5, control="fixed", tasks=tasks)
    source = history(tmp_path / "h", FIRST, LATE)
    SlackQuery(spark, config, source, tmp_path / "s", sink=sink).run_available()
    assert seen == [before, before]
    assert session_settings(spark) == before
    assert SparkSession.getActiveSession() is active
    states = (tmp_path / "s" / "_checkpoint" / "state" / "0").glob("[0-9]*")
    assert len(list(states)) == partitions


def test_flush_that_was_interrupted_is_carried_out_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    query = SlackQuery(spark, FIXED, history(tmp_path / "h", FIRST, LATE), tmp_path / "s")
    query.run_available()
    tasks = query.store.known_tasks(require_view(query.store.root))
    query.store.request_flush(tasks, locate(tmp_path / "h"))  # ... and the driver is gone
    query.run_available()
    query.run_available()
    assert query.store.read_all("correction").num_rows == 1
    assert query.store.committed() == 2
    assert answers(spark, tmp_path / "s")[10] == (26.0, 3, 1, 1 / 3, "exact")


def test_bad_rows_of_a_history_are_rejected_and_the_stream_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = history(
        tmp_path / "h", [(3, 1.0), (None, 2.0), (4, None), (5, float("inf")), (1 << 62, 1.0)]
    )
    history(folder, [(6, 1.0)], key=None)
    query = SlackQuery(spark, FIXED, folder, tmp_path / "s")
    query.flush()
    reasons = [row["reason"] for row in query.store.read_all("rejected").to_pylist()]
    assert sorted(reasons) == [
        "event_time_us is NULL",
        "event_time_us lies beyond all calendars",
        "key is NULL",
        "value is NULL",
        "value is not a finite number",
    ]
    assert {start: row[0] for start, row in answers(spark, tmp_path / "s").items()} == {
        -5: 1.0,
        0: 1.0,
        5: None,
    }


@pytest.mark.fails_tasks
def test_wrong_order_of_files_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    folder = history(tmp_path / "h", FIRST)
    rows = pq.read_table(next(folder.glob("*.parquet")))
    append(folder, rows)
    with pytest.raises(QueryProblem, match=r"^arrival number 0 comes after 2: .* of their names$"):
        SlackQuery(spark, FIXED, folder, tmp_path / "s").run_available()


def _columns(folder: Path, **columns: pa.Array) -> Path:
    good: dict[str, PlainData] = {
        name: pa.array([1], kind) for name, kind in COLUMNS.items() if name != "key"
    }
    good["key"] = pa.array(["a"])
    table = pa.table({name: each for name, each in {**good, **columns}.items() if each is not None})
    append(folder, table)
    return folder


@pytest.mark.parametrize(
    ("columns", "groups", "sentence"),
    [
        ({"value": None}, (), "has no column 'value'; its columns are seq, source_id,"),
        ({"value": pa.array(["1"])}, (), "column 'value' of .* holds string; it must hold numbers"),
        ({"event_time_us": pa.array([1.0])}, (), "'event_time_us' .* double; .* hold integers"),
        ({"key": pa.array([1])}, (), "column 'key' of .* holds int64; it must hold text"),
        ({}, ("site",), "has no column 'site'"),
        ({"site": pa.array([1.5])}, ("site",), "'site' .* holds double; .* text or integers"),
        ({}, ("value",), "a grouping column cannot be called 'value'"),
        ({}, ("Batch",), "a grouping column cannot be called 'Batch'"),
        ({}, ("kind",), "a grouping column cannot be called 'kind'"),
    ],
)
def test_unreadable_sources_are_refused(
    tmp_path: Path, columns: dict[str, PlainData], groups: tuple[str, ...], sentence: str
) -> None:
    source = _columns(tmp_path / "h", **columns)
    with pytest.raises(InputProblem, match=sentence):
        SlackQuery(None, FIXED, source, tmp_path / "s", groups)  # type: ignore[arg-type]  # no session is needed
    assert not (tmp_path / "s").exists()


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputProblem, match=r"there is no folder .*nowhere"):
        SlackQuery(None, FIXED, tmp_path / "nowhere", tmp_path / "s")  # type: ignore[arg-type]  # no session is needed
    (tmp_path / "00000000.parquet").write_text("no")
    with pytest.raises(InputProblem, match=r"00000000\.parquet is not a Parquet file"):
        SlackQuery(None, FIXED, tmp_path, tmp_path / "s")  # type: ignore[arg-type]  # no session is needed
    (tmp_path / "x.parquet").write_text("no")
    with pytest.raises(InputProblem, match=r"x\.parquet has no number; the files of a history are"):
        SlackQuery(None, FIXED, tmp_path, tmp_path / "s")  # type: ignore[arg-type]  # no session is needed
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    "identity",
    [
        {},
        {"version": VERSION},
        HEAD,
        {**HEAD, "group_columns": [], "config": {"size_us": 0, "slide_us": 1}},
        {**HEAD, "group_columns": [["a", "date"]], "config": {"size_us": 1, "slide_us": 1}},
    ],
)
def test_store_without_an_identity(tmp_path: Path, identity: dict[str, PlainData]) -> None:
    source, store = history(tmp_path / "h", FIRST), tmp_path / "s"
    tables.create(locate(store), pa.schema([("kind", pa.string())]), identity)
    with pytest.raises(InputProblem, match=r"/s does not say to which query it belongs"):
        load_store(store, SLACK)
    with pytest.raises(InputProblem, match=r"/s does not say to which query it belongs"):
        SlackQuery(None, FIXED, source, store)  # type: ignore[arg-type]  # no session is needed


def test_stores_of_other_versions(tmp_path: Path) -> None:
    (tmp_path / "query.json").write_text('{"version": 5}')
    for use in (load_store, partial(open_store, config=FIXED, groups=())):
        with pytest.raises(InputProblem, match="is a store of an earlier version of Straggler"):
            use(tmp_path, room=SLACK)
    columns = pa.schema([("kind", pa.string())])
    tables.create(locate(tmp_path / "t"), columns, {**HEAD, "version": 7})
    with pytest.raises(InputProblem, match="was written by version 7 of the store, not 6"):
        load_store(tmp_path / "t", SLACK)


def test_store_of_another_query(spark: SparkSession, tmp_path: Path) -> None:
    source = history(tmp_path / "h", FIRST)
    SlackQuery(spark, FIXED, source, tmp_path / "s")
    before = sorted((tmp_path / "s").rglob("*"))
    other = SlackConfig(size_us=10, slide_us=2, control="fixed", gamma_us=100)
    with pytest.raises(InputProblem, match="belongs to another query: its slide_us is 5, not 2"):
        SlackQuery(spark, other, source, tmp_path / "s")
    with pytest.raises(InputProblem, match="neither an empty folder nor the store of a query"):
        SlackQuery(spark, FIXED, source, tmp_path / "h")
    with pytest.raises(InputProblem, match="is not the store of a query"):
        results(spark, tmp_path / "h")
    assert sorted((tmp_path / "s").rglob("*")) == before
