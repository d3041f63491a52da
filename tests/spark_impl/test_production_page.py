"""The examples of docs/production.md run: sinks hold every answer once, and old histories move."""

import json
import os
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import straggler
from spark_impl.runtime import histories
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.runtime.stores import claim
from spark_impl.script.store import ROOM, VERSION, ScriptStore
from tests.house.repository import ROOT
from tests.spark_impl.rooms_under_test import FIRST as FIRST_READINGS
from tests.spark_impl.rooms_under_test import LAST as LAST_READINGS
from tests.spark_impl.rooms_under_test import ROOMS, land

PAGE = (ROOT / "docs" / "production.md").read_text(encoding="utf-8")
COLUMNS = ("key", "start_us", "value", "n", "revision")
Answer: TypeAlias = tuple[str, int, float, int, int]
FIRST: list[Answer] = [("a", 0, 1.0, 1, 0), ("b", 0, 2.0, 1, 0)]
REVISED: list[Answer] = [("a", 0, 6.0, 2, 1), ("a", 10, 4.0, 1, 0)]
LATEST = [("a", 0, 6.0, 2, 1), ("a", 10, 4.0, 1, 0), ("b", 0, 2.0, 1, 0)]


def example(name: str, *replaced: str) -> Callable[..., Any]:
    """Return a function of the page, perhaps with a text of it replaced by another one."""
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        if f"def {name}(" in code:
            names: dict[str, Any] = {}
            exec(code.replace(*replaced) if replaced else code, names)
            found: Callable[..., Any] = names[name]
            return found
    raise LookupError(name)


def test_the_job_lands_files_and_answers(spark: SparkSession, tmp_path: Path) -> None:
    job, expression, several = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[:3]
    begin, loop, _ = job.replace('"/data/', f'"{tmp_path}/').partition("\nrunning = ")
    assert loop
    (tmp_path / "incoming").mkdir()
    rows = [f"a,2013-01-01T00:00:{second:02},1" for second in (3, 12, 1)]
    (tmp_path / "incoming" / "rows.csv").write_text("\n".join(rows), encoding="utf-8")
    names: dict[str, Any] = {}
    exec(begin, names)
    names["landing"].run_available()
    names["query"].flush()
    found = straggler.slack.results(spark, tmp_path / "store").collect()
    assert {row.state for row in found} == {"exact"}
    assert sum(row.n for row in found) == 3 * 5  # each reading is in five windows
    assert straggler.slack.progress(tmp_path / "store").pending_pairs == 0

    begin, start, _ = expression.replace('"/data/', f'"{tmp_path}/').partition("\nrunning = ")
    assert start
    exec(begin, names)
    names["stored"].flush()
    landed = names["stored"].results().select(*found[0].asDict())
    assert sorted(landed.collect()) == sorted(found)

    begin, stored, _ = several.partition(".store_in(")
    assert stored
    exec(begin, names)
    assert [*names["stored"].configs] == ["sum_watts", "avg_celsius", "count"]


def answers(spark: SparkSession, rows: Sequence[Answer]) -> DataFrame:
    """Return answers as a sink gets them."""
    kinds = "task int, key string, start_us long, end_us long, value double, n long, revision int"
    full = [(0, key, start_us, start_us + 10, *more) for key, start_us, *more in rows]
    return spark.createDataFrame(full, kinds)


