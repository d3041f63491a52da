"""Landed and rejected rows; a crash or a restart changes nothing."""

import json
import math
import os
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import SlackConfig, stable_hash
from model.vocabulary.settings import PlainData
from spark_impl.runtime.histories import COLUMNS, append
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.queries import QueryProblem
from spark_impl.runtime.storage import InputProblem, Location
from spark_impl.slack import SlackQuery, results

SECOND = 1_000_000
TEXT = "ts string, k string, v string"
Lines = Callable[..., DataFrame]


@pytest.fixture
def lines(spark: SparkSession, tmp_path: Path) -> Lines:
    """Return a stream of the CSV files in the folder ``in``, all columns text."""
    (tmp_path / "in").mkdir()

    def read(schema: str = TEXT, **options: Any) -> DataFrame:
        reader = spark.readStream.schema(schema).options(header=True, **options)
        return reader.csv(str(tmp_path / "in"))

    return read


def put(tmp_path: Path, name: str, text: str, at: int | None = None) -> None:
    """Write a file into the folder ``in``, perhaps with a modification time."""
    path = tmp_path / "in" / name
    path.write_text(text, encoding="utf-8")
    if at is not None:
        os.utime(path, (at, at))


def landing_of(stream: DataFrame, root: Path, **columns: Any) -> Landing:
    wanted = {"event_time": "ts", "value": "v", "key": "k", "time_unit": "s", **columns}
    return Landing(stream, root / "history", root / "checkpoint", **wanted)


def rows(root: Path, *names: str) -> list[tuple[Any, ...]]:
    """Return some columns of the arrivals of a history, in the order of its files."""
    files = sorted((root / "history").glob("[!._]*.parquet"))
    return [
        tuple(row[name] for name in names)
        for path in files
        for row in pq.read_table(path).to_pylist()
    ]


def content(root: Path) -> dict[str, tuple[bytes, int]]:
    """Return the content of a history, with modification times; files of workers do not count."""
    return {
        re.sub(r"part-\w+-", "part-", str(path.relative_to(root))): (
            path.read_bytes(),
            path.stat().st_mtime_ns,
        )
        for path in (root / "history").rglob("*")
        if path.is_file() and "_scratch" not in path.parts
    }


def data(found: dict[str, tuple[bytes, int]]) -> dict[str, bytes]:
    return {name: bytes_ for name, (bytes_, _) in found.items()}


def rows_in(found: dict[str, tuple[bytes, int]]) -> dict[str, object]:
    """Return the rows of files, without the metadata, in which histories have ids of their own."""
    return {
        name: pq.read_table(pa.BufferReader(content)).to_pylist() if content else content
        for name, (content, _) in found.items()
    }


def forget_commit(root: Path, batch: int) -> None:
    """Make the checkpoint look as if Spark had stopped before a commit."""
    for path in (root / "checkpoint" / "commits").glob(f"*{batch}*"):
        path.unlink()


def test_unreadable_rows_are_set_apart_with_the_reason(lines: Lines, tmp_path: Path) -> None:
    put(
        tmp_path,
        "a.csv",
        "ts,k,v,id\n5,a,1.5,70\n,a,1,71\nsoon,b,2,72\n6,,3,73\n7,b,1f,74\n8,é,-2,75\n",
    )
    put(tmp_path, "b.csv", "ts,k,v,id\n9,a,NaN,7.5\n9,a,NaN,\n9,a,NaN,76\n")
    made = landing_of(lines(TEXT + ", id string"), tmp_path, source_id="id")
    made.run_available()
    columns = ("seq", "source_id", "source_text", "key", "event_time_us", "value")
    *read, (*last, value) = rows(tmp_path, *columns)
    assert read == [
        (0, 70, "70", "a", 5 * SECOND, 1.5),
        (1, 74, "74", "b", 7 * SECOND, None),
        (2, 75, "75", "é", 8 * SECOND, -2.0),
        (3, stable_hash("7.5"), "7.5", "a", 9 * SECOND, pytest.approx(math.nan, nan_ok=True)),
    ]
    assert last == [4, 76, "76", "a", 9 * SECOND]
    assert math.isnan(value)
    bad = {row.text or json.loads(row.row)["id"]: row for row in made.rejected().collect()}
    assert {at: (row.column, row.reason, row.seq) for at, row in bad.items()} == {
        "71": ("ts", "is missing", None),
        "soon": ("ts", "is not a number of s", None),
        "73": ("k", "is missing", None),
        "1f": ("v", "is not a number", 1),
        None: ("id", "is missing", None),
    }
    assert json.loads(bad["soon"].row) == {"ts": "soon", "k": "b", "v": "2", "id": "72"}
    assert made.counts() == (5, 5)
    assert {row.batch for row in bad.values()} == {0}


