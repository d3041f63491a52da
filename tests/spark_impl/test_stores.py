"""Stores of queries: places, settings of other versions, damage."""

import errno
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # the package has no types
from pyspark.sql import SparkSession

from model.vocabulary import SlackConfig
from spark_impl.runtime.histories import (
    bounds_of,
    open_piece,
    read_footer,
    read_parquet,
    write_parquet,
)
from spark_impl.runtime.queries import read_files, require_identity
from spark_impl.runtime.storage import InputProblem, locate, writing
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


def test_a_file_that_fails_while_it_is_written_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with writing(tmp_path / "a"), (locate(tmp_path) / "a").stream() as out:
            out.write(b"half")
            raise OSError("full\nin the words of a library")

    with pytest.raises(InputProblem, match=r"/a cannot be written: full$"):
        fail()
    assert not list(tmp_path.iterdir())


def test_a_new_file_replaces_none_where_nobody_can_make_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", refuse)
    file = locate(tmp_path) / "a"
    file.write_bytes(b"1", is_new=True)
    with pytest.raises(InputProblem, match="/a is there already"):
        file.write_bytes(b"2", is_new=True)
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"1"]
    monkeypatch.setattr(os, "link", lambda *_: os.stat(tmp_path / "lost"))
    with pytest.raises(InputProblem, match=r"cannot be written: No such file or directory$"):
        file.write_bytes(b"2", is_new=True)


def test_an_address_on_s3_has_the_client_that_its_parameters_say() -> None:
    assert locate("s3://bucket/x?region=eu-west-7").files.region == "eu-west-7"
    with pytest.raises(InputProblem, match=r"^the file system s3:\?depth=7 cannot be reached: "):
        locate("s3://bucket/x?depth=7").files  # noqa: B018  # it is connected when it is asked for


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


def test_columns_without_bounds_have_none_and_twins_are_refused(tmp_path: Path) -> None:
    """Other programs write footers without statistics, or columns of one name."""
    file, names = locate(tmp_path) / "00000000.parquet", ["whole", "partly", "twin", "twin"]
    columns = [pa.array(each, pa.int64()) for each in ([3, 1, 2, 4], [1, 2, None, None])]
    rows = pa.table([*columns, *columns], names)
    pq.write_table(rows, file.path, row_group_size=2)
    assert bounds_of(read_footer(file), names[:2]) == {"whole": (1, 4)}
    assert bounds_of(read_footer(file), names[:2], 0) == {"whole": (1, 3), "partly": (1, 2)}
    with pytest.raises(InputProblem, match=r"00.parquet has more than one column 'twin'"):
        open_piece(file)
    pq.write_table(rows, file.path, write_statistics=False)
    assert bounds_of(read_footer(file), names) == {}


@pytest.mark.parametrize("content", [None, b"", b"{}", b'{"id": 7}', b"[]"])
def test_a_checkpoint_without_the_id_of_its_query_is_refused(
    tmp_path: Path, content: bytes | None
) -> None:
    checkpoint = locate(tmp_path)
    require_identity(checkpoint)  # Spark has not begun it
    (checkpoint / "metadata").write_bytes(b'{"id": "a"}')
    require_identity(checkpoint)
    (checkpoint / "metadata").remove()
    (checkpoint / "offsets" / "0").write_bytes(b"v1")
    if content is not None:
        (checkpoint / "offsets").remove()
        (checkpoint / "metadata").write_bytes(content)
    with pytest.raises(InputProblem, match="/metadata does not hold the id of a query: restore"):
        require_identity(checkpoint)


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
