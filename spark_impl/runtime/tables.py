"""The Delta table of a store: created, looked at, and written one version a micro-batch.

Drivers and readers use this module, and only they need the library: workers write plain Parquet
files, which count when the driver has committed them.

Rules of this file:

* A version of the table is a micro-batch, or tidying up, which changes no row.
* A commit carries the number of its micro-batch as a transaction of Delta's. Of two drivers that
  write one number, the second one fails, whatever kept it: no lock is needed, and none is trusted.
* A writer commits on the version that it looked at before the micro-batch began.
* A file of rows never changes. What a version no longer needs stays for an hour, for readers that
  have opened an earlier version.
"""

import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote

import pyarrow as pa

from model.vocabulary.settings import JsonObject
from spark_impl.runtime.storage import InputProblem, Location
from spark_impl.runtime.versions import BATCH, BOUNDED, KIND, DataFile, View

if TYPE_CHECKING:  # workers do without this library: whatever needs it imports it
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

IDENTITY, HISTORY = "straggler.identity", "straggler.history"
"""Properties of a table: which query it belongs to, and over which history."""
_QUERY = "straggler"
"""Delta's name for the series of transactions whose numbers are those of micro-batches."""
_SETTINGS = {
    "delta.checkpointInterval": "25",
    "delta.logRetentionDuration": "interval 1 minutes",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
    "delta.dataSkippingStatsColumns": ",".join(BOUNDED),
}
TIDIED = 100
"""Number of versions after which small files are merged."""
_MERGED_BYTES = 4 << 20
"""Larger files are merged no more, so that merging costs the same for ever."""
_ROW_GROUP = 20_000
_OPTIONS = {"region": "AWS_REGION", "endpoint_override": "AWS_ENDPOINT_URL"}
"""Parameters of S3 addresses, and what Delta calls them; it finds credentials where Arrow does."""
_MISTAKEN = r"%[0-9A-Fa-f]{2}|[\\\x00-\x1f]"


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


def look(root: Location) -> View | None:
    """Return the present version of a table, ``None`` if there is no table."""
    table = _open(root)
    return None if table is None else _view(root, table)


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
    kept = table.metadata().configuration
    files: dict[str, list[DataFile]] = {}
    for row in pa.table(table.get_add_actions(flatten=True)).to_pylist():
        kind = row[f"partition.{KIND}"]
        bounds = {
            name: (row[f"min.{name}"], row[f"max.{name}"])
            for name in BOUNDED
            if row.get(f"min.{name}") is not None
        }
        file = root / unquote(row["path"])
        files.setdefault(kind, []).append(
            DataFile(file, kind, row["num_records"], row["size_bytes"], bounds)
        )
    for own in files.values():
        own.sort(key=lambda each: each.bounds.get(BATCH, (0, 0)))
    last = table.transaction_version(_QUERY)
    return View(
        root,
        table.version(),
        json.loads(kept.get(IDENTITY, "{}")),
        json.loads(kept.get(HISTORY, "null")),
        -1 if last is None else last,
        files,
    )


