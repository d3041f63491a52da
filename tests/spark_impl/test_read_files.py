"""Files that were written are read as they are, whatever the folders above them are called."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # the package has no types
from pyarrow import fs
from pyspark.sql import SparkSession

from spark_impl.runtime.histories import open_piece, write_parquet
from spark_impl.runtime.queries import read_files
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.runtime.versions import read_parquet

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


@pytest.mark.fails_tasks
def test_a_flipped_byte_is_noticed_by_all_who_read(spark: SparkSession, tmp_path: Path) -> None:
    file = locate(tmp_path) / "00000000.parquet"
    schema = pa.schema([("n", pa.int64()), ("key", pa.string())])
    write_parquet(pa.table([[*range(1_000)], list(map(str, range(1_000)))], schema), file)
    whole, footer = file.read_bytes(), pq.read_metadata(file.path)
    columns = [footer.row_group(0).column(place) for place in range(2)]
    for column in columns:
        at = column.data_page_offset + column.total_compressed_size // 2
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        for read in (
            lambda: read_parquet([file], schema),
            lambda: list(open_piece(file).batches(100, schema.names)),
        ):
            with pytest.raises(InputProblem, match="CRC checksum verification failed"):
                read()
        with pytest.raises(Py4JJavaError, match="CRC checksum verification failed"):
            read_files(spark, [file], schema).collect()
    file.write_bytes(whole)
    assert read_files(spark, [file], schema).count() == read_parquet([file], schema).num_rows


def test_what_somebody_else_removed_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = locate(tmp_path) / "gone"
    monkeypatch.setattr(Location, "info", lambda each: fs.FileInfo(each.path, fs.FileType.File))
    gone.remove()
