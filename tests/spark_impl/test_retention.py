"""Files of a history are removed from the lowest number upwards, and never one that is needed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_impl.retention import Reader, drop_before
from spark_impl.runtime import histories, tables
from spark_impl.runtime.histories import append, compact, file_of, numbers, open_piece, remove_below
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.runtime.systems import lose_commit
from spark_impl.slack import SlackQuery
from spark_impl.slack.query import SLACK
from spark_impl.windows.store import open_store
from tests.spark_impl.test_failures import CONFIG, finish, stream_part
from tests.spark_impl.test_query import FIRST, FIXED, LATE
from tests.spark_impl.test_query import history as make_history

MERGED = 3


@pytest.fixture(autouse=True)
def merges_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "MERGED", MERGED)


def rows_of(number: int) -> pa.Table:
    return pa.table({"seq": [number], "key": ["a"]})


def history(folder: Location, files: int) -> Location:
    """Write a history whose files hold their numbers, and merge what can be merged."""
    for number in range(files):
        append(folder, rows_of(number))
        compact(folder)
    return folder


def assert_holds(folder: Location, expected: range) -> None:
    """Assert that a history has some numbers and that each of them can be read."""
    assert numbers(folder) == expected
    for number in expected:
        piece = open_piece(file_of(folder, number))
        assert piece.file.read_row_groups([*piece.groups], ["seq"]).column(0)[0].as_py() == number


def checkpoint(folder: Location, *following: int, planned: int | None = None) -> Location:
    """Write Spark's checkpoint of a query; ``planned`` was not completed."""
    for batch, number in enumerate([*following, *([] if planned is None else [planned])]):
        offset = json.dumps({"next": number, "first": 0, "requests": [], "spent": []})
        (folder / "offsets" / str(batch)).write_bytes(f'v1\n{{"conf":{{}}}}\n{offset}'.encode())
    for batch in range(len(following)):
        (folder / "commits" / str(batch)).write_bytes(b"v1\n{}")
    return folder


def reader(folder: Location, *following: int, planned: int | None = None) -> Location:
    """Write what a query of scripts leaves behind."""
    tables.create(folder, pa.schema([("kind", pa.string())]), {"version": 3, "room": "script"})
    checkpoint(folder / "_checkpoint", *following, planned=planned)
    return folder


def test_no_file_is_removed_that_a_reader_has_not_read(place: Location) -> None:
    source = history(place / "h", 10)
    one, other = reader(place / "one", 1, 7), reader(place / "other")
    readers: list[Reader] = [one, (other, checkpoint(place / "apart", 2, 5, planned=7))]
    sentence = f"number is 6; it can be at most 5, because {other} has read no more of {source}"
    with pytest.raises(InputProblem) as refused:
        drop_before(source, 6, readers=readers)
    assert str(refused.value) == sentence
    assert_holds(source, range(10))
    assert drop_before(source, 5, readers=readers) == 3, "merged with file 5, which stays"
    assert_holds(source, range(3, 10))
    assert drop_before(source, 1, readers=readers) == 3
    assert drop_before(source, 7, readers=[]) == 7
    assert_holds(source, range(7, 10))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda folder: folder,
            "s is not the store of a query",
        ),
        (lambda folder: reader(folder, planned=3), "has read nothing yet"),
        (lambda folder: reader(folder, -1), "number is 1; it can be at most 0, because .*/s has"),
        (lambda folder: checkpoint(folder / "_checkpoint", 3), "s is not the store of a query"),
    ],
)
def test_a_reader_that_cannot_be_asked(
    tmp_path: Path, make: Callable[[Location], object], sentence: str
) -> None:
    source = history(locate(tmp_path / "h"), 3)
    make(locate(tmp_path / "s"))
    with pytest.raises(InputProblem, match=sentence):
        drop_before(source, 1, readers=[tmp_path / "s"])
    assert_holds(source, range(3))


def test_the_checkpoint_of_a_query_without_a_history_is_refused(tmp_path: Path) -> None:
    source, store = history(locate(tmp_path / "h"), 3), reader(locate(tmp_path / "s"), 3)
    (store / "_checkpoint" / "offsets" / "0").write_bytes(b'v1\n{"conf":{}}\n{"logOffset":3}\n-')
    with pytest.raises(InputProblem, match="/s/_checkpoint is not the checkpoint of a query that"):
        drop_before(source, 1, readers=[store])


@pytest.mark.parametrize("files", [0, 1, 7])
def test_the_last_file_stays(tmp_path: Path, files: int) -> None:
    source = history(locate(tmp_path), files)
    most = max(files - 1, 0)
    with pytest.raises(InputProblem, match=f"^number is 8; it can be at most {most}, because /"):
        drop_before(source, 8, readers=[])
    drop_before(source, most, readers=[])
    assert_holds(source, range(most, files))


