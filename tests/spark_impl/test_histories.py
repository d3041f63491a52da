"""Files of a history are numbered without gaps."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_impl.runtime.histories import append, files_of, numbers, open_piece
from spark_impl.runtime.storage import InputProblem, Location, locate

ROWS = pa.table({"x": [1]})


def test_appended_files_get_the_next_numbers(place: Location) -> None:
    assert (numbers(place), files_of(place)) == (range(0), [])
    files = [append(place, ROWS) for _ in range(11)]
    assert [file.name for file in files[:2]] == ["00000000.parquet", "00000001.parquet"]
    assert files_of(place) == place.children() == files


def test_first_number_may_be_any(tmp_path: Path) -> None:
    append(tmp_path, ROWS)
    (tmp_path / "00000000.parquet").rename(tmp_path / "99999999.parquet")
    assert append(tmp_path, ROWS).name == "100000000.parquet"
    assert numbers(locate(tmp_path)) == range(99_999_999, 100_000_001)


@pytest.mark.parametrize(
    "name", ["x.parquet", "1.parquet", "part-00000.parquet", "0x000000.parquet"]
)
def test_file_without_a_number_is_refused(tmp_path: Path, name: str) -> None:
    for ignored in ("_x.parquet", ".x.parquet", "notes.txt"):
        (tmp_path / ignored).touch()
    assert numbers(locate(tmp_path)) == range(0)
    (tmp_path / name).touch()
    with pytest.raises(InputProblem, match=f"/{name} has no number; the files of a history are"):
        append(tmp_path, ROWS)


@pytest.mark.parametrize("name", ["key", "value", "seq", "x"])
def test_a_column_twice_is_refused_with_file_and_column(tmp_path: Path, name: str) -> None:
    columns = dict.fromkeys(["seq", "value", "x"], pa.array([1])) | {"key": pa.array(["a"])}
    names = [*columns, name]
    table = pa.table([columns[each] for each in names], names)
    pq.write_table(table, tmp_path / "00000000.parquet")
    with pytest.raises(InputProblem, match=f"00000000.parquet has more than one column '{name}'"):
        open_piece(locate(tmp_path) / "00000000.parquet")
