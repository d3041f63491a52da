"""Stores of queries: places, settings of other versions, damage."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # the package has no types
from pyspark.sql import SparkSession

from model.vocabulary import SlackConfig
from spark_impl.runtime.histories import open_piece, read_parquet, write_parquet
from spark_impl.runtime.queries import read_files
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.runtime.stores import claim
from spark_impl.slack import SLACK
from spark_impl.windows import store as windows
from spark_impl.windows.store import WindowStore

# ----------------------------------------------------------------------------------------- places


@pytest.mark.parametrize("address", ["s3:///x", "file://host/x", "hdfs:/x", "hdfs://host:1/x"])
def test_addresses_without_a_folder_are_refused(address: str) -> None:
    with pytest.raises(InputProblem, match=f"^{address} is not on a supported file system; supp"):
        locate(address)


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(InputProblem, match=r"^/.*/x cannot be written: File exists$"):
        (locate(tmp_path) / "x" / "y").write_bytes(b"1")
    with pytest.raises(InputProblem, match=r"^/.*/x cannot be read: Not a directory$"):
        (locate(tmp_path) / "x").children()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize(("name", "theirs"), [("cv", 0.5), ("new", 1)])
def test_a_setting_of_another_version_is_not_dropped_in_silence(
    tmp_path: Path, name: str, theirs: object
) -> None:
    """A query would go on by other rules."""
    room, config = SLACK, SlackConfig(9_000, 3_000)
    usual = config.to_json()
    identity = {"version": windows.VERSION, "room": "slack", "group_columns": [], "value": "value"}
    for folder, settings in (("usual", usual), ("other", {**usual, name: theirs})):
        claim(WindowStore(locate(tmp_path / folder), room=room), {**identity, "config": settings})
    windows.open_store(tmp_path / "usual", room, config, ())
    assert windows.load_store(tmp_path / "usual", room)[0] == config
    with pytest.raises(InputProblem, match=f"belongs to another query: its {name} is "):
        windows.open_store(tmp_path / "other", room, config, ())
    with pytest.raises(InputProblem, match=f"written by a query of another version: .*{name}"):
        windows.load_store(tmp_path / "other", room)


# ----------------------------------------------------------------------------------------- damage


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
