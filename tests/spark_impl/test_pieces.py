"""Pieces of a history: which are kept, and which are read ahead."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.windows import history, row_groups
from spark_impl.windows.history import History
from spark_impl.windows.row_groups import Piece, PieceCache, PieceReader, RowGroup
from tests.spark_impl.test_history import ASKED, GROUPS, in_order, wanted, write


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the files that are opened for their rows."""
    names: list[str] = []
    original = pq.ParquetFile

    def opening(path: str, **options: Any) -> Any:
        names.append(Path(path).stem.lstrip("0") or "0")
        return original(path, **options)

    monkeypatch.setattr(pq, "ParquetFile", opening)
    return names


def three_files(folder: Path) -> History:
    for number in range(3):
        write(folder, number, list(range(100 * number, 100 * number + 100)))
    return History(None, ASKED, locate(folder), GROUPS)  # type: ignore[arg-type]  # no session is needed


def test_a_file_is_not_read_twice(tmp_path: Path, opened: list[str]) -> None:
    files = three_files(tmp_path)
    first, rows = files.recompute(wanted([40, 95]))
    assert opened == ["0", "1"]
    again, rows_again = files.recompute(wanted([40, 95]))
    assert opened == ["0", "1"]
    assert in_order(first) == in_order(again)
    assert rows == rows_again == 200


def test_file_behind_an_arrival_is_read_ahead(tmp_path: Path, opened: list[str]) -> None:
    files = three_files(tmp_path)
    files.read_ahead(99)  # the arrivals of the first file
    files.recompute(wanted([140]))
    assert opened == ["1"]
    files.read_ahead(2099)
    files.recompute(wanted([140]))
    assert opened == ["1"]  # there is nothing behind the last


def test_a_correction_reads_no_later_files(tmp_path: Path, opened: list[str]) -> None:
    files = three_files(tmp_path)
    _, rows = files.recompute(wanted([95], limit=99))
    assert opened == ["0"]
    assert rows == 100


def test_file_that_cannot_be_read_ahead_is_no_failure(tmp_path: Path) -> None:
    files = three_files(tmp_path)
    path = tmp_path / "00000001.parquet"
    whole = path.read_bytes()
    path.write_bytes(b"torn")
    for _ in range(2):  # the second waits for the first
        files.read_ahead(99)
    path.write_bytes(whole)
    found, _ = files.recompute(wanted([140]))
    assert found.n.sum() > 0


def test_file_that_is_gone_is_not_remembered(tmp_path: Path) -> None:
    files = three_files(tmp_path)
    files.read_ahead(1099)
    (tmp_path / "00000002.parquet").unlink()
    found, rows = files.recompute(wanted([240]))
    assert not len(found.n)
    assert not rows
    (tmp_path / "00000001.parquet").rename(tmp_path / "00000002.parquet")
    with pytest.raises(InputProblem, match=r"00000001\.parquet is missing, but 00000002\.parquet"):
        files.recompute(wanted([40]))


def test_rows_kept_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "ROWS_KEPT", 250)
    read: list[int] = []

    class Counting(PieceReader):
        def read(self, file: Location, group: RowGroup, where: object = None) -> Iterator[Piece]:
            read.append(group.number)
            return super().read(file, group)

    file = write(tmp_path, 1, list(range(500)), group_size=100)
    kept = PieceCache(Counting(ASKED, GROUPS))
    groups = [(file, RowGroup(i, 100, 0, 0, False)) for i in range(5)]
    assert sum(len(piece.seq) for piece in kept.pieces(groups)) == 500  # more than are kept
    kept.pieces(groups[3:])
    assert read == [0, 1, 2, 3, 4]
    kept.pieces(groups[:3])  # takes the place of those
    assert read == [0, 1, 2, 3, 4, 0, 1, 2]
    kept.pieces(groups[2:3])
    assert read == [0, 1, 2, 3, 4, 0, 1, 2]


def test_threads_find_what_one_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(2)
    for number in range(3):
        write(tmp_path, number, [100 * number + draw.randrange(-60, 160) for _ in range(400)])
    want = wanted([0, 5, 10, 120, 125, 200], limit=2200)
    found = []
    for few, threads, kept in ((1, 3, 10**6), (10**6, 1, 10**6), (1, 2, 0)):
        monkeypatch.setattr(history, "_FEW_ROWS", few)
        monkeypatch.setattr(history, "_THREADS", threads)
        monkeypatch.setattr(history, "ROWS_KEPT", kept)
        files = History(None, ASKED, locate(tmp_path), GROUPS)  # type: ignore[arg-type]  # no session is needed
        found.append(files.recompute(want)[0])
    assert in_order(found[0]) == in_order(found[1]) == in_order(found[2])
    assert found[0].correlated.sum() > 5
