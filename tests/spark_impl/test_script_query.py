"""Whole queries of scripts: restarts, results by hand, bad input, scripts that change."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from model.vocabulary import Event, Fault, ScriptConfig
from model.vocabulary.script.config import END_US, Hosted, Rejected, Result, Undefined
from model.vocabulary.script.tree import (
    Across,
    Arithmetic,
    Name,
    Number,
    Sensor,
    Statement,
    Union,
    Window,
    Workflow,
)
from spark_impl.runtime import tables
from spark_impl.runtime.histories import append, history_schema
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.runtime.stores import Draft, require_view
from spark_impl.runtime.systems import lose_commit
from spark_impl.runtime.tables import TableWriter
from spark_impl.script import (
    QueryProblem,
    ScriptQuery,
    compile_plan,
    rejected,
    results,
    run_workloads,
    undefined,
)
from spark_impl.script.store import ScriptStore, load_store, open_store
from tests.spark_impl import brute_script
from tests.spark_impl.script_cases import random_workload

MEAN = Window("avg", Sensor("A"), 4, 2)
FLOW = Workflow(
    "hall", (Statement("mean", MEAN), Statement("half", Arithmetic("/", Name("mean"), Number(2.0))))
)
CONFIG = ScriptConfig((FLOW,), (("A", 3_600), ("B", 3_600)), lateness_us=1_000)


def history(folder: Path, *batches: list[tuple[str, int, float]], start: int = 0) -> Path:
    """Return a folder of micro-batches from (sensor, event time, value)."""
    for rows in batches:
        events = [Event(start + n, start + n, *row, 0) for n, row in enumerate(rows)]
        start += len(rows)
        append(folder, pa.Table.from_pylist([e._asdict() for e in events], schema=history_schema()))
    return folder


def answers(spark: SparkSession, *stores: Path) -> dict[tuple[str, str], list[tuple[int, float]]]:
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for row in results(spark, *stores).orderBy("ts_us", "value").collect():
        found.setdefault((row.workflow, row.name), []).append((row.ts_us, row.value))
    return found


BOTH_WAYS = Workflow(
    "both ways",
    (
        Statement("x", Window("stddev", Sensor("A"), 4, 2)),
        Statement("y", Window("max", Union((Sensor("B"), Name("x"))), 6, 3)),
        Statement("v", Window("avg", Sensor("B"), 4, 4)),
        Statement("z", Across("sum", (Name("v"), Sensor("A")))),
        Statement("w", Arithmetic("/", Sensor("A"), Name("x"))),
    ),
)
"""Sensor A is on worker 0, B on worker 1; each worker has results for the other."""


def test_pack_equals_the_specification(spark: SparkSession, tmp_path: Path) -> None:
    """The watermark follows the disorder; the query is interrupted, and has two workers."""
    config = replace(CONFIG, workflows=(BOTH_WAYS, FLOW), workers=2, cap_percent=100)
    config = replace(config, lateness_us=9_000, watermark="scaled", cluster=4)
    shares = [compile_plan(config).share(worker) for worker in range(2)]
    assert all(share.sent and share.foreign for share in shares)
    cases = {
        f"case {seed}": random_workload(seed, config, size=30).with_(
            faults=(Fault("kill", 0),), cuts=(20,), flush=seed % 4 > 0
        )
        for seed in range(12)
    }
    traces = run_workloads(spark, cases, tmp_path)
    seen: Counter[str] = Counter()
    for name, case in cases.items():
        expected = brute_script.run(case)
        for word in (Result, Undefined, Rejected):
            assert traces[name].of(word) == expected.of(word), (name, word.__name__)
            seen[word.__name__] += len(expected.of(word))
        assert traces[name].of(Hosted) == (Hosted(0, "A"), Hosted(1, "B"))
    assert min(seen.values()) > 10
    last = load_store(tmp_path / "store")[1].last
    left = [path.name for path in (tmp_path / "store" / "_control").iterdir()]
    assert left == [f"00000000-messages-{last - 1:08d}.parquet"], "the last that were sent stay"


def test_results_by_hand(spark: SparkSession, tmp_path: Path) -> None:
    source = history(tmp_path / "h", [("A", 500, 2.0), ("A", 2_500, 4.0), ("B", 9_000, 1.0)])
    query = ScriptQuery(spark, CONFIG, source, tmp_path / "s")
    assert query.known_until_us() == 0
    query.run_available()
    assert answers(spark, tmp_path / "s") == {}
    assert query.known_until_us() == 1_000
    history(source, [("A", 6_100, float("nan")), ("A", 5_900, 9.0), ("A", 500, 8.0)], start=3)
    query.run_available()
    found = {("hall", "mean"): [(1_000, 2.0), (3_000, 3.0)]}
    found["hall", "half"] = [(1_000, 1.0), (3_000, 1.5)]
    assert answers(spark, tmp_path / "s") == found
    assert query.known_until_us() == 5_000
    refused = rejected(spark, tmp_path / "s").orderBy("seq").collect()
    assert [(row.seq, row.reason[:5]) for row in refused] == [(3, "value"), (5, "event")]
    query.flush()
    found["hall", "mean"] += [(5_000, 6.5), (7_000, 9.0)]
    found["hall", "half"] += [(5_000, 3.25), (7_000, 4.5)]
    assert answers(spark, tmp_path / "s") == found
    assert query.known_until_us() == END_US
    assert undefined(spark, tmp_path / "s").count() == 0


NOISE = np.random.default_rng(7)
READINGS = [
    [
        (str(NOISE.choice(["A", "B"])), int(ms) * 1_000, float(NOISE.integers(-4, 5)))
        for ms in range(10 * batch, 10 * batch + 10)
    ]
    for batch in range(12)
]


def cut_over(spark: SparkSession, place: Path, new: Workflow, at_us: int) -> tuple[Any, Any]:
    """Return results of an old script, then of a new one; and both recomputed naively."""
    source = history(place / "h", *READINGS[:8])
    old = ScriptQuery(spark, CONFIG, source, place / "old", files=4)
    old.run_available()
    changed = replace(CONFIG, workflows=(new,))
    later = ScriptQuery(spark, changed, source, place / "new", since_us=at_us, files=12)
    history(source, *READINGS[8:], start=80)
    old.run_available()
    assert old.known_until_us() >= at_us
    later.flush()
    events = tuple(
        Event(n, n, *row, 0) for n, row in enumerate(row for batch in READINGS for row in batch)
    )
    expected: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for config, first, last in ((CONFIG, 0, at_us), (changed, at_us, END_US)):
        workload = random_workload(0, config).with_(arrivals=events, cuts=(), flush=True)
        for workflow, name, ts_us, value in brute_script.run(workload).of(Result):
            if first <= ts_us < last:
                expected.setdefault((workflow, name), []).append((ts_us, value))
    found = answers(spark, place / "old", place / "new")
    return found, {key: sorted(rows) for key, rows in expected.items()}


def test_scripts_that_change(spark: SparkSession, tmp_path: Path) -> None:
    """A window over windows reaches back 10 ms, not to the beginning."""
    slow = Window("max", Union((MEAN, Sensor("B"))), 6, 3)
    new = Workflow("hall", (Statement("mean", slow), Statement("more", MEAN)))
    found, expected = cut_over(spark, tmp_path, new, 60_000)
    assert found == expected
    assert {name for _, name in found} == {"mean", "half", "more"}
    assert len(found["hall", "mean"]) > 30


def test_tuples_from_before_the_change_are_remembered(spark: SparkSession, tmp_path: Path) -> None:
    """Operations and watermarks that follow the disorder remember earlier tuples.

    B was silent for long when the new script, which needs its latest value, came into force. C has
    had a tuple from long before its first window; without it the last tuple would be late.
    """
    rows = [("B", 1_000, 5.0), *(("A", 1_000 * ms, float(ms)) for ms in range(2, 40))]
    rows += [("C", 31_000, 1.0), ("C", 5_000, 8.0), ("C", 32_000, 2.0), ("C", 30_500, 4.0)]
    source = history(tmp_path / "h", rows)
    both = Statement("both", Arithmetic("+", Sensor("A"), Sensor("B")))
    total = Statement("total", Window("sum", Sensor("C"), 4, 2))
    new = ScriptConfig(
        (Workflow("hall", (both, total)),),
        (("A", 3_600), ("B", 3_600), ("C", 3_600)),
        lateness_us=15_000,
        watermark="disorder",
    )
    query = ScriptQuery(spark, new, source, tmp_path / "s", since_us=30_000)
    query.flush()
    assert answers(spark, tmp_path / "s") == {
        ("hall", "both"): [(1_000 * ms, ms + 5.0) for ms in range(30, 40)],
        ("hall", "total"): [(31_000, 5.0), (33_000, 7.0), (35_000, 2.0)],
    }
    with pytest.raises(InputProblem, match=r"its watermark is 'disorder', not 'fixed'$"):
        ScriptQuery(spark, replace(new, watermark="fixed"), source, tmp_path / "s", since_us=30_000)
    with pytest.raises(InputProblem, match=r"its cluster is 50, not 7$"):
        ScriptQuery(spark, replace(new, cluster=7), source, tmp_path / "s", since_us=30_000)


def test_stores_of_others(spark: SparkSession, tmp_path: Path) -> None:
    source, store = history(tmp_path / "h", [("A", 1, 1.0)]), tmp_path / "s"
    ScriptQuery(spark, CONFIG, source, store)
    other = replace(CONFIG, workflows=(Workflow("hall", FLOW.statements[:1]),))
    with pytest.raises(InputProblem, match=r"its workflow 'hall' is not the same; .* new store"):
        ScriptQuery(spark, other, source, store)
    with pytest.raises(InputProblem, match=r"its workers is 1, not 3$"):
        ScriptQuery(spark, replace(CONFIG, workers=3), source, store)
    with pytest.raises(InputProblem, match=r"its since_us is 0, not 2000$"):
        ScriptQuery(spark, CONFIG, source, store, since_us=2_000)
    with pytest.raises(InputProblem, match="since_us is 1500; it must be whole milliseconds"):
        ScriptQuery(spark, CONFIG, source, tmp_path / "t", since_us=1_500)
    with pytest.raises(InputProblem, match="answer since 0, 0: they must be in this order"):
        results(spark, store, store)
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "mine.txt").write_text("keep")
    with pytest.raises(InputProblem, match="neither an empty folder nor the store of a query"):
        ScriptQuery(spark, CONFIG, source, tmp_path / "t")
    with pytest.raises(InputProblem, match="a grouping column cannot be called 'messages'"):
        ScriptQuery(spark, CONFIG, source, tmp_path / "u", ["messages"])
    with pytest.raises(InputProblem, match=f"there is no folder {tmp_path / 'none'}"):
        ScriptQuery(spark, CONFIG, tmp_path / "none", tmp_path / "u")
    assert not (tmp_path / "u").exists()
    plain, columns = require_view(locate(store)).identity, pa.schema([("kind", pa.string())])
    tables.create(locate(tmp_path / "v"), columns, {**plain, "config": {}})
    with pytest.raises(InputProblem, match="does not say to which query it belongs"):
        ScriptQuery(spark, CONFIG, source, tmp_path / "v")
    tables.create(locate(tmp_path / "w"), columns, {**plain, "room": "slack"})
    with pytest.raises(InputProblem, match="belongs to a query of room 'slack', not 'script'"):
        results(spark, tmp_path / "w")


@pytest.mark.fails_tasks
@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("event_time_us", -1, "event_time_us of sensor 'A' is -1; it must be from 0 to below 2^61"),
        ("source_id", None, "source_id of sensor 'A' is NULL in some row"),
    ],
)
def test_impossible_arrivals_are_refused(
    spark: SparkSession, tmp_path: Path, column: str, value: Any, sentence: str
) -> None:
    source = history(tmp_path / "h", [("B", 1, 1.0), ("A", 2, 2.0)])
    (path,) = source.glob("*.parquet")
    table = pq.read_table(path)
    place = table.schema.get_field_index(column)
    rows = [table.column(column)[0].as_py(), value]
    pq.write_table(table.set_column(place, column, pa.array(rows, table.schema[place].type)), path)
    query = ScriptQuery(spark, CONFIG, source, tmp_path / "s")
    with pytest.raises(QueryProblem, match=f"^{sentence.replace('^', '.')}$"):
        query.run_available()
    assert query.store.committed() == -1


@pytest.mark.fails_tasks
def test_file_that_is_not_complete_yet(spark: SparkSession, tmp_path: Path) -> None:
    source = history(tmp_path / "h", [("A", 1, 1.0)])
    query = ScriptQuery(spark, CONFIG, source, tmp_path / "s")
    (source / "00000001.parquet").touch()
    with pytest.raises(QueryProblem, match=r"00000001\.parquet is not a Parquet file, or it "):
        query.run_available()
    assert query.store.committed() == 0
    (source / "00000001.parquet").unlink()
    history(source, [("A", 2_500, 4.0), ("B", 9_000, 1.0)], start=1)
    query.flush()
    found = answers(spark, tmp_path / "s")["hall", "mean"]
    assert found == [(1_000, 1.0), (3_000, 2.5), (5_000, 4.0)]


@pytest.mark.fails_tasks
def test_files_that_are_out_of_order(spark: SparkSession, tmp_path: Path) -> None:
    source = history(tmp_path / "h", [("A", 1, 1.0)], start=7)
    history(source, [("A", 2, 1.0)])
    with pytest.raises(QueryProblem, match=r"^arrival number 0 comes after 7: .*their names"):
        ScriptQuery(spark, CONFIG, source, tmp_path / "s").run_available()


def test_history_that_is_empty_at_first(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "h").mkdir()
    query = ScriptQuery(spark, CONFIG, tmp_path / "h", tmp_path / "s")
    query.flush()
    assert answers(spark, tmp_path / "s") == {}
    running = query.start()
    try:
        running.processAllAvailable()
        history(tmp_path / "h", [("A", 500, 2.0), ("A", 4_500, 4.0)])
        running.processAllAvailable()
    finally:
        running.stop()
    assert answers(spark, tmp_path / "s")["hall", "mean"] == [(1_000, 2.0)]


def test_checkpoint_outside_the_store(spark: SparkSession, tmp_path: Path) -> None:
    source = history(tmp_path / "h", *READINGS[:2])
    query = ScriptQuery(spark, CONFIG, source, tmp_path / "s", checkpoint=tmp_path / "c")
    query.run_available()
    history(source, READINGS[2], start=20)
    query.run_available()
    assert query.store.committed() == 2
    assert (tmp_path / "c" / "commits" / "2").exists()
    assert not (tmp_path / "s" / "_checkpoint").exists()
    sentence = r"/s/_checkpoint is not the checkpoint of .*/s, whose tables are at micro-batch 2$"
    with pytest.raises(InputProblem, match=sentence):
        ScriptQuery(spark, CONFIG, source, tmp_path / "s").run_available()


def test_sink_that_replaces_has_every_result_once(spark: SparkSession, tmp_path: Path) -> None:
    """A crash comes between the sink and Spark's commit."""
    source, store = history(tmp_path / "h", *READINGS[:2]), tmp_path / "s"
    calls: list[int] = []
    kept: dict[int, list[Row]] = {}

    def sink(rows: DataFrame, batch: int) -> None:
        found = sorted(rows.collect())
        assert kept.get(batch, found) == found
        calls.append(batch)
        kept[batch] = found

    ScriptQuery(spark, CONFIG, source, store, sink=sink).run_available()
    lose_commit(store)
    ScriptQuery(spark, CONFIG, source, store, sink=sink).flush()
    assert calls == [0, 1, 1, 2]
    found = results(spark, store)
    assert sorted(row for rows in kept.values() for row in rows) == sorted(found.collect())
    assert kept[1][0].asDict().keys() == {*found.columns}
    assert all(kept.values())


