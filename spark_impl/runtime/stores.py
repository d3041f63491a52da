"""Stores: what a streaming query found, its identity and its position, as one Delta table.

    _delta_log/              versions of the table; its properties say to which query it belongs
    kind=<kind>/*.parquet    rows of one kind; a column ``batch`` has the number of a micro-batch
    _checkpoint/             Spark's own: offsets, commits, state; elsewhere if the query says so
    _control/                requests to the query; those to a chain are its register
    _stopped/                rows that stopped a query before a micro-batch, by its number

Rules of this file:

* Workers write files under new names. The driver commits all files of a micro-batch in one version
  (:mod:`spark_impl.runtime.tables`); a file that no version names does not count, and is removed
  later.
* Readers look at one version. They never wait, and what they have found does not change.
"""

import json
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from model.vocabulary.settings import JsonObject
from spark_impl.runtime.arrays import PlainRow, Values
from spark_impl.runtime.histories import (
    bounds_of,
    numbers,
    read_parquet,
    write_parquet,
)
from spark_impl.runtime.storage import InputProblem, Location, reading
from spark_impl.runtime.tables import (
    BATCH,
    BOUNDED,
    KIND,
    DataFile,
    TableWriter,
    View,
    create,
    look,
)

ATTEMPT = "attempt"
"""The column of reports in which workers tell the names of the files that they have written."""
CHECKPOINT = "_checkpoint"
"""The folder of Spark's checkpoint in a store."""
FEW = 32
"""Number of files up to which each is looked at by itself, instead of listing their folder."""
_GROUP_TYPES = {"string": pa.string(), "int64": pa.int64()}


@dataclass(frozen=True, slots=True)
class TableStore:
    """The folder of one query."""

    root: Location
    groups: tuple[pa.Field, ...] = ()
    """The grouping columns, the first columns of every kind of rows."""
    seen: View | None = field(default=None, kw_only=True, repr=False, compare=False)
    """The version that is read; a store without one can only be written."""
    replaced: ClassVar[tuple[str, ...]] = ()
    """Kinds of which a version has the latest rows only; files of the others may be merged."""

    @property
    def kinds(self) -> Mapping[str, pa.Schema]:
        """The columns of every kind of rows, without :data:`BATCH`."""
        raise NotImplementedError

    @property
    def view(self) -> View:
        """The version that is read."""
        assert self.seen is not None
        return self.seen

    def at(self, view: View | None = None) -> Self:
        """Return the store at a version, by default the present one.

        Raise :class:`InputProblem` if there is none.
        """
        return replace(self, seen=view or require_view(self.root))

    @property
    def checkpoint(self) -> Location:
        """Spark's checkpoint, unless the query has it elsewhere."""
        return self.root / CHECKPOINT

    @property
    def control(self) -> Location:
        """Requests to the query."""
        return self.root / "_control"

    def numbered(self, kind: str) -> pa.Schema:
        """Return the columns of a kind of rows, with :data:`BATCH` behind them."""
        return self.kinds[kind].append(pa.field(BATCH, pa.int64()))

    def columns(self) -> pa.Schema:
        """Return the columns of the table: those of all kinds of rows."""
        found = {KIND: pa.field(KIND, pa.string())}
        for kind in self.kinds:
            for each in self.numbered(kind):
                if found.setdefault(each.name, each) != each:
                    msg = f"column {each.name!r} of kind {kind!r} has a second type"
                    raise TypeError(msg)
        return pa.schema([*found.values()])

    def file(self, kind: str, batch: int, name: str) -> Location:
        """Return the file of some rows; nobody else may choose the same ``name``."""
        return self.root / f"{KIND}={kind}" / f"{batch:08d}-{name}.parquet"

    def write(self, kind: str, batch: int, rows: pa.Table, name: str = "") -> Location:
        """Write the file of some rows, if there are any; return its name."""
        file = self.file(kind, batch, name or uuid.uuid4().hex)
        if rows.num_rows:
            numbers = pa.repeat(pa.scalar(batch, pa.int64()), rows.num_rows)
            rows = rows.select(self.kinds[kind].names).append_column(BATCH, numbers)
            write_parquet(rows, file)
        return file

    def states(self, kind: str, batch: int) -> dict[int, Location]:
        """Return the files of a micro-batch that have one row with a ``number`` each, by number."""
        return {each.bounds["number"][0]: each.file for each in self.view.of(kind, batch, batch)}

    def read_state(self, file: Location, kind: str) -> PlainRow:
        """Return the row of a file that has only one."""
        if not file.exists():
            msg = (
                f"{self.root} lacks {file.parent.name}/{file.name}, which was written: the driver"
                " and all workers have to reach one folder under this address"
            )
            raise InputProblem(msg)
        rows: list[PlainRow] = read_parquet([file], self.kinds[kind]).to_pylist()
        return rows[0]

    def request(self, rows: Iterable[Values], columns: pa.Schema, history: Location) -> None:
        """Write a request, due after all files that a history has now.

        The next run carries it out, once.
        """
        arrays = [
            pa.array(column, each.type)
            for column, each in zip(zip(*rows, strict=True), columns, strict=True)
        ]
        file = self.control / f"{numbers(history).stop:08d}-{uuid.uuid4().hex}.parquet"
        write_parquet(pa.table(arrays, schema=columns), file)

    def read_kind(self, kind: str, batch: int | None = None) -> pa.Table:
        """Return the rows of a kind, with their numbers; with ``batch`` only of a micro-batch."""
        if batch is None:
            return self.read(self.view.of(kind), kind)
        return self.read(self.view.of(kind, batch, batch), kind, pc.field(BATCH) == batch)

    def read(
        self, files: Sequence[DataFile], kind: str, where: pc.Expression | None = None
    ) -> pa.Table:
        """Return the rows of some files of one kind that pass a filter, with their numbers.

        Raise :class:`InputProblem` if a file was lost.
        """
        try:
            return read_parquet([each.file for each in files], self.numbered(kind), where)
        except InputProblem:
            self.require_whole(files)
            raise

    def require_whole(self, files: Sequence[DataFile]) -> None:
        """Raise :class:`InputProblem` unless all of some files are there, with all their bytes."""
        if len(files) <= FEW:
            entries = [each.file.info() for each in files]
        else:
            folders = {each.file.parent for each in files}
            entries = [entry for each in folders for entry in each.entries(r".+\.parquet")]
        sizes = {entry.path: entry.size for entry in entries}
        for each in files:
            if sizes.get(each.file.path) != each.size:
                msg = (
                    f"{self.root} has lost {each.file.name} with {each.rows} rows of kind"
                    f" {each.kind!r}, or a part of it: restore the file from a copy"
                )
                raise InputProblem(msg)