def test_a_history_has_the_columns_that_queries_read(lines: Lines, tmp_path: Path) -> None:
    put(tmp_path, "a.csv", "ts,k,v,site,case\n5,a,1,7,x\n6,b,2,8,\n6,b,2,,y\n")
    stream = lines(TEXT + ", site int, case string")
    made = landing_of(stream, tmp_path, key=None, group_columns=("site", "case"))
    made.run_available()
    (path,) = (tmp_path / "history").glob("*.parquet")
    wanted = {**COLUMNS, "site": pa.int64(), "case": pa.string()}
    assert pq.read_schema(path) == pa.schema(wanted)
    assert rows(tmp_path, "seq", "source_id", "key", "site", "case") == [(0, 0, "", 7, "x")]
    assert [(row.column, row.reason) for row in made.rejected().orderBy("column").collect()] == [
        ("case", "is missing"),
        ("site", "is missing"),
    ]


def test_files_of_a_micro_batch_arrive_in_the_order_of_their_times(
    lines: Lines, tmp_path: Path
) -> None:
    put(tmp_path, "y.csv", "ts,k,v\n1,a,1\n", at=2_000)
    put(tmp_path, "z.csv", "ts,k,v\n0,a,0\n", at=1_000)
    put(tmp_path, "x.csv", "ts,k,v\n" + "".join(f"{n},a,{n}\n" for n in range(3, 9)), at=3_000)
    put(tmp_path, "b.csv", "ts,k,v\n2,a,2\n", at=2_000)
    landing_of(lines(), tmp_path).run_available()
    assert rows(tmp_path, "seq", "value") == list(enumerate([0, 2, 1, 3, 4, 5, 6, 7, 8]))
    assert len(list((tmp_path / "history").glob("*.parquet"))) == 1


def test_a_restart_continues_after_the_last_arrival(lines: Lines, tmp_path: Path) -> None:
    put(tmp_path, "a.csv", "ts,k,v\n1,a,1\n2,a,2\n")
    landing_of(lines(), tmp_path).run_available()
    put(tmp_path, "b.csv", "ts,k,v\nsoon,a,3\n")  # nothing arrives in this micro-batch
    landing_of(lines(), tmp_path).run_available()
    (path,) = (tmp_path / "history").glob("*.parquet")
    before = pq.read_table(path)
    late = pa.array([1 << 60] * 2)  # as if the clock of the machine were set back afterwards
    where = before.column_names.index("arrival_us")
    pq.write_table(before.set_column(where, "arrival_us", late), path)
    put(tmp_path, "c.csv", "ts,k,v\n4,a,4\n5,a,5\n")
    made = landing_of(lines(), tmp_path)
    made.run_available()
    assert rows(tmp_path, "seq", "source_id", "value") == [
        (0, 0, 1.0),
        (1, 1, 2.0),
        (2, 2, 4.0),
        (3, 3, 5.0),
    ]
    assert {arrival for (arrival,) in rows(tmp_path, "arrival_us")} == {1 << 60}
    assert sorted(p.name for p in (tmp_path / "history").glob("*.parquet")) == [
        "00000000.parquet",
        "00000001.parquet",
    ]
    assert made.counts() == (4, 1)


def test_a_replayed_micro_batch_changes_nothing(lines: Lines, tmp_path: Path) -> None:
    put(tmp_path, "a.csv", "ts,k,v\n1,a,1\n,a,1\n", at=1_000)
    put(tmp_path, "b.csv", "ts,k,v\n2,a,1\n,a,2\n3,b,4\n", at=2_000)
    landing_of(lines(maxFilesPerTrigger=1), tmp_path).run_available()
    before = content(tmp_path)
    assert len(before) == 5
    forget_commit(tmp_path, 1)
    landing_of(lines(maxFilesPerTrigger=1), tmp_path).run_available()
    assert content(tmp_path) == before
    # The driver stopped before the file had its name: the same bytes are written again.
    forget_commit(tmp_path, 1)
    (tmp_path / "history" / "00000001.parquet").unlink()
    landing_of(lines(maxFilesPerTrigger=1), tmp_path).run_available()
    assert data(content(tmp_path)) == data(before)


