"""Landed and rejected rows, and what a crash, a restart or a kill changes: nothing."""

import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary.settings import PlainData
from spark_impl.runtime import landing
from spark_impl.runtime.failures import QueryProblem
from spark_impl.runtime.histories import COLUMNS, append, files_of
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.numbering import LANDED, write_in_order
from spark_impl.runtime.storage import InputProblem, Location, locate
from tests.harness.drivers import FILES, ROWS, counts_of
from tests.harness.drivers import prepare_files as prepare
from tests.spark_impl.test_contracts import content

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


def landing_of(stream: DataFrame | Mapping[str, DataFrame], root: Path, **columns: Any) -> Landing:
    wanted = {"event_time": "ts", "value": "v", "key": "k", "time_unit": "s", **columns}
    return Landing(stream, root / "history", root / "checkpoint", **wanted)


def rows(root: Path, *names: str) -> list[tuple[Any, ...]]:
    """Return some columns of the arrivals of a history, in the order of its files."""
    tables = [pq.read_table(file.path) for file in files_of(locate(root / "history"))]
    return [tuple(row[name] for name in names) for table in tables for row in table.to_pylist()]


def test_a_history_has_the_columns_that_queries_read(lines: Lines, tmp_path: Path) -> None:
    put(tmp_path, "a.csv", "ts,k,v,site,case\n5,a,1,7,x\n6,b,2,8,\n6,b,2,,y\n")
    stream = lines(TEXT + ", site int, case string")
    stream = stream.withColumn("month", F.expr("make_ym_interval(0, 1)"))  # of no type of Arrow
    made = landing_of(stream, tmp_path, key=None, group_columns=("site", "case"))
    made.run_available()
    (path,) = (tmp_path / "history").glob("*.parquet")
    wanted = {**COLUMNS, "site": pa.int64(), "case": pa.string()}
    assert pq.read_schema(path) == pa.schema(wanted)
    assert rows(tmp_path, "seq", "source_id", "key", "site", "case") == [(0, 0, "", 7, "x")]
    listed = made.rejected().orderBy("column").collect()
    assert [(each.column, each.reason, json.loads(each.row)["month"]) for each in listed] == [
        ("case", "is missing", "INTERVAL '0-1' YEAR TO MONTH"),
        ("site", "is missing", "INTERVAL '0-1' YEAR TO MONTH"),
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


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"value": "w"}, "the stream has no column 'w'; its columns are ts, k, v, n, list, month"),
        ({"group_columns": ("site",)}, "the stream has no column 'site'; its columns are"),
        ({"key": "list"}, "column 'list' holds array<int>, not text"),
        ({"key": "month"}, "column 'month' holds interval year to month, not text"),
        ({"group_columns": ("list",)}, "column 'list' holds array<int>, not text or a whole"),
        ({"time_unit": "h"}, "time_unit is 'h'; it must be one of us, ms, s, ns, timestamp"),
    ],
)
def test_an_unsuitable_stream_is_refused(
    lines: Lines, tmp_path: Path, columns: dict[str, PlainData], sentence: str
) -> None:
    stream = lines().withColumn("n", F.lit(1).cast("long")).withColumn("list", F.array(F.lit(1)))
    stream = stream.withColumn("month", F.expr("make_ym_interval(0, 1)"))
    with pytest.raises(InputProblem) as problem:
        landing_of(stream, tmp_path, **columns)
    assert str(problem.value).startswith(sentence)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_streams_that_do_not_go_together_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    rate = spark.readStream.format("rate").load()
    number, text = (rate.withColumn("site", F.lit(site)) for site in (1, "a"))
    named: dict[str, Any] = {"event_time": "timestamp", "value": "value", "group_columns": ["site"]}
    for other, sentence in (
        (spark.range(3), "the DataFrame to land is not a stream; read it with spark.readStream"),
        (
            text.withColumn("stream", F.lit("S")),
            "the stream 'S' cannot have a column 'stream', which is taken",
        ),
        (text, "column 'site' holds text in one stream and whole numbers in another"),
    ):
        with pytest.raises(InputProblem, match=f"^{sentence}$"):
            Landing({"R": number, "S": other}, tmp_path / "h", tmp_path / "c", **named)
    with pytest.raises(InputProblem, match=r"^the DataFrame to land is not a stream; read it"):
        Landing({}, tmp_path / "h", tmp_path / "c", **named)
    files = spark.readStream.schema("timestamp timestamp, value long, site int").csv(str(tmp_path))
    Landing({"R": number, "S": files}, tmp_path / "h", tmp_path / "c", **named)