@dataclass
class Draft:
    """The files of a micro-batch that are committed together.

    If the micro-batch is in the table already, because a crash came between this commit and
    Spark's own, nothing that is added counts. If the driver dies before this commit, no version
    names the files, the micro-batch, or epoch, runs again, and ``TableWriter.tidy`` removes them.
    """

    store: TableStore
    writer: TableWriter
    batch: int
    written: list[DataFile] = field(default_factory=list)
    removed: list[DataFile] = field(default_factory=list)
    """Files of earlier micro-batches whose rows are replaced."""

    def __post_init__(self) -> None:
        """Raise :class:`InputProblem` unless the store ends just before ``batch``, or at it."""
        last, fitting = self.view.last, (self.batch - 1, self.batch)
        if last not in fitting:  # the usual case looks at no file
            last = self.writer.look().last
        if last not in fitting:
            msg = (
                f"the checkpoint of {self.store.root} is at micro-batch {self.batch}, its table is"
                f" at {last}; another query runs on it, or one of them was changed by hand or by a"
                " crash of the machine"
            )
            raise InputProblem(msg)
        self.writer.require_plan()
        self.is_new = self.view.last < self.batch

    @property
    def view(self) -> View:
        """The version that the micro-batch continues."""
        return self.writer.view

    def add_reported(self, reports: pa.Table, rows: Mapping[str, str]) -> None:
        """Take the files of workers that reports name in :data:`ATTEMPT`.

        ``rows`` are the columns with their numbers of rows, by kind. Errors are those of
        :meth:`add`.
        """
        names = reports.column(ATTEMPT).to_pylist()
        for kind, column in rows.items():
            files = Counter[Location]()
            for name, count in zip(names, reports.column(column).to_pylist(), strict=True):
                files[self.store.file(kind, self.batch, name)] += count
            self.add(kind, +files)

    def add(self, kind: str, files: Mapping[Location, int]) -> None:
        """Take files of workers, given with their numbers of rows.

        Raise :class:`InputProblem` if the driver does not find all of these rows.
        """
        before, rows = len(self.written), sum(files.values())
        self.take(kind, files)
        here = sum(each.rows for each in self.written[before:])
        if self.is_new and here != rows:
            msg = (
                f"{self.store.root} has {here} of the {rows} rows that workers wrote to {kind!r} in"
                f" micro-batch {self.batch}: the driver and all workers have to reach one folder"
                " under this address"
            )
            raise InputProblem(msg)

    def take(self, kind: str, files: Iterable[Location]) -> None:
        """Take those files that exist; remove them if the table has the micro-batch already."""
        for file in files:
            if not self.is_new:
                file.remove()
            elif (found := _describe(file, kind)) is not None:
                self.written.append(found)

    def write(self, kind: str, rows: pa.Table) -> None:
        """Write some rows."""
        self.take(kind, [self.store.write(kind, self.batch, rows)])

    def replace(self, kind: str, rows: pa.Table) -> None:
        """Write some rows instead of all earlier ones of their kind."""
        self.removed += self.view.of(kind)
        self.write(kind, rows)

    def of(self, kind: str) -> list[DataFile]:
        """Return the files of a kind that the micro-batch has written."""
        return [each for each in self.written if each.kind == kind]

    def commit(self) -> None:
        """Commit the files; without any, only that the micro-batch is over."""
        if self.is_new:
            self.writer.commit(self.batch, self.written, self.removed)
            self.writer.tidy(each for each in self.store.kinds if each not in self.store.replaced)