def hand_over(sink: Callable[[DataFrame, int], None], spark: SparkSession) -> None:
    """Give a sink two micro-batches, each twice as after a crash."""
    for batch, rows in enumerate((FIRST, FIRST, REVISED, REVISED)):
        sink(answers(spark, rows), batch // 2)


def test_folders_of_micro_batches_hold_each_answer_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    hand_over(example("to_folders", '"answers/', f'"{tmp_path}/'), spark)
    rows = spark.read.parquet(str(tmp_path))
    found = sorted(tuple(row) for row in rows.select(*COLUMNS, "batch").collect())
    assert found == sorted([*((*row, 0) for row in FIRST), *((*row, 1) for row in REVISED)])


def test_a_table_keeps_the_latest_answer_of_every_window(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hand_over(example("to_table"), spark)
    example("to_table")(answers(spark, FIRST), 0)  # an old answer never replaces a newer one
    with closing(sqlite3.connect(tmp_path / "answers.db")) as database:
        rows = database.execute(f"SELECT {', '.join(COLUMNS)} FROM answers").fetchall()
    assert sorted(rows) == LATEST


def test_messages_have_the_window_as_their_key(spark: SparkSession) -> None:
    rows = example("messages")(answers(spark, REVISED), 7).collect()
    assert [json.loads(row.key) for row in rows] == [
        {"task": 0, "key": "a", "start_us": start_us} for start_us in (0, 10)
    ]
    assert json.loads(rows[0].value) == {
        **dict(zip(COLUMNS, REVISED[0], strict=True)),
        "task": 0,
        "end_us": 10,
        "batch": 7,
    }


def test_a_history_without_numbers_is_numbered_in_the_order_of_its_times(tmp_path: Path) -> None:
    old = tmp_path / "history"
    for time_s, (name, seq) in enumerate((("b.parquet", 0), ("a.parquet", 1), ("_c.parquet", 2))):
        histories.write_parquet(pa.table({"seq": [seq]}), locate(old / name))
        os.utime(old / name, (time_s, time_s))
    example("number_files")(old, tmp_path / "numbered")
    files = histories.files_of(locate(tmp_path / "numbered"))
    assert [pq.read_table(file.path).column("seq").to_pylist() for file in files] == [[0], [1]]


def script_reader(folder: Location, *following: int) -> Location:
    """Write what a query of scripts leaves behind that goes on with these files."""
    claim(ScriptStore(folder), {"version": VERSION, "room": ROOM})
    checkpoint = folder / "_checkpoint"
    for batch, number in enumerate(following):
        offset = json.dumps({"next": number, "first": 0, "requests": [], "spent": []})
        planned = f'v1\n{{"conf":{{}}}}\n{offset}'.encode()
        (checkpoint / "offsets" / str(batch)).write_bytes(planned)
        (checkpoint / "commits" / str(batch)).write_bytes(b"v1\n{}")
    return folder


def test_the_newest_files_of_a_history_are_kept(tmp_path: Path) -> None:
    source = locate(tmp_path / "history")
    for number in range(8):
        histories.append(source, pa.table({"seq": [number], "key": ["a"]}))
    one, other = (
        script_reader(locate(tmp_path / "one"), 8),
        script_reader(locate(tmp_path / "other"), 3, 6),
    )
    keep_newest = example("keep_newest")
    assert keep_newest(tmp_path / "history", 10, [one, other]) == 0
    assert keep_newest(tmp_path / "history", 4, [one, other]) == 4
    with pytest.raises(InputProblem, match=r"^number is 7; it can be at most 6, because .*/other "):
        keep_newest(tmp_path / "history", 1, [one, other])
    assert histories.numbers(source) == range(4, 8)


def test_duckdb_polars_and_plain_spark_read_a_store(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("duckdb"), pytest.importorskip("polars")
    history, store = tmp_path / "history", tmp_path / "store"
    for readings in (FIRST_READINGS, LAST_READINGS):
        land(history, readings)
    query = ROOMS["slack"].open(spark, history, store, sink=lambda *_: None)
    query.flush()
    results = straggler.slack.results(spark, store).where("value IS NOT NULL").collect()
    latest = sorted((row.key, row.start_us, row.value) for row in results)
    assert any(row.revision for row in results), "no window was corrected"
    assert sorted(example("latest")(str(store))) == latest
    ours = sorted(query.store.at().read_kind("result").column("start_us").to_pylist())
    assert sorted(example("first_answers")(str(store))["start_us"].to_list()) == ours
    rows = example("first_answers_on_spark")(spark, str(store)).collect()
    assert sorted(row.start_us for row in rows) == ours
