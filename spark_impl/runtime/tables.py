"""The Delta table of a store: created, looked at, and written one version a micro-batch.

Drivers and readers use this module, and only they need the library: workers write plain Parquet
files, which count when the driver has committed them.

Rules of this file:

* A version of the table is a micro-batch, or tidying up, which changes no row. A file stays for an
  hour after a version has replaced it.
* A commit carries the number of its micro-batch as a transaction of Delta's. Of two drivers that
  write one number, the later one fails, however late: no lock is needed, and none is trusted.
* A commit also carries a digest of what Spark had planned for the micro-batch. A driver with a copy
  of Spark's checkpoint may plan other rows under the same number.
* The log says how many rows and bytes a file has, so that a lost or a cut file is noticed.
"""

import hashlib
import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa

from model.vocabulary.settings import JsonObject
from spark_impl.runtime.storage import InputProblem, Location

if TYPE_CHECKING:  # workers do without this library: whatever needs it imports it
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction

KIND = "kind"
"""The column that partitions a table: the kind of the rows of a file."""
BATCH = "batch"
BOUNDED = (BATCH, "number", "start_us", "event_time_us", "ts_us")
"""Columns whose smallest and largest values are in the log, so that readers can leave out files."""
IDENTITY, HISTORY = "straggler.identity", "straggler.history"
"""Properties of a table: the query to which it belongs, and the history of that query."""
_QUERY = "straggler"
"""Delta's name for the series of transactions whose numbers are those of micro-batches."""
_PLAN = "straggler.plan"
"""Delta's name for the series whose last number is the digest of the last micro-batch's plan."""
_COMMIT = "straggler.commit"
"""Name of a commit's own id in the log, by which its writer finds out whether it counts."""
_SETTINGS = {
    "delta.checkpointInterval": "25",
    "delta.logRetentionDuration": "interval 1 minutes",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
    "delta.dataSkippingStatsColumns": ",".join(BOUNDED),
}
TIDIED = 100
"""Number of versions after which small files are merged."""
_MERGED_BYTES = 4 << 20
"""Larger files are not merged again, so that the cost of merging does not grow."""
_ROW_GROUP = 20_000
_MISTAKEN = r"%[0-9A-Fa-f]{2}|[\\\x00-\x1f]"


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
    files: Sequence[DataFile]
    """Files in the order of their micro-batches."""
    columns: frozenset[str]
    """The columns of the table."""

    def of(self, kind: str, first: int = 0, last: int | None = None) -> list[DataFile]:
        """Return the files that may hold rows of a kind, of micro-batches ``first`` to ``last``."""
        end = self.last if last is None else last
        own = (each for each in self.files if each.kind == kind)
        return [each for each in own if each.may_hold(BATCH, first, end)]

    def count(self, kind: str) -> int:
        """Return the number of rows of a kind."""
        return sum(each.rows for each in self.of(kind))


def plan_of(checkpoint: Location, batch: int) -> Location:
    """Return the file in which Spark keeps what it has planned for a micro-batch."""
    return checkpoint / "offsets" / str(batch)


def digest_of(checkpoint: Location | None, batch: int) -> int:
    """Return a digest of what Spark has planned for a micro-batch, 0 if there is no plan."""
    if checkpoint is not None:
        with suppress(FileNotFoundError):
            plan = plan_of(checkpoint, batch).read_bytes()
            return int(hashlib.sha256(plan).hexdigest()[:15], 16)
    return 0


def require_plan(written: Location, digest: int, checkpoint: Location, batch: int) -> None:
    """Raise :class:`InputProblem` if rows were written by another plan than Spark's.

    ``digest`` is that of the plan of the rows, 0 if unknown. ``written`` is where the rows are.
    """
    if digest and digest_of(checkpoint, batch) not in (0, digest):
        msg = (
            f"{written} has micro-batch {batch} already: another query has written it, with other"
            f" rows than {plan_of(checkpoint, batch)} says, and has to go on instead of this one"
        )
        raise InputProblem(msg)


def look(root: Location) -> View | None:
    """Return the present version of a table, ``None`` if there is no table, or not one of ours."""
    table = _open(root)
    is_ours = table is not None and IDENTITY in table.metadata().configuration
    return _view(root, table) if table is not None and is_ours else None


def _open(root: Location) -> "DeltaTable | None":
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    if not root.is_folder():
        return None
    with _working(root, "read"):
        try:
            return DeltaTable(_uri(root), storage_options=_options(root))
        except TableNotFoundError:
            return None