def test_a_replayed_micro_batch_restores_the_state_of_its_stream(
    lines: Lines, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        put(tmp_path, f"{name}.csv", f"ts,k,v\n1,a,1\n2,{name},2\n")
        made = landing_of(lines().dropDuplicates(["ts", "k"]), tmp_path)
        made.run_available()
        forget_commit(tmp_path, 0)
    assert sorted(rows(tmp_path, "event_time_us", "key")) == [
        (SECOND, "a"),
        (2 * SECOND, "a"),
        (2 * SECOND, "b"),
    ]


class Crash(Exception):  # noqa: N818  # not an error of the program
    """End of the process, in the middle of its work."""


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("table", ["batch=0", "history"])
def test_a_crash_at_any_write_is_repaired_by_the_next_run(
    lines: Lines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, named: bool
) -> None:
    put(tmp_path, "a.csv", "ts,k,v,at\n1,a,1,100\n,a,1,100\n2,b,2,100\n")
    columns = {"arrival": "at"}
    stream = partial(lines, TEXT + ", at string")
    landing_of(stream(), tmp_path / "whole", **columns).run_available()
    publish = Location.publish

    def publish_and_stop(file: Location, to: Location) -> None:
        if to.parent.name != table or named:
            publish(file, to)
        if to.parent.name == table:
            raise Crash

    broken = landing_of(stream(), tmp_path / "broken", **columns)
    with monkeypatch.context() as patch:
        patch.setattr(Location, "publish", publish_and_stop)
        with pytest.raises(QueryProblem):
            broken.run_available()
    zombie = tmp_path / "broken" / "history" / "_scratch" / "first" / "landed-1.parquet"
    zombie.parent.mkdir(parents=True)
    zombie.write_bytes(b"from a worker of the first run, days ago")
    for path in (zombie, zombie.parent):
        os.utime(path, (1, 1))
    repaired = landing_of(stream(), tmp_path / "broken", **columns)
    repaired.run_available()
    whole, broken_too = content(tmp_path / "whole"), content(tmp_path / "broken")
    note = {"history/_landing.json": (b"", 0)}
    assert rows_in(whole | note) == rows_in(broken_too | note)
    assert repaired.counts() == (2, 1)
    assert not zombie.parent.exists()


def test_typed_columns_are_converted(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    typed = {
        "ts": pa.array([1_000, 2_000], pa.int64()),
        "at": pa.array([3 * SECOND + 7] * 2, pa.timestamp("us", "UTC")),
        "k": pa.array([b"a\xc3\xa9", b"\xff"]),
        "v": pa.array([2, 3], pa.int32()),
        "id": pa.array([9, 10], pa.int16()),
    }
    pq.write_table(pa.table(typed), tmp_path / "in" / "a.parquet")
    schema = "ts long, at timestamp, k binary, v int, id short"
    stream = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
    made = landing_of(stream, tmp_path, time_unit="ms", arrival="at", source_id="id")
    made.run_available()
    assert rows(tmp_path, *COLUMNS) == [(0, 9, "aé", SECOND, 2.0, 3 * SECOND + 7)]
    (bad,) = made.rejected().collect()
    assert (bad.column, bad.reason, bad.text) == ("k", "is not text in UTF-8", "ff")


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"value": "w"}, "the stream has no column 'w'; its columns are ts, k, v, n, list"),
        ({"group_columns": ("site",)}, "the stream has no column 'site'; its columns are"),
        ({"event_time": "n", "time_unit": "timestamp"}, "column 'n' holds bigint, not a time with"),
        ({"key": "list"}, "column 'list' holds array<int>, not text"),
        ({"value": "list"}, "column 'list' holds array<int>, not a number"),
        ({"group_columns": ("list",)}, "column 'list' holds array<int>, not text or a whole"),
        ({"source_id": "list"}, "column 'list' holds array<int>, not a whole number"),
        ({"group_columns": ("value",)}, "a grouping column cannot be called 'value'"),
        ({"group_columns": ("KEY",)}, "a grouping column cannot be called 'KEY', which is taken"),
        ({"time_unit": "h"}, "time_unit is 'h'; it must be one of us, ms, s, ns, timestamp"),
    ],
)
def test_an_unsuitable_stream_is_refused(
    lines: Lines, tmp_path: Path, columns: dict[str, PlainData], sentence: str
) -> None:
    stream = lines().withColumn("n", F.lit(1).cast("long")).withColumn("list", F.array(F.lit(1)))
    with pytest.raises(InputProblem) as problem:
        landing_of(stream, tmp_path, **columns)
    assert str(problem.value).startswith(sentence)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_a_history_of_another_landing_is_refused(lines: Lines, tmp_path: Path) -> None:
    put(tmp_path, "a.csv", "ts,k,v\n1,a,1\n")
    landing_of(lines(maxFilesPerTrigger=1), tmp_path).run_available()
    with pytest.raises(InputProblem, match="was landed with time_unit = 's', not 'ms'"):
        landing_of(lines(), tmp_path, time_unit="ms")
    with pytest.raises(InputProblem, match="was landed with key = 'k', not None"):
        landing_of(lines(), tmp_path, key=None)
    older = tmp_path / "older"
    shutil.copytree(tmp_path / "checkpoint", older)
    with pytest.raises(InputProblem, match="was not landed with the checkpoint"):
        Landing(lines(), tmp_path / "history", tmp_path / "new", event_time="ts", value="v")
    with pytest.raises(InputProblem, match="was not landed with the checkpoint"):
        Landing(lines(), tmp_path / "new", tmp_path / "checkpoint", event_time="ts", value="v")
    with pytest.raises(InputProblem, match="is not a stream; read it with"):
        landing_of(lines().sparkSession.range(3), tmp_path)
    append(tmp_path / "foreign" / "history", pa.table({"x": [1]}))
    with pytest.raises(InputProblem, match="holds files that were not written by a landing"):
        landing_of(lines(), tmp_path / "foreign")

    for name in ("b", "c"):
        put(tmp_path, f"{name}.csv", "ts,k,v\n2,a,1\n")
    landing_of(lines(maxFilesPerTrigger=1), tmp_path).run_available()
    shutil.rmtree(tmp_path / "checkpoint")
    older.rename(tmp_path / "checkpoint")
    with pytest.raises(InputProblem, match=r"checkpoint is at batch 1, .*history at 2 already$"):
        landing_of(lines(maxFilesPerTrigger=1), tmp_path).run_available()


