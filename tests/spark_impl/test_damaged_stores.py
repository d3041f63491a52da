"""Damaged stores: a query gives right answers or one sentence, and half-writes nothing."""

import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # the package has no types
from pyspark.sql import SparkSession

from properties import profiles
from spark_impl.grouping.store import GroupingStore
from spark_impl.join.store import ChainStore
from spark_impl.runtime.histories import open_piece, write_parquet
from spark_impl.runtime.queries import read_files, read_table, require_identity
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.runtime.stores import read_parquet
from spark_impl.slack.query import SLACK
from spark_impl.windows.store import load_store
from tests.golden.__main__ import FOLDER, PRESENT
from tests.golden.archive import unpack
from tests.harness.damaged_stores import Damage, damages, go_on
from tests.soak.oracles import ORACLES

CASES = 8
"""Number of damaged stores; each is a query on Spark."""


@pytest.mark.long
@pytest.mark.fails_tasks
@pytest.mark.timeout(1_800)
@settings(max_examples=profiles.choose(CASES, nightly=40 * CASES), phases=[Phase.generate])
@given(damage=st.sampled_from(sorted(ORACLES)).flatmap(damages))
def test_a_damaged_store_gives_right_answers_or_a_sentence(
    spark: SparkSession, damage: Damage
) -> None:
    with tempfile.TemporaryDirectory(prefix="straggler-damaged-") as folder:
        taken = go_on(spark, damage, Path(folder))
    assert not taken.wrong, (damage, taken)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff"])
def test_a_commit_that_cannot_be_read_is_named(content: bytes, tmp_path: Path) -> None:
    unpack(FOLDER / PRESENT / "store-join.zip", tmp_path)
    store = ChainStore(locate(tmp_path / "disk" / "store"))
    store.commit_file(1).write_bytes(content)
    with pytest.raises(InputProblem, match=r"commits/1\.json does not hold the commits of epochs"):
        store.commit_of(1)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff"])
def test_a_file_of_a_stream_that_cannot_be_read_is_named(content: bytes, tmp_path: Path) -> None:
    store = GroupingStore(locate(tmp_path))
    for file in (tmp_path / "batches" / "0.json", Path(store.sender_file(0, 1).path)):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    for read in (lambda: store.standing(0), lambda: store.load_sender(0, 1)):
        with pytest.raises(InputProblem, match=r"batches/0\S+ does not hold what was written"):
            read()


@pytest.mark.parametrize("content", [b"", b"v1\n{}", b"[]", b"{}", b'{"id": 3}', b"\xff"])
def test_a_checkpoint_without_the_id_of_its_query_is_named(content: bytes, tmp_path: Path) -> None:
    checkpoint = locate(tmp_path / "checkpoint")
    require_identity(checkpoint)
    (checkpoint / "metadata").write_bytes(b'{"id": "c1f2"}')
    require_identity(checkpoint)
    (checkpoint / "metadata").write_bytes(content)
    (checkpoint / "offsets" / "0").write_bytes(b"v1")
    with pytest.raises(InputProblem, match="metadata does not hold the id of a query"):
        require_identity(checkpoint)
    (checkpoint / "metadata").remove()
    with pytest.raises(InputProblem, match="metadata does not hold the id of a query"):
        require_identity(checkpoint)


def test_spark_does_not_read_copies(spark: SparkSession, tmp_path: Path) -> None:
    unpack(FOLDER / PRESENT / "store-slack.zip", tmp_path)
    root = tmp_path / "disk" / "store"
    _, store = load_store(locate(root), SLACK)
    before = read_table(spark, store, "result").count()
    for path in [*root.glob("result/batch=*/*.parquet")]:
        shutil.copy(path, path.with_name(f"{path.stem}-copy{path.suffix}"))
    assert read_table(spark, store, "result").count() == before > 0


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