def _view(root: Location, table: "DeltaTable") -> View:
    kept, last = table.metadata().configuration, table.transaction_version(_QUERY)
    files = [
        DataFile(
            root / unquote(row["path"]),
            row[f"partition.{KIND}"],
            row["num_records"],
            row["size_bytes"],
            {
                name: (row[f"min.{name}"], row[f"max.{name}"])
                for name in BOUNDED
                if row.get(f"min.{name}") is not None
            },
        )
        for row in pa.table(table.get_add_actions(flatten=True)).to_pylist()
    ]
    return View(
        root,
        table.version(),
        json.loads(kept.get(IDENTITY, "{}")),
        json.loads(kept.get(HISTORY, "null")),
        -1 if last is None else last,
        sorted(files, key=lambda each: each.bounds.get(BATCH, (0, 0))),
        frozenset(each.name for each in table.schema().fields),
    )


def create(root: Location, columns: pa.Schema, identity: JsonObject) -> None:
    """Make a folder a table without rows.

    Raise :class:`InputProblem` if it cannot be written, or if it is a table already.
    """
    from deltalake import DeltaTable, Schema

    with _working(root, "written"):
        DeltaTable.create(
            _uri(root),
            Schema.from_arrow(columns),
            mode="error",
            partition_by=[KIND],
            configuration={**_SETTINGS, IDENTITY: json.dumps(identity)},
            storage_options=_options(root),
            raise_if_key_not_exists=False,
        )


class TableWriter:
    """The writer of a table, whose commits continue the version that it has looked at."""

    def __init__(
        self, root: Location, source: Location | None = None, checkpoint: Location | None = None
    ) -> None:
        table = _open(root)
        if table is None:
            msg = f"{root} is not the store of a query any more"
            raise InputProblem(msg)
        self.root = root
        """The folder of the table."""
        self._table = table
        self._tidied = table.version() // TIDIED
        self.view = _view(root, table)
        """The version that the next commit continues."""
        self._own = -1
        """The last micro-batch that is known to be written by a plan of ours."""
        self.source = source
        """The history to check and note; None once that is done, or without a history."""
        self.checkpoint = checkpoint
        """Spark's checkpoint, if the rows come from a stream."""

    def look(self) -> View:
        """Look at the table again: the next commit continues the version that it has now."""
        with _working(self.root, "read"):
            self._table.update_incremental()
        if self._table.version() != self.view.version:
            self.view = _view(self.root, self._table)
        return self.view

    def require_plan(self) -> None:
        """Raise :class:`InputProblem` if the last micro-batch was written by another plan."""
        if self.checkpoint is None or self.view.last == self._own:  # the usual case reads no file
            return
        with _working(self.root, "read"):
            digest = self._table.transaction_version(_PLAN) or 0
        require_plan(self.root, digest, self.checkpoint, self.view.last)
        self._own = self.view.last

    def note_history(self, history: JsonObject) -> None:
        """Note the history of the query. Raise :class:`InputProblem` if that is not possible."""
        noted = {HISTORY: json.dumps(history)}
        with _working(self.root, "written"):
            self._table.alter.set_table_properties(noted, raise_if_not_exists=False)
        self.look()

    def require_columns(self, columns: Iterable[pa.Field]) -> None:
        """Add the columns that the table lacks; :class:`InputProblem` if it cannot be written."""
        from deltalake import Schema

        fresh = [each for each in columns if each.name not in self.view.columns]
        if fresh:
            with _working(self.root, "written"):
                self._table.alter.add_columns(Schema.from_arrow(pa.schema(fresh)).fields)
            self.look()

    def commit(
        self,
        batch: int,
        written: Sequence[DataFile],
        removed: Sequence[DataFile] = (),
    ) -> None:
        """Add the files of a micro-batch to the table, in one version.

        ``removed`` are files whose rows count no more. Raise :class:`InputProblem`, and change
        nothing, if somebody else has written the micro-batch since :meth:`look`.
        """
        from deltalake import CommitProperties, Transaction
        from deltalake.transaction import RemoveAction

        now_ms = time.time_ns() // 1_000_000
        actions: list[AddAction | RemoveAction] = [
            *(_addition(self.root, each, now_ms) for each in written),
            *(
                RemoveAction(_relative(self.root, each), True, now_ms, each.size, {KIND: each.kind})
                for each in removed
            ),
        ]
        digest = digest_of(self.checkpoint, batch)
        numbers = [Transaction(_QUERY, batch), Transaction(_PLAN, digest)]
        ours = {_COMMIT: uuid.uuid4().hex}
        transaction = CommitProperties(custom_metadata=ours, app_transactions=numbers)
        try:
            with _working(self.root, "written"):
                self._table.create_write_transaction(
                    actions,
                    "append",
                    self._table.schema(),
                    partition_by=[KIND],
                    commit_properties=transaction,
                )
        except InputProblem as error:
            # The table says more reliably than the error whether another writer was quicker.
            if self.look().last < batch:
                raise
            # If the commit is ours, only what Delta does after one, as with its log, has failed.
            with _working(self.root, "read"):
                is_ours = any(ours.items() <= each.items() for each in self._table.history())
            if not is_ours:
                msg = (
                    f"{self.root} has micro-batch {batch} already: another query has written it,"
                    " and nothing of this one counts"
                )
                raise InputProblem(msg) from error
        else:
            self._follow(batch, written, removed)
        self._own = batch

    def _follow(self, batch: int, written: Sequence[DataFile], removed: Sequence[DataFile]) -> None:
        """Take the version of an own commit as the view, without reading it from the log."""
        before, gone = self.view, {each.file for each in removed}
        with _working(self.root, "read"):
            self._table.update_incremental()
        if self._table.version() != before.version + 1:  # others, too, have written
            self.look()
            return
        files = [*(each for each in before.files if each.file not in gone), *written]
        self.view = replace(before, version=before.version + 1, last=batch, files=files)

    def tidy(self, kinds: Iterable[str]) -> None:
        """Merge small files of some kinds, and remove files that no recent version has.

        Do so once in :data:`TIDIED` versions. Raise :class:`InputProblem` if that is impossible.
        """
        from deltalake import WriterProperties
        from deltalake.exceptions import CommitFailedError

        if self._table.version() // TIDIED == self._tidied:
            return
        self._tidied = self._table.version() // TIDIED
        merged = WriterProperties(compression="ZSTD", max_row_group_size=_ROW_GROUP)
        with _working(self.root, "tidied"):
            try:
                self._table.optimize.compact(
                    [(KIND, "in", [*kinds])], _MERGED_BYTES, writer_properties=merged
                )
                for name in self._table.vacuum(dry_run=True, full=True):
                    if name.startswith(f"{KIND}="):  # users may keep other files in the folder
                        (self.root / unquote(name)).remove()
            except CommitFailedError:  # somebody tidies up as well; the next hundred will do
                pass
        self.look()


