"""Files that were written are read as they are, whatever the folders above them are called."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import fs
from pyspark.sql import SparkSession

from spark_impl.runtime.histories import write_parquet
from spark_impl.runtime.queries import read_files
from spark_impl.runtime.storage import Location, locate
from spark_impl.runtime.stores import read_parquet

WRITTEN = pa.schema([("n", pa.int64()), ("epoch", pa.int64())])
WITH_BATCH = WRITTEN.append(pa.field("batch", pa.int64()))


def files_below(folder: Path) -> list[Location]:
    """Write a file for each of two micro-batches, below folders that are called like columns."""
    table = locate(folder) / "epoch=7" / "batch=9" / "table"
    files = [table / f"batch={batch}" / "part-00000-1.parquet" for batch in (3, 10)]
    for number, file in enumerate(files):
        write_parquet(pa.table([[number], [5]], WRITTEN), file)
    return files


EXPECTED = [(0, 5, 3), (1, 5, 10)]


def test_the_folder_of_a_file_gives_its_batch(tmp_path: Path) -> None:
    files = files_below(tmp_path)
    rows = read_parquet(files, WITH_BATCH).to_pylist()
    assert [tuple(row.values()) for row in rows] == EXPECTED
    later = read_parquet(files, WITH_BATCH, pc.field("batch") > 3).to_pylist()
    assert [tuple(row.values()) for row in later] == EXPECTED[1:]
    assert read_parquet(files, WRITTEN).num_rows == 2


def test_spark_reads_the_same(spark: SparkSession, tmp_path: Path) -> None:
    files = files_below(tmp_path)
    rows = read_files(spark, files, WITH_BATCH).collect()
    assert sorted(map(tuple, rows)) == EXPECTED
    assert sorted(map(tuple, read_files(spark, files, WRITTEN).collect())) == [(0, 5), (1, 5)]


def test_what_somebody_else_removed_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = locate(tmp_path) / "gone"
    monkeypatch.setattr(Location, "info", lambda each: fs.FileInfo(each.path, fs.FileType.File))
    gone.remove()
