"""Stores of queries: one writer, places, readers of a history, damage."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # the package has no types
from pyspark.sql import SparkSession

from properties import profiles
from spark_impl.retention import drop_before
from spark_impl.runtime import locks
from spark_impl.runtime.histories import append, compact, numbers, open_piece, write_parquet
from spark_impl.runtime.locks import Lease
from spark_impl.runtime.queries import read_files
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.runtime.stores import read_parquet
from tests.harness.damaged_stores import Damage, damages, go_on
from tests.soak.oracles import ORACLES

# ------------------------------------------------------------------------------------------ locks


HOLDER = """
import sys, time
from spark_impl.runtime.locks import lock
from spark_impl.runtime.storage import locate
held = lock(locate(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody wait for a lock."""
    monkeypatch.setattr(locks, "PATIENCE_S", 0)


def test_the_holder_is_named_and_its_death_releases_the_lock(tmp_path: Path, hurry: None) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        sentence = (
            f"^{tmp_path} is being written by process {process.pid} on .+ since .+; it takes "
        )
        with pytest.raises(InputProblem, match=sentence):
            locks.lock(tmp_path)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    locks.lock(tmp_path).release()
    locks.lock(tmp_path).release()


def test_file_system_without_locks_gets_a_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hurry: None
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", refuse)
        held = locks.lock(tmp_path)
    assert isinstance(held, Lease)
    assert held.is_held
    with pytest.raises(InputProblem, match=f"is being written by process {os.getpid()} on .+ sin"):
        locks.lock(tmp_path)  # although the operating system would grant this lock
    held.release()
    assert not held.is_held
    locks.lock(tmp_path).release()


# ----------------------------------------------------------------------------------------- places


@pytest.mark.parametrize("address", ["s3:///x", "file://host/x", "hdfs:/x"])
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


# ---------------------------------------------------------------------------------------- readers


def rows_of(number: int) -> pa.Table:
    return pa.table({"seq": [number], "key": ["a"]})


def numbered_history(folder: Location, files: int) -> Location:
    """Write a history whose files hold their numbers, and merge what can be merged."""
    for number in range(files):
        append(folder, rows_of(number))
        compact(folder)
    return folder


def script_checkpoint(folder: Location, *following: int) -> Location:
    """Write Spark's checkpoint of a query."""
    for batch, number in enumerate(following):
        offset = json.dumps({"next": number, "first": 0, "requests": [], "spent": []})
        (folder / "offsets" / str(batch)).write_bytes(f'v1\n{{"conf":{{}}}}\n{offset}'.encode())
        (folder / "commits" / str(batch)).write_bytes(b"v1\n{}")
    return folder


def script_reader(folder: Location, *following: int) -> Location:
    """Write what a query of scripts leaves behind."""
    (folder / "query.json").write_bytes(b'{"version": 3, "room": "script"}')
    script_checkpoint(folder / "checkpoint", *following)
    return folder


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda folder: folder,
            "has read nothing yet: .*/s/checkpoint has no complete micro-batch",
        ),
        (
            lambda folder: script_reader(folder, -1),
            "number is 1; it can be at most 0, because .*/s has",
        ),
        (
            lambda folder: script_checkpoint(folder / "checkpoint", 3),
            "s is not the store of a query",
        ),
    ],
)
def test_a_reader_that_cannot_be_asked(
    tmp_path: Path, make: Callable[[Location], object], sentence: str
) -> None:
    source = numbered_history(locate(tmp_path / "h"), 3)
    make(locate(tmp_path / "s"))
    with pytest.raises(InputProblem, match=sentence):
        drop_before(source, 1, readers=[tmp_path / "s"])
    assert numbers(source) == range(3)


# ----------------------------------------------------------------------------------------- damage


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
        wrong = go_on(spark, damage, Path(folder))
    assert not wrong, damage


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
