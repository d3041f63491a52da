"""A user's Parquet or CSV file as a frame.

Rules of this file:

* A CSV file is read as text first, because only text can be quoted in an error.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from pyarrow import parquet
from pyarrow.lib import ArrowException

from properties.errors import UsageError, counted

_RAGGED = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")


def read_frame(path: Path, separator: str) -> pd.DataFrame:
    """Read a file; rows are numbered from 0, and the columns of a CSV file are text.

    Raise :class:`UsageError` for an unreadable file, or one with two columns of one name.
    """
    return _read_parquet(path) if _is_parquet(path) else _read_csv(path, separator)


def _is_parquet(path: Path) -> bool:
    if path.suffix.lower() in {".parquet", ".pq"}:
        return True
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        # Read a single file, because a data set would add columns from the path.
        with parquet.ParquetFile(path) as file:
            table = file.read()
    except (ArrowException, OSError) as error:
        raise UsageError(f"{path.name} is not a Parquet file that can be read") from error
    _refuse_duplicates(table.column_names, path)
    return table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)


def _read_csv(path: Path, separator: str) -> pd.DataFrame:
    try:
        # Read the header as a row: otherwise pandas renames duplicate columns, and takes the first
        # field of rows that are too long as an index.
        rows = pd.read_csv(
            path,
            sep=separator,
            header=None,
            dtype=str,
            skipinitialspace=True,
            keep_default_na=False,
            na_values=[""],
        )
    except pd.errors.EmptyDataError as error:
        raise UsageError(f"{path.name} is empty") from error
    except (pd.errors.ParserError, UnicodeDecodeError, OSError) as error:
        ragged = _RAGGED.search(str(error))
        if ragged is None:
            raise UsageError(f"{path.name} is neither a Parquet nor a CSV file") from error
        header, line, fields = map(int, ragged.groups())
        raise UsageError(
            f"{path.name} has {counted(fields, 'field')} in line {line}, its header has {header}"
        ) from error
    names = rows.iloc[0].fillna("").tolist()
    _refuse_duplicates(names, path)
    return rows.iloc[1:].reset_index(drop=True).set_axis(names, axis="columns")


def _refuse_duplicates(names: Sequence[str], path: Path) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise UsageError(f"{path.name} has more than one column {name!r}")