def test_a_history_of_another_landing_is_refused(lines: Lines, tmp_path: Path) -> None:
    put(tmp_path, "a.csv", "ts,k,v\n1,a,1\n")
    landing_of(lines(), tmp_path).run_available()
    for name, value, before in (("time_unit", "ms", "s"), ("key", None, "k")):
        with pytest.raises(InputProblem, match=f"landed with {name} = {before!r}, not {value!r}"):
            landing_of(lines(), tmp_path, **{name: value})
    with pytest.raises(InputProblem, match="was not landed with the checkpoint"):
        Landing(lines(), tmp_path / "new", tmp_path / "checkpoint", event_time="ts", value="v")
    for folder in ("history", "checkpoint"):  # as an earlier version of Straggler has left it
        note = tmp_path / folder / "_landing.json"
        note.write_text(json.dumps({**json.loads(note.read_bytes()), "version": 1}))
    with pytest.raises(InputProblem, match=r"was landed with version = 1, not 2$"):
        landing_of(lines(), tmp_path)
    append(tmp_path / "foreign" / "history", pa.table({"x": [1]}))
    with pytest.raises(InputProblem, match="holds files that were not written by a landing"):
        landing_of(lines(), tmp_path / "foreign")


# ------------------------------------------------------------------- crashes and restarts


def forget_commit(root: Path, batch: int) -> None:
    """Make the checkpoint look as if Spark had stopped before a commit."""
    for path in (root / "checkpoint" / "commits").glob(f"*{batch}*"):
        path.unlink()