def _addition(root: Location, each: DataFile, now_ms: int) -> "AddAction":
    from deltalake.transaction import AddAction

    stats: dict[str, Any] = {"numRecords": each.rows}
    for name, place in (("minValues", 0), ("maxValues", 1)):
        stats[name] = {column: ends[place] for column, ends in each.bounds.items()}
    values = {KIND: each.kind}
    return AddAction(_relative(root, each), each.size, values, now_ms, True, json.dumps(stats))


def _relative(root: Location, each: DataFile) -> str:
    return each.file.path.removeprefix(f"{root.path.rstrip('/')}/")


def _uri(root: Location) -> str:
    """Return the address of a folder as Delta takes it.

    Raise :class:`InputProblem` for a path that it would take for another one.
    """
    if re.search(_MISTAKEN, root.path):
        msg = (
            f"{root} cannot be a store: its path has a backslash, a control character, or a percent"
            " sign with two digits behind it, which Delta takes for other characters"
        )
        raise InputProblem(msg)
    return f"{'file' if root.is_local else 's3'}://{quote(root.path)}"


def _options(root: Location) -> dict[str, str] | None:
    """Return the parameters of an address on S3 as Delta takes them; None without any."""
    options = {f"AWS_{name.upper()}": value for name, value in root.s3_client.items()}
    if options.get("AWS_ENDPOINT", "").startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options or None


@contextmanager
def _working(root: Location, how: str) -> Iterator[None]:
    """Turn an error of Delta or the operating system into an :class:`InputProblem`."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError) as error:
        reason = str(error).strip().split("\n", maxsplit=1)[0]
        msg = f"{root} cannot be {how}: {reason}"
        raise InputProblem(msg) from error
