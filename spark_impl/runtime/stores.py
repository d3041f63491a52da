"""Stores: what a streaming query found, its identity and its position, as one Delta table.

    _delta_log/              versions of the table; its properties say to which query it belongs
    kind=<kind>/*.parquet    rows of one kind; a column ``batch`` has the number of a micro-batch
    _checkpoint/             Spark's own: offsets, commits, state; elsewhere if the query says so
    _control/                requests to the query, read with the files of the history, if any
    _empty/<number>.json     the last micro-batch without rows, which is no version of the table

Rules of this file:

* Workers write files under new names. The driver commits all files of a micro-batch in one version
  (:mod:`spark_impl.runtime.tables`); whatever no version names does not count, and goes later.
* Readers look at one version. They never wait, and what they have found does not change.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from model.vocabulary.settings import JsonObject
from spark_impl.runtime.histories import write_parquet
from spark_impl.runtime.storage import InputProblem, Location
from spark_impl.runtime.tables import TableWriter, create, look
from spark_impl.runtime.versions import (
    BATCH,
    KIND,
    DataFile,
    View,
    describe,
    lost,
    read_parquet,
)

ATTEMPT = "attempt"
"""The column of reports in which workers tell the names of the files that they have written."""
_EARLIER = "query.json"
"""File with the identity of a store of an earlier version."""
_GROUP_TYPES = {"string": pa.string(), "int64": pa.int64()}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Store:
    """The folder of one query."""

    root: Location

    @property
    def checkpoint(self) -> Location:
        """Spark's checkpoint, unless the query has it elsewhere."""
        return self.root / "_checkpoint"

    @property
    def control(self) -> Location:
        """Requests to the query."""
        return self.root / "_control"

    def note_empty(self, batch: int) -> None:
        """Note that a micro-batch had no rows; forget the one before."""
        file = self.root / "_empty" / f"{batch}.json"
        file.write_bytes(b"{}")
        for other in file.parent.children(r"\d+\.json"):
            if other != file:
                other.remove()

    def last_empty(self) -> int:
        """Return the last micro-batch without rows, -1 if none is known."""
        files = (self.root / "_empty").children(r"\d+\.json")
        return max((int(file.stem) for file in files), default=-1)


@dataclass(frozen=True, slots=True)
class TableStore(Store):
    """A store with rows of several kinds."""

    groups: tuple[pa.Field, ...] = ()
    """The grouping columns, the first columns of every kind of rows."""

    def kinds(self) -> Iterable[str]:
        """Return the names of all kinds of rows."""
        raise NotImplementedError

    def growing(self) -> Iterable[str]:
        """Return the kinds of which no rows are ever removed; their files may be merged."""
        return self.kinds()

    def schema(self, kind: str) -> pa.Schema:
        """Return the columns of a kind of rows, without :data:`BATCH`."""
        raise NotImplementedError

    def numbered(self, kind: str) -> pa.Schema:
        """Return the columns of a kind of rows, with :data:`BATCH` behind them."""
        return self.schema(kind).append(pa.field(BATCH, pa.int64()))

    def columns(self) -> pa.Schema:
        """Return the columns of the table: those of all kinds of rows."""
        found = {KIND: pa.field(KIND, pa.string())}
        for kind in self.kinds():
            for each in self.numbered(kind):
                if found.setdefault(each.name, each) != each:
                    msg = f"column {each.name!r} of kind {kind!r} has a second type"
                    raise TypeError(msg)
        return pa.schema([*found.values()])

    def file(self, kind: str, batch: int, name: str) -> Location:
        """Return the file of some rows; nobody else may choose the same ``name``."""
        return self.root / f"{KIND}={kind}" / f"{batch:08d}-{name}.parquet"

    def committed(self) -> int:
        """Return the last micro-batch of the present version, -1 if there is none."""
        return require_view(self.root).last

    def read_all(self, kind: str) -> pa.Table:
        """Return the rows of a kind in the present version, with their numbers."""
        return self.read_kind(require_view(self.root), kind)

    def begin(self, view: View, batch: int) -> bool:
        """Return whether a micro-batch is still to be written.

        Raise :class:`InputProblem` unless the store ends just before ``batch``, or at ``batch``.
        """
        last = view.last
        if last not in (batch - 1, batch):  # the usual case looks at no file
            last = max(last, self.last_empty())
        if last not in (batch - 1, batch):
            msg = (
                f"the checkpoint of {self.root} is at micro-batch {batch}, its table is at {last};"
                " one of them was changed by hand or by a crash of the machine"
            )
            raise InputProblem(msg)
        return view.last < batch

    def discard(self, batch: int, files: Mapping[str, Iterable[str]]) -> None:
        """Remove files that workers have written for a micro-batch that is there already."""
        for kind, names in files.items():
            for name in names:
                self.file(kind, batch, name).remove()

    def write(self, kind: str, batch: int, rows: pa.Table, name: str) -> Location | None:
        """Write the file of some rows; return it, or ``None`` if there are no rows."""
        if not rows.num_rows:
            return None
        file = self.file(kind, batch, name)
        rows = rows.select(self.schema(kind).names)
        numbers = pa.repeat(pa.scalar(batch, pa.int64()), rows.num_rows)
        write_parquet(rows.append_column(BATCH, numbers), file)
        return file

    def read(
        self, files: Sequence[DataFile], kind: str, where: pc.Expression | None = None
    ) -> pa.Table:
        """Return the rows of some files of one kind that pass a filter, with their numbers.

        Raise :class:`InputProblem` if a file was lost.
        """
        try:
            return read_parquet([each.file for each in files], self.numbered(kind), where)
        except InputProblem:
            for each in files:
                if each.file.info().size != each.size:
                    raise lost(self.root, each) from None
            raise

    def read_kind(self, view: View, kind: str, batch: int | None = None) -> pa.Table:
        """Return the rows of a kind; with ``batch`` only those of a micro-batch."""
        where = None if batch is None else pc.field(BATCH) == batch
        return self.read(view.of(kind, batch), kind, where)


