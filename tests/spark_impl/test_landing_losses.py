"""Nothing is landed twice or lost, whoever is killed and whatever is not shared."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from properties import profiles
from spark_impl.runtime import histories, landing, numbering
from spark_impl.runtime.columns import FAULT
from spark_impl.runtime.histories import COLUMNS, file_of, numbers, open_piece
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.numbering import LANDED, REJECTED, write_in_order
from spark_impl.runtime.queries import QueryProblem
from spark_impl.runtime.storage import InputProblem, locate
from tests.harness import landing_driver
from tests.harness.driver_kills import kills, needs_proc, run_to_its_end
from tests.harness.landing_driver import FILES, ROWS, prepare


def landed(history: Path) -> list[tuple[int, int]]:
    """Return numbers and event times of all arrivals, in the order of the files."""
    pieces = [open_piece(file_of(locate(history), n)) for n in numbers(locate(history))]
    tables = [piece.file.read_row_groups([*piece.groups]) for piece in pieces]
    return [(row["seq"], row["event_time_us"]) for each in tables for row in each.to_pylist()]


WANTED = list(enumerate(n * ROWS + at for n in range(FILES) for at in range(1, ROWS)))


def source_of(spark: SparkSession, folder: Path) -> DataFrame:
    source = spark.readStream.schema("ts long, v double").option("maxFilesPerTrigger", 1)
    return source.json(str(folder / "in"))


def landing_of(spark: SparkSession, folder: Path, checkpoint: str = "checkpoint") -> Landing:
    rows, named = source_of(spark, folder), {"event_time": "ts", "value": "v", "time_unit": "us"}
    return Landing(rows, folder / "history", folder / checkpoint, **named)


@needs_proc
@pytest.mark.timeout(900)
def test_rows_are_landed_once_however_often_the_driver_is_killed(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    prepare(tmp_path)
    at_most = max(1, profiles.effort().kills // 4)
    seen = list(kills(tmp_path, landing_driver.__name__, Random(seed), at_most))
    run_to_its_end(tmp_path, landing_driver.__name__)
    assert landed(tmp_path / "history") == WANTED
    made = landing_of(spark, tmp_path)
    assert made.counts() == (len(WANTED), FILES)
    # Two files are one micro-batch if Spark was killed between its log of files and its plan.
    rejected = [row.row for row in made.rejected().collect()]
    assert len(rejected) == len(set(rejected)) == FILES
    assert seen, "nothing was interrupted"


def test_files_of_a_long_history_are_merged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(histories, "MERGED", 3)
    prepare(tmp_path)
    made = landing_of(spark, tmp_path)
    made.run_available()
    names = [path.name for path in (tmp_path / "history").glob("*-*.parquet")]
    assert sorted(names) == [
        "00000000-00000002.parquet",
        "00000003-00000005.parquet",
    ]
    assert landed(tmp_path / "history") == WANTED
    assert made.counts() == (len(WANTED), FILES)


@pytest.mark.parametrize("table", [LANDED, REJECTED])
def test_rows_that_the_driver_does_not_find_stop_the_landing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    def write_elsewhere(batches: Any, **given: Any) -> Iterator[pa.RecordBatch]:
        for written in write_in_order(batches, **given):
            for row in written.to_pylist():
                if row["table"] == table:
                    os.unlink(row["file"])
            yield written

    prepare(tmp_path)
    made = landing_of(spark, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(landing, "write_in_order", write_elsewhere)
        sentence = (
            rf"/history/_scratch/\w+/{table}-\w+.parquet does not hold the \d+ rows that a worker"
            " wrote: the driver and all workers have to reach one folder under this address$"
        )
        with pytest.raises(QueryProblem, match=sentence):
            made.run_available()
    assert made.counts() == (0, 0)
    made.run_available()
    assert made.counts() == (len(WANTED), FILES)


def test_a_second_landing_takes_over(spark: SparkSession, tmp_path: Path) -> None:
    prepare(tmp_path)
    running = landing_of(spark, tmp_path).start()
    try:
        running.processAllAvailable()
        landing_of(spark, tmp_path).run_available()  # Spark stops the first one
    finally:
        running.stop()
    assert landed(tmp_path / "history") == WANTED


def test_a_micro_batch_that_was_landed_is_not_planned_anew(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The checkpoint comes from a copy that is one micro-batch old, or lost a file in a crash."""
    prepare(tmp_path)
    landing_of(spark, tmp_path).run_available()
    before = landed(tmp_path / "history")
    for log in ("offsets", "commits"):
        for path in (tmp_path / "checkpoint" / log).glob(f"*{FILES - 1}*"):
            path.unlink()
    sentence = rf"checkpoint is at batch {FILES - 1}, .*history at {FILES - 1} already$"
    with pytest.raises(InputProblem, match=sentence):
        landing_of(spark, tmp_path).run_available()
    assert landed(tmp_path / "history") == before


def test_a_session_that_reserves_the_words_of_sql(spark: SparkSession, tmp_path: Path) -> None:
    own = spark.newSession()
    own.conf.set("spark.sql.ansi.enforceReservedKeywords", "true")
    prepare(tmp_path)
    landing_of(own, tmp_path).run_available()
    assert landed(tmp_path / "history") == WANTED