def test_workers_stand_where_their_last_micro_batch_left_them(tmp_path: Path) -> None:
    store = ScriptStore(locate(tmp_path / "s"))
    open_store(store, CONFIG)
    writer = TableWriter(store.root)
    for batch in range(5):
        known = {"worker": batch % 2, "known_us": 1_000 * batch}
        draft = Draft(store, writer.view, batch)
        draft.write("worker", pa.Table.from_pylist([known], store.schema("worker")), "driver")
        draft.commit(writer)
    assert store.known(writer.view) == {(): {0: 4_000, 1: 3_000}}


def test_query_that_is_left_running(spark: SparkSession, tmp_path: Path) -> None:
    """Workers have results for each other all the time; a second query takes over."""
    config = replace(CONFIG, workflows=(BOTH_WAYS,), workers=2, cap_percent=100)
    workload = random_workload(2, config, size=60).with_(flush=False)
    source = history(tmp_path / "h", [(e.key, e.event_time_us, e.value) for e in workload.arrivals])
    first, second = (ScriptQuery(spark, config, source, tmp_path / "s") for _ in range(2))
    running = first.start()
    try:
        running.processAllAvailable()
        second.run_available()  # Spark stops the first one
    finally:
        running.stop()
    events = tuple(event._replace(source_id=event.seq) for event in workload.arrivals)
    expected = brute_script.run(workload.with_(arrivals=events)).of(Result)
    found = [Result(*row) for row in results(spark, tmp_path / "s").collect()]
    assert sorted(found) == list(expected)
    assert {result.name for result in found} == {"w", "x", "y", "v", "z"}
