"""Stores: folders in which queries keep their identity, their position and what they found.

    query.json     which query the store belongs to: version, configuration, history, ...
    .lock          locked by the process that writes; a folder where files cannot be locked
    checkpoint/    Spark's own: offsets, commits, state; elsewhere if the query says so
    control/       requests to the query, read with the files of the history, if it has any

A :class:`TableStore` also has tables:

    <table>/batch=<id>/part-<n>-<rows>.parquet    the rows of a micro-batch
    merged/<table>/<first>-<last>.parquet         rows of a hundred, with a column ``batch``

Rules of this file:

* A store has one writer at a time. Readers never wait.
* A micro-batch writes only folders of its own number and replaces their content, so replaying it
  repairs whatever a crash left.
* The name of a part says how many rows it holds: a list of names proves that nothing is missing.
* One table marks a micro-batch as complete: it is written last and removed first. Readers ignore
  micro-batches without it.
* The mark notes how many rows every table has by then, so that readers miss a file that is gone.
* A merged file replaces the files of its micro-batches as soon as it exists. Those files stay until
  the next hundred is merged, for readers that have just listed them.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from model.vocabulary.settings import JsonObject
from spark_impl.runtime.histories import write_parquet
from spark_impl.runtime.locks import LOCK
from spark_impl.runtime.storage import InputProblem, Location, reading

PART = r"part-\d+-\d+\.parquet"
"""Names of the files that hold the rows of a micro-batch."""
PART_GLOB = f"part-*-{{{','.join('[0-9]' * digits for digits in range(1, 19))}}}.parquet"
"""The same for Spark, which takes no regular expressions."""
IDENTITY = "query.json"
MERGED = 100
"""Number of micro-batches whose files become one."""
_ROWS_MERGED = 4_000_000
"""Most rows of a merged file; a table with more in a hundred micro-batches is not merged again."""
_ROW_GROUP = 20_000
_TIMES = ("start_us", "event_time_us", "ts_us")
"""Columns by which merged rows are sorted, so that readers can leave out row groups."""
_GROUP_TYPES = {"string": pa.string(), "int64": pa.int64()}
_BATCH = pa.field("batch", pa.int64())
_TOTALS = b"straggler.rows"
"""Metadata of a mark: the rows of each table in all micro-batches so far."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Store:
    """The folder of one query."""

    root: Location

    @property
    def checkpoint(self) -> Location:
        """Spark's checkpoint, unless the query has it elsewhere."""
        return self.root / "checkpoint"

    @property
    def control(self) -> Location:
        """Requests to the query."""
        return self.root / "control"

    def numbers(self, folder: str) -> list[int]:
        """Return the numbers of the files ``<number>.json`` in a folder, in order."""
        return sorted(int(file.stem) for file in (self.root / folder).children(r"\d+\.json"))