def test_one_of_two_landings_that_begin_a_history_at_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    prepare(tmp_path)
    first = landing_of(spark, tmp_path)
    (tmp_path / "history" / "_landing.json").unlink()  # as before the second one looked
    second = landing_of(spark, tmp_path, "another")
    with pytest.raises(InputProblem, match="history was not landed with the checkpoint"):
        first.run_available()
    second.run_available()
    assert landed(tmp_path / "history") == WANTED


@pytest.mark.parametrize("columns", [{"key": "text"}, {"group_columns": ("text",)}])
def test_bytes_that_spark_takes_for_text_stop_no_query(
    spark: SparkSession, tmp_path: Path, columns: dict[str, Any]
) -> None:
    prepare(tmp_path)
    text = F.when(F.col("ts") % ROWS > 1, "a").otherwise(F.unhex(F.lit("FF61")).cast("string"))
    rows = source_of(spark, tmp_path).withColumn("text", text)
    named = {"event_time": "ts", "value": "v", "time_unit": "us", **columns}
    made = Landing(rows, tmp_path / "history", tmp_path / "checkpoint", **named)
    made.run_available()
    assert made.counts() == (len(WANTED) - FILES, 2 * FILES)
    bad = {(row.column, row.reason) for row in made.rejected().collect()}
    outside = "lies outside of the years 1 to 9999 in us; it looks like ns"
    assert bad == {("ts", outside), ("text", "is not text in UTF-8")}


def batches_of(times: Iterable[int], size: int) -> Iterator[pa.RecordBatch]:
    """Yield rows as Spark hands them to the task, every tenth with a fault."""
    listed = list(times)
    for start in range(0, len(listed), size):
        part = listed[start : start + size]
        fault = '{"column":"ts","reason":"NULL","row":"{}"}'
        columns: Mapping[str, Any] = {
            "event_time_us": part,
            "value": [float(time) for time in part],
            "key": ["a"] * len(part),
            "arrival_us": part,
            FAULT: pa.array([None if time % 10 else fault for time in part], pa.string()),
        }
        yield pa.record_batch(columns)


def test_rows_are_written_by_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbering, "ROW_GROUP", 8)
    scratch = locate(tmp_path) / "_scratch"
    schema = pa.schema(COLUMNS.items())
    (found,) = write_in_order(batches_of(range(40), 5), schema, scratch, first=7, since_us=12)
    written = {row["table"]: row for row in found.to_pylist()}
    assert {name: row["rows"] for name, row in written.items()} == {LANDED: 36, REJECTED: 4}
    file = pq.ParquetFile(written[LANDED]["file"])
    sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert sizes == [8, 8, 8, 8, 4]
    rows = file.read()
    assert rows.column("seq").to_pylist() == list(range(7, 43))
    assert rows.column("source_id").equals(rows.column("seq"))
    times = [time for time in range(40) if time % 10]
    assert rows.column("event_time_us").to_pylist() == times
    assert rows.column("arrival_us").to_pylist() == [max(time, 12) for time in times]
    bad = pq.read_table(written[REJECTED]["file"]).to_pylist()
    said = {"column": "ts", "reason": "NULL", "text": None, "row": "{}", "seq": None}
    assert bad == [said] * 4


def test_a_micro_batch_without_rows_writes_nothing(tmp_path: Path) -> None:
    scratch = locate(tmp_path) / "_scratch"
    schema = pa.schema(COLUMNS.items())
    assert list(write_in_order([], schema, scratch, first=0, since_us=0)) == []
    assert not scratch.exists()


STOPPED = """
import os, signal, sys, time
from pathlib import Path
from spark_impl.runtime.storage import Location
from spark_impl.runtime.queries import QueryProblem
from tests.harness import landing_driver
publish, stops = Location.publish, [signal.SIGSTOP]

def stop_first(file, to):
    if stops and to.name == "00000002.parquet":
        os.kill(os.getpid(), stops.pop())
        time.sleep(1)  # this thread may go on for a moment
    return publish(file, to)

Location.publish = stop_first
try:
    landing_driver.main(Path(sys.argv[1]))
except QueryProblem as problem:
    print("refused:", problem, flush=True)
"""
"""A landing whose process stands still as it is about to publish its third file."""


@needs_proc
def test_a_landing_that_stood_still_replaces_nothing_of_the_next_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    prepare(tmp_path)
    history = tmp_path / "history"
    command = [sys.executable, "-c", STOPPED, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            landing_of(spark, tmp_path).run_available()
            before = {path: path.read_bytes() for path in history.glob("*.parquet")}
            process.send_signal(signal.SIGCONT)
            said, _ = process.communicate()
        finally:
            process.kill()
    assert f"refused: {tmp_path}/history" in said
    assert "00000002.parquet is there already: another process has" in said.splitlines()[-1]
    assert {path: path.read_bytes() for path in history.glob("*.parquet")} == before
    assert landed(history) == WANTED
    assert landing_of(spark, tmp_path).counts() == (len(WANTED), FILES)