class TableWriter:
    """The writer of a table."""

    def __init__(self, root: Location) -> None:
        table = _open(root)
        if table is None:
            msg = f"{root} is not the store of a query any more"
            raise InputProblem(msg)
        self._root = root
        self._table = table
        self._tidied = table.version() - table.version() % TIDIED
        self.view = _view(root, table)
        """The version that the next commit continues."""

    def look(self, expected: View | None = None) -> View:
        """Look at the table again: the next commit continues the version that it has now.

        ``expected`` is that version, if nobody else has written.
        """
        with _working(self._root, "read"):
            self._table.update_incremental()
        if expected is not None and expected.version == self._table.version():
            self.view = expected
        elif self._table.version() != self.view.version:
            self.view = _view(self._root, self._table)
        return self.view

    def note_history(self, history: JsonObject) -> None:
        """Note the history of the query. Raise :class:`InputProblem` if that is not possible."""
        noted = {HISTORY: json.dumps(history)}
        with _working(self._root, "written"):
            self._table.alter.set_table_properties(noted, raise_if_not_exists=False)
        self.look()

    def commit(
        self, batch: int, written: Sequence[DataFile], removed: Sequence[DataFile] = ()
    ) -> View:
        """Add the files of a micro-batch to the table, in one version; return that version.

        ``removed`` are files whose rows count no more. Raise :class:`InputProblem`, and change
        nothing, if somebody else has written the micro-batch since :meth:`look`.
        """
        from deltalake import CommitProperties, Transaction

        now_ms = time.time_ns() // 1_000_000
        actions: list[AddAction | RemoveAction] = [
            *(_addition(self._root, each, now_ms) for each in written),
            *(_removal(self._root, each, now_ms) for each in removed),
        ]
        transaction = CommitProperties(app_transactions=[Transaction(_QUERY, batch)])

        def write() -> None:
            self._table.create_write_transaction(
                actions,
                "append",
                self._table.schema(),
                partition_by=[KIND],
                commit_properties=transaction,
            )

        self._try(write, batch)
        return self.look(_after(self.view, batch, written, {*map(_path, removed)}))

    def _try(self, write: Callable[[], None], batch: int) -> None:
        try:
            with _working(self._root, "written"):
                write()
        except InputProblem as error:
            # Whether another writer was quicker, the table says more reliably than the error.
            if self.look().last < batch:
                raise
            msg = (
                f"{self._root} has micro-batch {batch} already: another query has written it, and"
                " nothing of this one counts"
            )
            raise InputProblem(msg) from error

    def tidy(self, kinds: Iterable[str]) -> None:
        """Merge small files of some kinds, and remove files that no recent version has.

        This happens now and then only. Raise :class:`InputProblem` if rows cannot be read.
        """
        from deltalake import WriterProperties
        from deltalake.exceptions import CommitFailedError

        if self._table.version() < self._tidied + TIDIED:
            return
        self._tidied = self._table.version() - self._table.version() % TIDIED
        merged = WriterProperties(compression="ZSTD", max_row_group_size=_ROW_GROUP)
        with _working(self._root, "tidied"):
            try:
                self._table.optimize.compact(
                    [(KIND, "in", [*kinds])], _MERGED_BYTES, writer_properties=merged
                )
                self._table.vacuum(dry_run=False, full=True)
            except CommitFailedError:  # somebody tidies up as well; the next hundred will do
                pass
        self.look()


def _after(before: View, batch: int, written: Sequence[DataFile], removed: Collection[str]) -> View:
    """Return the version behind another one; it costs less than to read the log."""
    files = {kind: list(own) for kind, own in before.files.items()}
    for kind, own in files.items() if removed else ():
        files[kind] = [each for each in own if each.file.path not in removed]
    for each in written:
        files.setdefault(each.kind, []).append(each)
    return replace(before, version=before.version + 1, last=batch, files=files)


def _path(each: DataFile) -> str:
    return each.file.path


def _addition(root: Location, each: DataFile, now_ms: int) -> "AddAction":
    from deltalake.transaction import AddAction

    stats: dict[str, Any] = {"numRecords": each.rows}
    for name, place in (("minValues", 0), ("maxValues", 1)):
        stats[name] = {column: ends[place] for column, ends in each.bounds.items()}
    values = {KIND: each.kind}
    return AddAction(_relative(root, each), each.size, values, now_ms, True, json.dumps(stats))


def _removal(root: Location, each: DataFile, now_ms: int) -> "RemoveAction":
    from deltalake.transaction import RemoveAction

    return RemoveAction(_relative(root, each), True, now_ms, each.size, {KIND: each.kind})


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
    path = quote(root.path)
    if root.is_local:
        return f"file://{path}"
    system = root.system.partition("?")[0]
    return f"s3://{path}" if system == "s3:" else f"{system}{path}"


def _options(root: Location) -> dict[str, str] | None:
    """Return the parameters of an address on S3 as Delta takes them."""
    given = dict(parse_qsl(root.system.partition("?")[2]))
    if not given:
        return None
    options = {theirs: given[ours] for ours, theirs in _OPTIONS.items() if ours in given}
    endpoint = options.get("AWS_ENDPOINT_URL")
    if endpoint is not None and "://" not in endpoint:
        options["AWS_ENDPOINT_URL"] = f"{given.get('scheme', 'https')}://{endpoint}"
    if options.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options


@contextmanager
def _working(root: Location, how: str) -> Iterator[None]:
    """Turn an error of Delta's in the block into an :class:`InputProblem`."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError) as error:
        reason = str(error).strip().split("\n", maxsplit=1)[0]
        msg = f"{root} cannot be {how}: {reason}"
        raise InputProblem(msg) from error
