"""Files of a history are removed from the lowest number upwards, and never one that is needed."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from spark_impl.retention import Reader, drop_before
from spark_impl.runtime import histories
from spark_impl.runtime.histories import append, compact, file_of, numbers, open_piece
from spark_impl.runtime.storage import InputProblem, Location, locate

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
    (folder / "query.json").write_bytes(b'{"version": 3, "room": "script"}')
    checkpoint(folder / "checkpoint", *following, planned=planned)
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
            "has read nothing yet: .*/s/checkpoint has no complete micro-batch",
        ),
        (lambda folder: reader(folder, planned=3), "has read nothing yet"),
        (lambda folder: reader(folder, -1), "number is 1; it can be at most 0, because .*/s has"),
        (lambda folder: checkpoint(folder / "checkpoint", 3), "s is not the store of a query"),
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


@pytest.mark.parametrize("files", [0, 1, 7])
def test_the_last_file_stays(tmp_path: Path, files: int) -> None:
    source = history(locate(tmp_path), files)
    most = max(files - 1, 0)
    with pytest.raises(InputProblem, match=f"^number is 8; it can be at most {most}, because /"):
        drop_before(source, 8, readers=[])
    drop_before(source, most, readers=[])
    assert_holds(source, range(most, files))
