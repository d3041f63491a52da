"""A text as a CSV file, read or refused."""

from pathlib import Path

import pytest

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
