"""Versions of a store's table: which files there are, and how many rows they have.

Rules of this file:

* A version does not change. What it names stays for an hour after it has been replaced.
* The log says how many rows and bytes a file has, so that nobody misses a lost or a cut file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from model.vocabulary.settings import JsonObject
from spark_impl.runtime.storage import InputProblem, Location, reading

KIND = "kind"
"""The column by which the files of a table are told apart."""
BATCH = "batch"
BOUNDED = (BATCH, "number", "start_us", "event_time_us", "ts_us")
"""Columns whose smallest and largest values are in the log, so that readers can leave out files."""


class DataFile(NamedTuple):
    """A file of a table: rows of one kind."""

    file: Location
    kind: str
    rows: int
    size: int
    """Number of bytes."""
    bounds: Mapping[str, tuple[int, int]]
    """Smallest and largest value of some columns of :data:`BOUNDED`."""

    def may_hold(self, column: str, first: int, last: int) -> bool:
        """Return whether some row may have a value from ``first`` to ``last`` in a column."""
        least, most = self.bounds.get(column, (first, last))
        return least <= last and first <= most


def describe(file: Location, kind: str) -> DataFile | None:
    """Return what the footer of a file says, ``None`` if there is no file.

    Raise :class:`InputProblem` if it cannot be read.
    """
    size = file.info().size
    if size is None:
        return None
    with reading(file):
        footer = pq.read_metadata(file.path, filesystem=file.files)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    bounds = {}
    for place in range(footer.num_columns):
        name = footer.schema.column(place).path
        stats = [group.column(place).statistics for group in groups]
        if name in BOUNDED and all(each is not None and each.has_min_max for each in stats):
            bounds[name] = (min(each.min for each in stats), max(each.max for each in stats))
    return DataFile(file, kind, footer.num_rows, size, bounds)


@dataclass(frozen=True)
class View:
    """One version of a table."""

    root: Location
    version: int
    identity: JsonObject
    """The query to which the table belongs."""
    history: JsonObject | None
    """The history that the query reads, once it has read anything."""
    last: int
    """The last micro-batch, -1 if there is none."""
    files: Mapping[str, Sequence[DataFile]]
    """Files by kind."""

    def of(self, kind: str, batch: int | None = None) -> list[DataFile]:
        """Return the files of a kind; with ``batch`` those that may hold rows of a micro-batch."""
        found = self.files.get(kind, ())
        return [each for each in found if batch is None or each.may_hold(BATCH, batch, batch)]

    def count(self, kind: str) -> int:
        """Return the number of rows of a kind."""
        return sum(each.rows for each in self.of(kind))

    def require_whole(self, files: Sequence[DataFile]) -> None:
        """Raise :class:`InputProblem` unless all of some files are there, with all their bytes."""
        folders = {each.file.parent for each in files}
        sizes = {
            entry.path: entry.size for folder in folders for entry in folder.entries(r".+\.parquet")
        }
        for each in files:
            if sizes.get(each.file.path) != each.size:
                raise lost(self.root, each)


def lost(root: Location, each: DataFile) -> InputProblem:
    """Return the error for a file that is not there, or not whole."""
    msg = (
        f"{root} has lost {each.file.name} with {each.rows} rows of kind {each.kind!r}, or a part"
        " of it: restore the file from a copy"
    )
    return InputProblem(msg)


def read_parquet(
    files: Sequence[Location], schema: pa.Schema, where: pc.Expression | None = None
) -> pa.Table:
    """Return the rows of some Parquet files that pass a filter, with the columns of ``schema``."""
    if not files:
        return schema.empty_table()
    # Imported here: processes that only write need not wait for this import.
    import pyarrow.dataset as ds

    checked = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    kind = ds.ParquetFileFormat(default_fragment_scan_options=checked)
    parts = [kind.make_fragment(file.path, file.files) for file in files]
    source = ds.FileSystemDataset(parts, schema, kind, files[0].files)
    with reading(files[0].parent):
        return source.to_table(columns=schema.names, filter=where)