def test_a_copy_of_the_checkpoint_doubles_nothing(
    lines: Lines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another driver lands as many other rows as the same micro-batch while this one is slow."""
    put(tmp_path, "a.csv", "ts,k,v\n0,a,0\n", at=1_000)
    landing_of(lines(), tmp_path).run_available()
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "copy")
    # In one Java process, Spark ends a query when another one with its id starts.
    (tmp_path / "copy" / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    (tmp_path / "copy" / ".metadata.crc").unlink()
    put(tmp_path, "b.csv", "ts,k,v\n2,a,2\nb,a,2\n", at=1_001)
    publish = Location.publish
    named: dict[str, Any] = {"event_time": "ts", "value": "v", "key": "k"}
    other = Landing(lines(), tmp_path / "history", tmp_path / "copy", time_unit="s", **named)

    def publish_late(scratch: Location, to: Location) -> None:
        monkeypatch.undo()
        (tmp_path / "in" / "b.csv").rename(tmp_path / "b.csv")
        put(tmp_path, "c.csv", "ts,k,v\n1,a,1\nc,a,1\n", at=1_002)
        other.run_available()
        (tmp_path / "b.csv").rename(tmp_path / "in" / "b.csv")
        publish(scratch, to)

    monkeypatch.setattr(Location, "publish", publish_late)
    with pytest.raises(QueryProblem, match=r"/00000001\.parquet is there already: another proc"):
        landing_of(lines(), tmp_path).run_available()
    sentence = r"/00000001\.parquet has micro-batch 1 already: another query has written it, with"
    with pytest.raises(InputProblem, match=sentence):
        landing_of(lines(), tmp_path).run_available()
    other.run_available()
    assert rows(tmp_path, "seq", "value") == [(at, float(at)) for at in range(3)]
    assert sorted(row.text for row in other.rejected().collect()) == ["b", "c"]
    found = other.ledger()
    assert (found.read, found.landed, found.balances) == (5, 3, True)


def test_the_ledger_knows_rows_that_no_list_has_and_lists_that_do_not_count(
    lines: Lines, tmp_path: Path
) -> None:
    files = ["1,a,1\n,a,1", "2,a,1", ",,", "3,a,x\n?,a,1", "?,a,3"]
    for at, text in enumerate(files):
        put(tmp_path, f"{at}.csv", f"ts,k,v\n{text}\n", at=1_000 + at)
    landing = landing_of(lines(maxFilesPerTrigger=1), tmp_path)
    landing.run_available()
    found = landing.ledger()
    assert (found.read, found.landed, found.pending, found.balances) == (7, 3, 3, True)
    assert [*found.refused["landing"].values()] == [2, 2]
    first, second, *_ = sorted((tmp_path / "history" / "_rejected").iterdir())
    for batch in (0, 1, 4):  # what a landing with a copy of the checkpoint has left
        shutil.copy(first, first.parent / f"{batch:08d}-abcd-1-1.parquet")
    assert landing.ledger() == found
    assert len(landing.rejected().collect()) == 4 + 1 + 3
    second.unlink()
    assert (landing.ledger().accounted, landing.ledger().read) == (6, 7)


def test_a_replayed_micro_batch_changes_nothing(
    spark: SparkSession, lines: Lines, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    setting, plans = "spark.sql.shuffle.partitions", tmp_path / "checkpoint" / "offsets"
    put(tmp_path, "a.csv", "ts,k,v\n1,a,1\n,a,1\n", at=1_000)
    put(tmp_path, "b.csv", "ts,k,v\n2,a,1\n,a,2\n3,b,no\n", at=2_000)
    landing_of(lines(maxFilesPerTrigger=1), tmp_path).run_available()
    before = content(tmp_path / "history")
    assert len(before) == 5
    forget_commit(tmp_path, 1)
    landing_of(lines(maxFilesPerTrigger=1), tmp_path).run_available()
    assert content(tmp_path / "history") == before
    # A copy may lack checksums, and Spark writes its settings into a plan, but a plan only once.
    for checksum in plans.glob(".*.crc"):
        checksum.unlink()
    planned = content(plans)
    request.addfinalizer(partial(spark.conf.set, setting, str(spark.conf.get(setting))))
    spark.conf.set(setting, "3")
    # The driver stopped before a file had its name: the same bytes are written again.
    for missing in ("_rejected/00000001-*", "00000001.parquet", "*"):
        forget_commit(tmp_path, 1)
        (tmp_path / "checkpoint" / "_landed.json").unlink()
        for file in (tmp_path / "history").rglob("00000001*"):
            if file.match(missing):
                file.unlink()
        landing_of(lines(maxFilesPerTrigger=1), tmp_path).run_available()
        assert content(tmp_path / "history") == before
    assert content(plans) == planned
    put(tmp_path, "c.csv", "ts,k,v\n4,a,1\n", at=3_000)
    landing_of(lines(maxFilesPerTrigger=1), tmp_path).run_available()
    assert content(plans).items() >= planned.items()
    assert rows(tmp_path, "seq")[-1] == (3,)


# ------------------------------------------------------------------- other writers, kills, losses

WANTED = list(enumerate(n * ROWS + at for n in range(FILES) for at in range(1, ROWS)))


def source_of(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema("ts long, v double").json(str(folder / "in"))


def many_of(spark: SparkSession, folder: Path) -> Landing:
    return landing_of(source_of(spark, folder), folder, key=None, time_unit="us")


def test_rows_that_the_driver_does_not_find_stop_the_landing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_elsewhere(batches: Any, **given: Any) -> Iterator[pa.RecordBatch]:
        for written in write_in_order(batches, **given):
            for row in written.to_pylist():
                if row["table"] == LANDED:
                    os.unlink(row["file"])
            yield written

    prepare(tmp_path)
    made = many_of(spark, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(landing, "write_in_order", write_elsewhere)
        sentence = (
            rf"/history/_scratch/\w+/{LANDED}-\w+.parquet does not hold the \d+ rows that a worker"
            " wrote: the driver and all workers have to reach one folder under this address$"
        )
        with pytest.raises(QueryProblem, match=sentence):
            made.run_available()
    assert counts_of(made) == (0, 0)
    made.run_available()
    assert counts_of(made) == (len(WANTED), FILES)
