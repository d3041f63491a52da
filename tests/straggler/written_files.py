"""A text as a CSV file and columns as a Parquet file, read or refused."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from straggler.errors import UsageError
from straggler.inputs.tables import DEFAULT_COLUMNS, Columns, Recording, read_table


def csv(folder: Path, text: str, columns: Columns = DEFAULT_COLUMNS) -> Recording:
    path = folder / "data.csv"
    path.write_text(text, encoding="utf-8")
    return read_table(path, columns)


def refusal(folder: Path, text: str, columns: Columns = DEFAULT_COLUMNS) -> str:
    with pytest.raises(UsageError) as refused:
        csv(folder, text, columns)
    return str(refused.value)


def table(folder: Path, columns: Columns = DEFAULT_COLUMNS, **arrays: Any) -> Recording:
    path = folder / "data.parquet"
    parquet.write_table(pa.table({"event_time": [1, 2], "value": [1.0, 2.0], **arrays}), path)
    return read_table(path, columns)