@pytest.mark.fails_tasks
def test_the_error_that_stops_a_stream_is_one_sentence(lines: Lines, tmp_path: Path) -> None:
    put(tmp_path, "a.csv", "ts,k,v\n1,a,1\n")
    broken = lines().withColumn("v", F.udf(lambda v: str(1 / 0))("v"))
    with pytest.raises(QueryProblem, match=r"^division by zero$"):
        landing_of(broken, tmp_path).run_available()


def test_a_running_landing_takes_a_source_without_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    running = landing_of(stream, tmp_path, event_time="timestamp", value="value", key=None).start()
    try:
        while len(list((tmp_path / "history").glob("*.parquet"))) < 2:
            assert not running.awaitTermination(1)
    finally:
        running.stop()
    assert [row[0] for row in rows(tmp_path, "seq")][:10] == list(range(10))
    assert sorted(row[0] for row in rows(tmp_path, "value"))[:10] == list(range(10))


def test_a_landed_stream_gives_the_answers_of_its_rows(
    spark: SparkSession, lines: Lines, tmp_path: Path
) -> None:
    events = [(n * 7 % 40 + n // 4, "ab"[n % 2], n % 9) for n in range(90)]
    for part in range(3):
        text = "".join(f"{ts},{k},{v}\n" for ts, k, v in events[part * 30 : part * 30 + 30])
        put(tmp_path, f"{part}.csv", f"ts,k,v\n{text}never,a,1\n", at=1_000 + part)
    made = landing_of(lines(maxFilesPerTrigger=1), tmp_path)
    made.run_available()
    assert made.counts() == (90, 3)

    config = SlackConfig(size_us=10 * SECOND, slide_us=5 * SECOND, tasks=2)
    query = SlackQuery(spark, config, tmp_path / "history", tmp_path / "store")
    query.flush()
    expected: dict[tuple[str, int], list[int]] = {}
    for ts, k, v in events:
        for start in range(-10, 80, 5):
            if start <= ts < start + 10:
                expected.setdefault((k, start * SECOND), []).append(v)
    answers = results(spark, tmp_path / "store").collect()
    exact = {window: (float(sum(values)), len(values)) for window, values in expected.items()}
    assert {(row.key, row.start_us): (row.value, row.n) for row in answers} == exact
    assert {row.state for row in answers} == {"exact"}
    assert any(row.revision for row in answers), "nothing was late: this input shows too little"
