"""Nothing is landed twice or lost, whoever is killed and whatever is not shared."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from properties import profiles
from spark_impl.runtime import landing
from spark_impl.runtime.histories import file_of, numbers, open_piece
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.numbering import LANDED, REJECTED, write_in_order
from spark_impl.runtime.queries import QueryProblem
from spark_impl.runtime.storage import locate
from tests.harness.driver_kills import kills, needs_proc, run_to_its_end
from tests.harness.drivers import FILES, LANDING, ROWS
from tests.harness.drivers import prepare_files as prepare


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
@pytest.mark.long
@pytest.mark.timeout(900)
def test_rows_are_landed_once_however_often_the_driver_is_killed(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    prepare(tmp_path)
    at_most = profiles.choose(1, nightly=3)
    seen = list(kills(tmp_path, LANDING, Random(seed), at_most))
    run_to_its_end(tmp_path, LANDING)
    assert landed(tmp_path / "history") == WANTED
    made = landing_of(spark, tmp_path)
    assert made.counts() == (len(WANTED), FILES)
    # Two files are one micro-batch if Spark was killed between its log of files and its plan.
    rejected = [row.row for row in made.rejected().collect()]
    assert len(rejected) == len(set(rejected)) == FILES
    assert seen, "nothing was interrupted"


@pytest.mark.parametrize("table", [LANDED, pytest.param(REJECTED, marks=pytest.mark.long)])
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


def test_two_landings_lose_and_double_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """The second one may stop with a sentence; nothing keeps it away but the names of files."""
    prepare(tmp_path)
    running = landing_of(spark, tmp_path).start()
    try:
        with suppress(QueryProblem):
            landing_of(spark, tmp_path).run_available()
    finally:
        running.stop()
    landing_of(spark, tmp_path).run_available()
    assert landed(tmp_path / "history") == WANTED


def test_bytes_that_spark_takes_for_text_stop_no_query(spark: SparkSession, tmp_path: Path) -> None:
    prepare(tmp_path)
    text = F.when(F.col("ts") % ROWS > 1, "a").otherwise(F.unhex(F.lit("FF61")).cast("string"))
    rows = source_of(spark, tmp_path).withColumn("text", text)
    named = {"event_time": "ts", "value": "v", "time_unit": "us", "key": "text"}
    made = Landing(rows, tmp_path / "history", tmp_path / "checkpoint", **named)
    made.run_available()
    assert made.counts() == (len(WANTED) - FILES, 2 * FILES)
    bad = {(row.column, row.reason) for row in made.rejected().collect()}
    outside = "lies outside of the years 1 to 9999 in us; it looks like ns"
    assert bad == {("ts", outside), ("text", "is not text in UTF-8")}
