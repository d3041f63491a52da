"""The writer of a worker's pairs: its file, and its counts of pairs."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from spark_impl.join.match_file import MatchFile
from spark_impl.join.matching import Pairs
from spark_impl.runtime.storage import InputProblem, locate


def pairs(first: int, count: int) -> Pairs:
    return Pairs(np.arange(first, first + count), np.arange(first, first + count) * 10)


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    with MatchFile(locate(tmp_path) / "matches-0.parquet", ("a", "b"), epoch=3) as file:
        file.write([[pairs(0, 2), pairs(5, 1)], []])
        file.write([[], [pairs(7, 1)]])
        assert not list(tmp_path.rglob("matches-*"))
    rows = pq.read_table(tmp_path / "matches-0.parquet").to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("a", 0, 0, 3),
        ("a", 1, 10, 3),
        ("a", 5, 50, 3),
        ("b", 7, 70, 3),
    ]
    assert file.counts == [3, 1]
    assert len(list(tmp_path.iterdir())) == 1


def test_an_epoch_without_pairs_writes_no_file(tmp_path: Path) -> None:
    with MatchFile(locate(tmp_path) / "matches-0.parquet", ("a",), epoch=0) as file:
        file.write([[]])
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def fail() -> None:
        with MatchFile(locate(tmp_path) / "matches-0.parquet", ("a",), epoch=0) as file:
            file.write([[pairs(0, 2)]])
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    sentence = f"^{tmp_path}/file/0 cannot be written: "
    with (
        pytest.raises(InputProblem, match=sentence),
        MatchFile(locate(tmp_path) / "file" / "0" / "matches-0.parquet", ("a",), 0) as file,
    ):
        file.write([[pairs(0, 2)]])