@dataclass(frozen=True, slots=True)
class TableStore(Store):
    """A store with tables, one folder for each table and micro-batch."""

    groups: tuple[pa.Field, ...] = ()
    """The grouping columns, the first columns of every table."""

    MARKER: ClassVar[str]
    """The table that marks a micro-batch as complete."""

    def schema(self, table: str) -> pa.Schema:
        """Return the schema of a table."""
        raise NotImplementedError

    def tables(self) -> Iterable[str]:
        """Return the names of all tables."""
        raise NotImplementedError

    def folder(self, table: str, batch: int) -> Location:
        """Return the folder in which a micro-batch writes a table."""
        return self.root / table / f"batch={batch}"

    def begin(self, batch: int) -> None:
        """Remove what an earlier attempt at a micro-batch left, its mark first.

        Raises :class:`InputProblem` unless the tables end just before ``batch``, or at ``batch``.
        """
        last = self.committed()
        if last not in (batch - 1, batch):
            msg = (
                f"the checkpoint of {self.root} is at micro-batch {batch}, its tables are at"
                f" {last}; one of them was changed by hand or by a crash of the machine"
            )
            raise InputProblem(msg)
        for table in (self.MARKER, *self.tables()):
            self.folder(table, batch).remove()

    def write(self, table: str, batch: int, rows: pa.Table, part: int = 0) -> int:
        """Write one part of a table, if it has rows; return their number."""
        if rows.num_rows:
            self._write_part(table, batch, rows, part)
        return int(rows.num_rows)

    def _write_part(self, table: str, batch: int, rows: pa.Table, part: int) -> None:
        name = f"part-{part:05d}-{rows.num_rows}.parquet"
        rows = rows.select(self.schema(table).names)
        write_parquet(rows, self.folder(table, batch) / name)

    def complete(self, batch: int, mark: pa.Table, written: Mapping[str, int]) -> None:
        """Write the table that marks a micro-batch as complete.

        ``written`` is the number of rows that the micro-batch has written to other tables.
        """
        own = {**written, self.MARKER: mark.num_rows}
        before = self._noted(batch - 1)
        if before is None:  # the first micro-batch, or a store without notes
            before = {
                name: sum(map(_rows_of, self._files_until(name, batch - 1)))
                for name in self.lasting()
            }
        totals = {name: before.get(name, 0) + own.get(name, 0) for name in self.lasting()}
        noted = mark.replace_schema_metadata({_TOTALS: json.dumps(totals)})
        self._write_part(self.MARKER, batch, noted, 0)

    def _noted(self, batch: int) -> dict[str, int] | None:
        """Return the rows of each table up to a micro-batch, None if its mark does not say so."""
        for file in self.files_of(self.MARKER, batch):
            with reading(file), suppress(FileNotFoundError):  # the micro-batch begins anew
                kept = pq.read_schema(file.path, filesystem=file.files).metadata or {}
                if _TOTALS in kept:
                    found: dict[str, int] = json.loads(kept[_TOTALS])
                    return found
        return None

    def files_until(self, table: str, last: int) -> list[Location]:
        """Return the files of a table up to micro-batch ``last``.

        Raise :class:`InputProblem` if rows are missing.
        """
        noted = self._noted(last) or {}
        files = self._files_until(table, last)
        here = sum(map(_rows_of, files)) if table in noted else 0
        # Unless the micro-batch begins anew, its mark still says the same.
        if here != noted.get(table, 0) and self._noted(last) == noted:
            msg = (
                f"{self.root} has {here} of the {noted[table]} rows that were written to {table!r}"
                f" up to micro-batch {last}: restore its files from a copy"
            )
            raise InputProblem(msg)
        return files

    def count(self, table: str, last: int) -> int:
        """Return the number of rows of a table up to micro-batch ``last``."""
        return sum(map(_rows_of, self.files_until(table, last)))

    def _files_until(self, table: str, last: int) -> list[Location]:
        listed = self.files(table).items()
        return [file for batch, each in listed if batch <= last for file in each]

    def require_rows(self, batch: int, written: Mapping[str, int]) -> None:
        """Raise :class:`InputProblem` unless the tables hold what workers say they have written.

        ``written`` is the number of rows of a micro-batch by table.
        """
        for table, rows in written.items():
            here = sum(map(_rows_of, self.files_of(table, batch)))
            if here != rows:
                msg = (
                    f"{self.root} has {here} of the {rows} rows that workers wrote to {table!r} in"
                    f" micro-batch {batch}: the driver and all workers have to reach one folder"
                    " under this address"
                )
                raise InputProblem(msg)

    def committed(self) -> int:
        """Return the last complete micro-batch, -1 if there is none."""
        return max(self.files(self.MARKER), default=-1)

    def lasting(self) -> Iterable[str]:
        """Return the names of the tables that keep the rows of all micro-batches."""
        return self.tables()

    def merged(self, table: str) -> dict[int, Location]:
        """Return the merged files of a table by their last micro-batch."""
        files = (self.root / "merged" / table).children(r"\d+-\d+\.parquet")
        return {int(file.stem.split("-")[1]): file for file in files}

    def compact(self, batch: int) -> bool:
        """Merge the files of full hundreds of micro-batches, if ``batch`` begins another hundred.

        ``batch`` is the micro-batch that was completed last. Return whether merging was due.
        """
        if not batch or batch % MERGED:
            return False
        for table in self.lasting():
            merged = max(self.merged(table), default=-1)
            later = {at: files for at, files in self._parts(table).items() if at > merged}
            for first in range(merged + 1, batch, MERGED):
                last = first + MERGED - 1
                own = [file for at, files in later.items() if first <= at <= last for file in files]
                if sum(map(_rows_of, own)) > _ROWS_MERGED:
                    break
                if own:
                    self._merge(table, own, f"{first:08d}-{last:08d}.parquet")
            for at in self._parts(table):
                if at <= merged:
                    self.folder(table, at).remove()
        return True

    def _merge(self, table: str, files: Sequence[Location], name: str) -> None:
        rows = read_parquet(files, self.schema(table).append(_BATCH))
        by = [(name, "ascending") for name in _TIMES if name in rows.column_names]
        rows = rows.sort_by(by) if by else rows
        write_parquet(rows, self.root / "merged" / table / name, _ROW_GROUP)

    def files(self, table: str) -> dict[int, list[Location]]:
        """Return the files of a table by micro-batch, incomplete micro-batches included.

        A merged file belongs to its last micro-batch.
        """
        merged = self.merged(table)
        last = max(merged, default=-1)
        parts = {at: files for at, files in self._parts(table).items() if at > last}
        return {**{at: [file] for at, file in merged.items()}, **parts}

    def _parts(self, table: str) -> dict[int, list[Location]]:
        by_batch: dict[int, list[Location]] = {}
        for found in (self.root / table).entries(PART, is_deep=True):
            file = Location(found.path, self.root.system)
            if batch := re.fullmatch(r"batch=(\d+)", file.parent.name):
                by_batch.setdefault(int(batch[1]), []).append(file)
        return by_batch

    def files_of(self, table: str, batch: int) -> list[Location]:
        """Return the files of a table that one micro-batch wrote."""
        return self.folder(table, batch).children(PART)

    def read(self, table: str, batch: int) -> pa.Table:
        """Return the rows of a table that one micro-batch wrote."""
        return read_parquet(self.files_of(table, batch), self.schema(table))

    def read_all(self, table: str, last: int | None = None) -> pa.Table:
        """Return a table up to micro-batch ``last``, with a column ``batch``.

        ``last`` is by default the last complete micro-batch.
        """
        upto = self.committed() if last is None else last
        return read_parquet(self.files_until(table, upto), self.schema(table).append(_BATCH))


