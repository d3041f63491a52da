"""Files of a history get increasing times."""

from pathlib import Path

import pyarrow as pa

from spark_impl.runtime.histories import append


def test_later_files_have_later_times_in_milliseconds(tmp_path: Path) -> None:
    paths = [append(tmp_path, pa.table({"x": [i]})) for i in range(5)]
    times = [path.stat().st_mtime_ns // 1_000_000 for path in paths]
    assert times == sorted(set(times))
    assert [path.name for path in paths] == sorted(path.name for path in paths)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