@dataclass
class Draft:
    """The files of a micro-batch that will be committed together."""

    store: TableStore
    view: View
    """The version that the micro-batch continues."""
    batch: int
    written: list[DataFile] = field(default_factory=list)
    removed: list[DataFile] = field(default_factory=list)
    """Files of earlier micro-batches whose rows are replaced."""

    def add(self, files: Mapping[str, Mapping[str, int]]) -> None:
        """Take what :func:`reported_files` returned.

        Raise :class:`InputProblem` if the driver does not find all of these rows.
        """
        for kind, names in files.items():
            self._add(kind, names)

    def _add(self, kind: str, names: Mapping[str, int]) -> None:
        here = 0
        for name in names:
            found = describe(self.store.file(kind, self.batch, name), kind)
            if found is not None:
                self.written.append(found)
                here += found.rows
        if here != sum(names.values()):
            msg = (
                f"{self.store.root} has {here} of the {sum(names.values())} rows that workers wrote"
                f" to {kind!r} in micro-batch {self.batch}: the driver and all workers have to"
                " reach one folder under this address"
            )
            raise InputProblem(msg)

    def take(self, kind: str, files: Iterable[Location]) -> None:
        """Take those files of workers that are there."""
        found = (describe(file, kind) for file in files)
        self.written += [each for each in found if each is not None]

    def write(self, kind: str, rows: pa.Table, name: str) -> None:
        """Write some rows."""
        file = self.store.write(kind, self.batch, rows, name)
        if file is not None:
            self.take(kind, [file])

    def replace(self, kind: str, rows: pa.Table, name: str) -> None:
        """Write some rows instead of all earlier ones of their kind."""
        self.removed += self.view.of(kind)
        self.write(kind, rows, name)

    def of(self, kind: str) -> list[DataFile]:
        """Return the files of a kind that the micro-batch has written."""
        return [each for each in self.written if each.kind == kind]

    def rows(self, kind: str) -> pa.Table:
        """Return the rows of a kind that the micro-batch has written."""
        return self.store.read(self.of(kind), kind)

    def commit(self, writer: TableWriter) -> None:
        """Commit the files; without any, only note that the micro-batch is over."""
        if self.written or self.removed:
            writer.commit(self.batch, self.written, self.removed)
        else:
            self.store.note_empty(self.batch)


def reported_files(reports: pa.Table, rows: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """Return the names of workers' files by kind, with the number of their rows.

    ``rows`` are the columns with these numbers, by kind; :data:`ATTEMPT` has the names.
    """
    files: dict[str, dict[str, int]] = {}
    for kind, column in rows.items():
        sizes = reports.column(column).cast(pa.int64())
        found = pa.table({ATTEMPT: reports.column(ATTEMPT), "rows": sizes}).group_by(ATTEMPT)
        sums = found.aggregate([("rows", "sum")])
        names, totals = (sums.column(name).to_pylist() for name in (ATTEMPT, "rows_sum"))
        files[kind] = {name: total for name, total in zip(names, totals, strict=True) if total}
    return files


def require_view(root: Location) -> View:
    """Return the present version of a store. Raise :class:`InputProblem` if there is none."""
    view = look(root)
    if view is None:
        msg = f"{root} is not the store of a query"
        raise InputProblem(msg)
    return view


def claim(
    store: TableStore,
    identity: JsonObject,
    require_same: Callable[[View], None],
    kind: str = "query",
) -> None:
    """Make a folder the store of a query; if it is a store already, call ``require_same``.

    ``kind`` is the word for the query in messages. Raise :class:`InputProblem`, and write nothing,
    if the folder holds something else.
    """
    found = look(store.root)
    if found is None:
        _require_empty(store.root, kind)
        try:
            create(store.root, store.columns(), identity)
        except InputProblem:
            found = look(store.root)
            if found is None:
                raise
    if found is not None:
        require_same(found)


def _require_empty(root: Location, kind: str) -> None:
    """Raise :class:`InputProblem` unless a folder holds nothing but what a crash may leave."""
    if not root.exists():
        return
    _refuse_earlier(root)
    if not root.is_folder() or any(each.name != "_delta_log" for each in root.children()):
        msg = f"{root} is neither an empty folder nor the store of a {kind}"
        raise InputProblem(msg)


def _refuse_earlier(root: Location) -> None:
    if (root / _EARLIER).exists():
        msg = (
            f"{root} is a store of an earlier version of Straggler, which was no Delta table:"
            " begin a new store, or read this one with the version that wrote it"
        )
        raise InputProblem(msg)


def read_identity(
    root: Location,
    version: int,
    read: Callable[[JsonObject], _T],
    *,
    room: str | None = None,
    kind: str = "query",
    view: View | None = None,
) -> tuple[_T, View]:
    """Return what ``read`` makes of the identity of a store, and the store's present version.

    ``room`` is compared with the room that the store names, if it names one. ``view`` is the
    present version, if it is known. Raise :class:`InputProblem` if there is no store, if it belongs
    to another room or was written by another version, or if its identity cannot be read.
    """
    view = view or look(root)
    if view is None:
        _refuse_earlier(root)
        msg = f"{root} is not the store of a {kind}"
        raise InputProblem(msg)
    try:
        owner, written = view.identity.get("room", room), view.identity["version"]
        if (owner, written) == (room, version):
            return read(view.identity), view
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        msg = f"{root} does not say to which {kind} it belongs; restore it from a copy"
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
