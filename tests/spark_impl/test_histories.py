"""Files of a history are numbered without gaps."""

from pathlib import Path

import pyarrow as pa
import pytest

from spark_impl.runtime.histories import append, files_of, numbers
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