def claim(
    root: Location, identity: JsonObject, require_same: Callable[[], None], kind: str = "query"
) -> None:
    """Make a folder the store of a query; if it is a store already, call ``require_same``.

    ``kind`` is the word for the query in messages. Raises :class:`InputProblem`, and writes
    nothing, if the folder holds something else.
    """
    path = root / IDENTITY
    if path.exists():
        require_same()
    elif root.exists() and not _is_empty(root):
        msg = f"{root} is neither an empty folder nor the store of a {kind}"
        raise InputProblem(msg)
    else:
        path.write_bytes(json.dumps(identity, indent=1).encode("utf-8"))


def _is_empty(root: Location) -> bool:
    """Return whether a folder holds nothing but what a crash in :func:`claim` may leave."""
    ours = (LOCK, f".{IDENTITY}.")
    return root.is_folder() and all(each.name.startswith(ours) for each in root.children())


def read_identity(
    root: Location,
    version: int,
    read: Callable[[JsonObject], _T],
    *,
    room: str | None = None,
    kind: str = "query",
) -> _T:
    """Return what ``read`` makes of the identity of a store.

    ``room`` is compared with the room that the store names, if it names one. Raises
    :class:`InputProblem` if there is no store, if it belongs to another room or was written by
    another version, or if its identity cannot be read.
    """
    path = root / IDENTITY
    if not path.exists():
        msg = f"{root} is not the store of a {kind}"
        raise InputProblem(msg)
    try:
        identity = json.loads(path.read_bytes())
        owner, written = identity.get("room", room), identity["version"]
        if (owner, written) == (room, version):
            return read(identity)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        msg = f"{path} does not say to which {kind} the store belongs; restore it from a copy"
        raise InputProblem(msg) from error
    if owner != room:
        msg = f"{root} belongs to a query of room {owner!r}" + (f", not {room!r}" if room else "")
    else:
        msg = f"{root} was written by version {written!r} of the store, not {version}"
    raise InputProblem(msg)


def require_same(root: Location, theirs: JsonObject, ours: JsonObject, kind: str = "query") -> None:
    """Raise :class:`InputProblem` for the first setting whose value differs in the store."""
    for name in sorted(ours):
        if theirs.get(name) != ours[name]:
            msg = (
                f"{root} belongs to another {kind}:"
                f" its {name} is {theirs.get(name)!r}, not {ours[name]!r}"
            )
            raise InputProblem(msg)


def groups_to_json(groups: Iterable[pa.Field]) -> list[list[str]]:
    """Return grouping columns and their types as plain data."""
    return [[field.name, str(field.type)] for field in groups]


def groups_from_json(names: Iterable[Sequence[str]]) -> tuple[pa.Field, ...]:
    """Read what :func:`groups_to_json` returned."""
    return tuple(pa.field(name, _GROUP_TYPES[kind]) for name, kind in names)


def _rows_of(file: Location) -> int:
    """Return the number of rows of a part, from its name, or of a merged file, from its footer."""
    if not re.fullmatch(PART, file.name):
        with reading(file):
            return int(pq.read_metadata(file.path, filesystem=file.files).num_rows)
    return int(file.stem.rsplit("-", maxsplit=1)[-1])


def read_parquet(
    files: Sequence[Location], schema: pa.Schema, where: pc.Expression = None
) -> pa.Table:
    """Return the rows of some Parquet files that pass a filter, with the columns of ``schema``."""
    if not files:
        return schema.empty_table()
    # Imported here: processes that only write need not wait for this import.
    import pyarrow.dataset as ds

    checked = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
    kind = ds.ParquetFileFormat(default_fragment_scan_options=checked)
    parts = [kind.make_fragment(file.path, file.files, _batch_of(file)) for file in files]
    source = ds.FileSystemDataset(parts, schema, kind, files[0].files)
    with reading(files[0].parent):
        return source.to_table(columns=schema.names, filter=where)


def _batch_of(file: Location) -> pc.Expression:
    """Return what the name of a file's folder says about all its rows, such as ``batch=3``.

    Folders above that one do not count: a user may have chosen such a name.
    """
    name, _, number = file.parent.name.partition("=")
    return pc.field(name) == int(number) if name == "batch" else None