class Killed(BaseException):
    """The process was killed."""


def test_a_removal_that_is_killed_leaves_a_history_without_gaps(tmp_path: Path) -> None:
    remove, kills = Location.remove, 0
    while True:
        source = history(locate(tmp_path / str(kills)), 8)
        left = iter(range(kills, -1, -1))

        def remove_or_die(file: Location, left: Any = left) -> None:
            if next(left) == 0:
                raise Killed
            remove(file)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Location, "remove", remove_or_die)
            try:
                drop_before(source, 7, readers=[])
                break
            except Killed:
                kills += 1
        assert_holds(source, range(numbers(source).start, 8))
        assert drop_before(source, 7, readers=[]) == 7
        assert_holds(source, range(7, 8))
    assert kills > MERGED


@pytest.mark.parametrize("number", [1, 3, 4])
def test_files_that_are_merged_meanwhile_do_not_come_back(tmp_path: Path, number: int) -> None:
    """The landing reads files to merge them, and writes the merged file after the removal."""
    source = locate(tmp_path)
    for each in range(2 * MERGED):
        append(source, rows_of(each))
    merge = histories._merge

    def merge_late(*given: Any) -> bool:
        remove_below(source, number)  # open files can still be read
        return merge(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(histories, "_merge", merge_late)
        compact(source)
    assert_holds(source, range(number, 2 * MERGED))


def test_a_removal_goes_on_with_what_was_merged_meanwhile(tmp_path: Path) -> None:
    source = locate(tmp_path)
    for each in range(2 * MERGED):
        append(source, rows_of(each))
    remove, merged = Location.remove, list[str]()

    def merge_first(file: Location) -> None:
        if not merged:
            merged.append(file.name)
            compact(source)
        remove(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Location, "remove", merge_first)
        assert drop_before(source, MERGED + 1, readers=[]) == MERGED + 1
    assert_holds(source, range(MERGED + 1, 2 * MERGED))


def test_files_of_pending_corrections_stay(tmp_path: Path) -> None:
    batches = [(3, 1.0)], [(1003, 1.0), (1020, 2.0)], [(1004, 4.0)], [(1030, 1.0)]
    source = make_history(tmp_path / "h", *batches)
    found = stream_part(source, open_store(tmp_path / "scratch", SLACK, CONFIG, ()))
    store = open_store(tmp_path / "s", SLACK, CONFIG, ())
    for batch in range(4):
        finish(store, source, batch, found[batch])
    checkpoint(store.checkpoint, 1, 2, 3, 4)
    assert store.read_all("pending").num_rows
    with pytest.raises(InputProblem) as refused:
        drop_before(source, 2, readers=[store.root])
    assert str(refused.value) == (
        f"{source}/00000001.parquet cannot be removed: late pairs in {store.root} wait for a"
        " correction that reads it"
    )
    assert drop_before(source, 1, readers=[store.root]) == 1
    finish(store, source, 4, found[4])  # the flush corrects them
    checkpoint(store.checkpoint, 1, 2, 3, 4, 4)
    assert not store.read_all("pending").num_rows
    assert drop_before(source, 3, readers=[store.root]) == 3


def test_a_query_goes_on_over_a_shortened_history(spark: SparkSession, tmp_path: Path) -> None:
    source = make_history(tmp_path / "h", FIRST, LATE)
    query = SlackQuery(spark, FIXED, source, tmp_path / "s")
    query.flush()
    make_history(source, [(60, 1.0)])
    with pytest.raises(InputProblem, match=r"^number is 3; it can be at most 2, because .*/h keep"):
        drop_before(source, 3, readers=[tmp_path / "s"])
    make_history(source, [(90, 1.0)])
    with pytest.raises(InputProblem, match=r"^number is 3; it can be at most 2, because .*/s has "):
        drop_before(source, 3, readers=[tmp_path / "s"])
    assert drop_before(source, 2, readers=[tmp_path / "s"]) == 2
    query.run_available()
    lose_commit(tmp_path / "s")
    with pytest.raises(InputProblem, match=r"^number is 4; it can be at most 3, because .*/h keep"):
        drop_before(source, 4, readers=[tmp_path / "s"])
    make_history(source, [(95, 1.0)], seq=100, source_id=100)
    with pytest.raises(InputProblem, match=r"^number is 4; it can be at most 3, because .*/s has "):
        drop_before(source, 4, readers=[tmp_path / "s"])  # Spark is going to repeat file 3
    query.flush()
    assert drop_before(source, 4, readers=[tmp_path / "s"]) == 4
