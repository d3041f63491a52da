"""The files of a history that a landing has written, or is about to publish."""

from typing import NamedTuple

import pyarrow.parquet as pq

from spark_impl.runtime import histories
from spark_impl.runtime.storage import InputProblem, Location, reading

LANDED_BATCH = b"straggler.batch"
"""Metadata of a file: the micro-batch of its landing."""


class Written(NamedTuple):
    """A scratch file and its number of rows, as reported by the worker that wrote it."""

    file: Location
    rows: int
    gone: int
    """Number of rows that did not land."""

    def footer(self) -> pq.FileMetaData:
        """Return the footer. Raise :class:`InputProblem` unless the file holds all rows."""
        footer = _read_footer(self.file) if self.file.exists() else None
        if footer is None or footer.num_rows != self.rows:
            msg = (
                f"{self.file} does not hold the {self.rows} rows that a worker wrote: the driver"
                " and all workers have to reach one folder under this address"
            )
            raise InputProblem(msg)
        return footer


class Last(NamedTuple):
    """The last file of a history."""

    number: int
    batch: int
    seq: int
    arrival_us: int


def find_last(history: Location) -> Last:
    """Return the last file of a history; without files, what comes before the first one."""
    files = histories.files_of(history)
    return last_of(files[-1], _read_footer(files[-1])) if files else Last(-1, -1, -1, -(1 << 63))


def last_of(file: Location, footer: pq.FileMetaData) -> Last:
    """Return what a footer says. Raise :class:`InputProblem` if no landing has written it."""
    batch = (footer.metadata or {}).get(LANDED_BATCH)
    if batch is None:
        msg = f"{file} was not written by a landing"
        raise InputProblem(msg)
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    at = {footer.schema.column(i).path: i for i in range(footer.num_columns)}
    greatest = [max(g.column(at[c]).statistics.max for g in groups) for c in ("seq", "arrival_us")]
    return Last(int(file.stem), int(batch), *greatest)


def _read_footer(file: Location) -> pq.FileMetaData:
    with reading(file), file.open() as content:
        return pq.read_metadata(content)