def _describe(file: Location, kind: str) -> DataFile | None:
    """Return what the footer of a file says, ``None`` if the file is not there.

    Raise :class:`InputProblem` if it cannot be read.
    """
    with reading(file), file.find() or nullcontext() as content:
        if content is None:
            return None
        size, footer = content.size(), pq.read_metadata(content)
    return DataFile(file, kind, footer.num_rows, size, bounds_of(footer, BOUNDED))


def require_view(root: Location, word: str = "query") -> View:
    """Return the present version of a store. Raise :class:`InputProblem` if there is none.

    ``word`` is what messages call the query.
    """
    view = look(root)
    if view is None:
        msg = f"{root} is not the store of a {word}"
        raise InputProblem(msg)
    return view


def claim(store: TableStore, identity: JsonObject, word: str = "query") -> None:
    """Make a folder the store of a query.

    Raise :class:`InputProblem`, and write nothing, if the folder holds something else, or is the
    store of a query with another identity.
    """
    identity = json.loads(json.dumps(identity))  # as the table has it
    found = look(store.root)
    if found is None:
        _require_empty(store.root, word)
        try:
            create(store.root, store.columns(), identity)
        except InputProblem:
            found = look(store.root)
            if found is None:
                raise
    if found is not None:
        require_owner(found, identity["version"], identity["room"])
        _require_same(found, identity, word)


def _require_empty(root: Location, word: str) -> None:
    """Raise :class:`InputProblem` unless a folder holds nothing but what a crash may leave."""
    if not root.exists():
        return
    if not root.is_folder() or any(each.name != "_delta_log" for each in root.children()):
        msg = f"{root} is neither an empty folder nor the store of a {word}"
        raise InputProblem(msg)


def require_owner(view: View, version: int, room: str) -> None:
    """Raise :class:`InputProblem` if a store is of another room or version."""
    found, root = view.identity, view.root
    if found.get("room", room) != room:  # earlier versions of two rooms name none
        msg = f"{root} belongs to a query of room {found['room']!r}, not {room!r}"
        raise InputProblem(msg)
    if found.get("version") != version:
        msg = f"{root} was written by version {found.get('version')!r} of the store, not {version}"
        raise InputProblem(msg)


def _require_same(view: View, identity: JsonObject, word: str) -> None:
    """Raise :class:`InputProblem` for the first setting whose value differs in the store.

    A setting that only the store has is one of another version: without it, the query would go on
    by other rules.
    """
    theirs, ours = ({**each, **each.get("config", {})} for each in (view.identity, identity))
    for name in sorted((ours.keys() | theirs.keys()) - {"config"}):
        if theirs.get(name) != ours.get(name):
            msg = (
                f"{view.root} belongs to another {word}:"
                f" its {name} is {theirs.get(name)!r}, not {ours.get(name)!r}"
            )
            raise InputProblem(msg)


def groups_to_json(groups: Iterable[pa.Field]) -> list[list[str]]:
    """Return grouping columns and their types as plain data."""
    return [[field.name, str(field.type)] for field in groups]


def groups_from_json(names: Iterable[Sequence[str]]) -> tuple[pa.Field, ...]:
    """Read what :func:`groups_to_json` returned."""
    return tuple(pa.field(name, _GROUP_TYPES[kind]) for name, kind in names)
