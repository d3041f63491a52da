"""Reads the files of a history: checks their columns, and finds the arrivals of each task.

Arrivals without grouping columns do not travel between processes: the state operator gets the names
of files, and each of its processes takes from a file what belongs to its tasks
(:class:`FileShares`). Nothing has to be packed, shuffled and handed over to Python. A file is read
once for every partition of the state, so this pays for few tasks. The share of a task is what it
would get as blocks (:mod:`spark_impl.windows.blocks`): the same arrivals, in the same order.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from model.vocabulary import task_of
from model.vocabulary.settings import PlainData
from spark_impl.runtime.arrays import Bools, Column, Ints, Values
from spark_impl.runtime.cell_arrays import is_text
from spark_impl.runtime.histories import COLUMNS, VALUE, Piece, open_piece
from spark_impl.runtime.storage import InputProblem, Location, locate, reading
from spark_impl.windows.panes import compact, stable_order
from spark_impl.windows.records import Rows
from spark_impl.windows.room import WindowSettings

NO_VALUE = f"{VALUE} is NULL"
"""The flaw of an arrival without a value."""
FLAWS = (
    *(f"{name} is NULL" for name in COLUMNS),
    "a grouping column is NULL",
    "event_time_us lies beyond all calendars",
)
"""Flaws that reject an arrival unseen; ``Rows.flaw`` holds 1 + the position of the first."""
_WINDOWS_KNOWN = (0, *(1 + FLAWS.index(f"{name} is NULL") for name in ("value", "arrival_us")))
"""Flaws of arrivals whose event time and key are there: those before them in the list are not."""
ROWS_AT_ONCE = 1_000_000
"""Most rows of a file that are in memory at a time."""
ALL_TIMES_US = 1 << 61
"""Event times below this, on both sides of the epoch, leave room for the arithmetic of windows."""


def check_columns(source: Location, schema: pa.Schema, value: str | None = VALUE) -> None:
    """Raise :class:`InputProblem` if a column is missing or has a wrong type.

    ``value`` is the column of the values; None means that they are not read.
    """
    for name in _stored(COLUMNS, value):
        kind = _column(source, schema, name)
        if name == "key":
            _require(_is_text(kind), source, name, kind, "text")
        elif name == value:
            number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
            _require(number, source, name, kind, "numbers")
        else:
            _require(pa.types.is_integer(kind), source, name, kind, "integers")


def group_type(source: Location, schema: pa.Schema, name: str) -> pa.DataType:
    """Return the type as which a grouping column is read.

    Raises :class:`InputProblem` if the column is missing or has a wrong type.
    """
    kind = _column(source, schema, name)
    _require(_is_text(kind) or pa.types.is_integer(kind), source, name, kind, "text or integers")
    return pa.string() if _is_text(kind) else pa.int64()


def _column(source: Location, schema: pa.Schema, name: str) -> pa.DataType:
    if name not in schema.names:
        msg = f"{source} has no column {name!r}; its columns are {', '.join(schema.names)}"
        raise InputProblem(msg)
    return schema.field(name).type


def _is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return is_text(inner)


def _require(good: bool, source: Location, name: str, kind: pa.DataType, wanted: str) -> None:
    if not good:
        msg = f"column {name!r} of {source} holds {kind}; it must hold {wanted}"
        raise InputProblem(msg)


def open_file(file: Location, groups: Sequence[pa.Field] = (), value: str | None = VALUE) -> Piece:
    """Open a file of a history, and check its columns.

    Raises :class:`InputProblem` if the file cannot be read.
    """
    opened = open_piece(file)
    schema = opened.file.schema_arrow
    check_columns(file, schema, value)
    for field in groups:
        if group_type(file, schema, field.name) != field.type:
            wanted = "text" if field.type == pa.string() else "integers"
            _require(False, file, field.name, schema.field(field.name).type, wanted)
    return opened


def _stored(columns: Iterable[str], value: str | None) -> list[str]:
    """Return the columns of a history to read for some columns of arrivals."""
    names = (value if name == VALUE else name for name in columns)
    return [name for name in names if name is not None]


def read_tables(
    piece: Piece,
    groups: Sequence[pa.Field],
    columns: Collection[str] = tuple(COLUMNS),
    value: str | None = VALUE,
) -> Iterator[pa.Table]:
    """Yield the grouping columns and other columns of a file, a million rows at a time.

    The column ``value`` of the file becomes the column :data:`VALUE`; with None, this is 1.
    """
    by = [field.name for field in groups]
    names = [*by, *_stored(columns, value)]
    for batch in piece.batches(ROWS_AT_ONCE, names):
        rows = pa.Table.from_batches([batch])
        if value is None:
            rows = rows.append_column(VALUE, pa.array(np.ones(rows.num_rows)))
        elif value != VALUE:
            rows = rows.select(names).rename_columns([*by, *columns])
        yield cast_columns(rows, groups)


def cast_columns(table: pa.Table, groups: Sequence[pa.Field]) -> pa.Table:
    """Return a table with the types of a history; keys stay as they are, perhaps numbered."""
    wanted = {**COLUMNS, **{field.name: field.type for field in groups}}
    for place, field in enumerate(table.schema):
        if field.name != "key" and field.type != wanted[field.name]:
            column = table.column(place).cast(wanted[field.name])
            table = table.set_column(place, field.name, column)
    return table


def number_values(column: pa.ChunkedArray) -> tuple[Ints, list[PlainData]]:
    """Return a number for every row, and the value for which each number stands."""
    array = column.unify_dictionaries().combine_chunks()
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    values = array.dictionary.to_pylist()
    codes = array.indices
    if array.null_count:
        codes = pc.fill_null(codes, len(values))
        values = [*values, None]
    return codes.to_numpy().astype(np.int64), values


def number_combinations(table: pa.Table, by: Sequence[str]) -> tuple[Ints, list[Values]]:
    """Return a number for every row, and the values of ``by`` for which each number stands."""
    codes = np.zeros(table.num_rows, np.int64)
    combinations: list[Values] = [()]
    for name in by:
        more, values = number_values(table.column(name))
        used, codes = compact(codes * len(values) + more)
        combinations = [
            (*combinations[code // len(values)], values[code % len(values)])
            for code in used.tolist()
        ]
    return codes, combinations


def split(table: pa.Table, by: Sequence[str]) -> list[tuple[Values, pa.Table]]:
    """Cut a table into one for each combination of values of ``by``; rows keep their order."""
    if not table.num_rows:
        return []
    codes, values = number_combinations(table, by)
    if len(values) == 1:
        return [(values[0], table)]
    table = table.take(pa.array(stable_order(codes, len(values))))
    sizes = np.bincount(codes, minlength=len(values))
    starts = np.cumsum(sizes) - sizes
    return [
        (value, table.slice(start, size))
        for value, start, size in zip(values, starts.tolist(), sizes.tolist(), strict=True)
    ]


def replace_nulls(
    settings: WindowSettings, table: pa.Table, by: Sequence[str] = ()
) -> dict[str, pa.ChunkedArray]:
    """Return the columns of arrivals with zeros for NULLs; a column ``flaw`` says where.

    There is no column ``flaw`` if there are no flaws. The key and columns that the query does not
    use are left out.
    """
    columns: dict[str, pa.ChunkedArray] = {}
    unread = {"key"} if settings.times_arrivals else {"key", "arrival_us"}
    flaw = np.zeros(table.num_rows, np.int64)
    ts = pc.fill_null(table.column("event_time_us"), 0).to_numpy()
    flaw[(ts <= -ALL_TIMES_US) | (ts >= ALL_TIMES_US)] = len(FLAWS)
    for place, name in reversed(list(enumerate((*COLUMNS, *by), 1))):
        column = table.column(name)
        if column.null_count:  # the flaw is the first column of the list that is NULL
            flaw[column.is_null().to_numpy()] = min(place, len(COLUMNS) + 1)
        if name in COLUMNS and name not in unread:
            columns[name] = pc.fill_null(column, 0) if column.null_count else column
    if flaw.any():
        columns["flaw"] = pa.array(flaw)
    return columns


def has_windows(rows: Rows) -> Bools:
    """Return whether event time and key of each arrival are known, and so its windows."""
    ts = rows.event_time_us
    on_calendar = (ts > -ALL_TIMES_US) & (ts < ALL_TIMES_US)
    return np.isin(rows.flaw, _WINDOWS_KNOWN) & on_calendar


def to_rows(key: Ints, columns: Mapping[str, Column]) -> Rows:
    """Return arrivals from the columns of :func:`replace_nulls`; missing columns are 0."""
    zeros = np.zeros(len(key), np.int64)
    return Rows(
        key=key, **{name: columns.get(name, zeros) for name in Rows._fields if name != "key"}
    )


def merge_parts(parts: Sequence[tuple[Sequence[str], Rows]]) -> tuple[tuple[str, ...], Rows]:
    """Merge parts with keys of their own into keys and arrivals, sorted by arrival number."""
    number: dict[str, int] = {}
    every = [to_rows(np.empty(0, np.int64), {})]
    for keys, rows in parts:
        known = [number.setdefault(key, len(number)) for key in keys]
        every.append(rows._replace(key=np.array(known, np.int64)[rows.key]))
    if len(parts) == 1:
        rows = every[1]
    else:
        rows = Rows._make(np.concatenate(columns) for columns in zip(*every, strict=True))
    if np.any(rows.seq[1:] < rows.seq[:-1]):
        rows = rows.take(np.argsort(rows.seq, kind="stable"))
    return tuple(number), rows


def owners(keys: Iterable[str | None], tasks: int) -> Ints:
    """Return the task of every key; arrivals without a key belong to task 0."""
    return np.array([0 if key is None else task_of(key, tasks) for key in keys], np.int64)


def read_request(file: Location) -> pa.Table:
    """Return the rows of a request. Raise :class:`InputProblem` if it cannot be read."""
    with reading(file):
        return pq.read_table(file.path, filesystem=file.files, page_checksum_verification=True)


class TaskInput(NamedTuple):
    """The input of a task in one micro-batch."""

    keys: tuple[str, ...]
    rows: Rows
    """Sorted by arrival number; ``Rows.key`` indexes ``keys``."""
    flush: bool


class _Part(NamedTuple):
    """Some rows of a file, of all tasks."""

    rows: Rows
    keys: list[str]
    task: Ints
    """The task of every key."""


class FileShares:
    """Takes from the files of a micro-batch what belongs to the tasks of one process."""

    def __init__(self, settings: WindowSettings, control: Location) -> None:
        self._settings = settings
        self._control = control
        self._kept: dict[Location, list[_Part]] = {}

    def read(self, task: int, paths: Iterable[str]) -> TaskInput:
        """Return the input of a task from the addresses of files and of requests to flush."""
        shares: list[tuple[list[str], Rows]] = []
        flush = False
        for file in map(locate, paths):
            if file.parent == self._control:
                flush |= task in read_request(file).column("task").to_pylist()
            else:
                shares.extend(self._share(part, task) for part in self._parts(file))
        return TaskInput(*merge_parts(shares), flush)

    def _parts(self, file: Location) -> Iterable[_Part]:
        """Return the parts of a file; a single part is kept for the next task."""
        if file in self._kept:
            return self._kept[file]
        piece = open_file(file, value=self._settings.value)
        parts = map(self._part, read_tables(piece, (), value=self._settings.value))
        if piece.file.metadata.num_rows > ROWS_AT_ONCE:
            return parts
        self._kept[file] = list(parts)
        return self._kept[file]

    def _part(self, table: pa.Table) -> _Part:
        codes, keys = number_values(table.column("key"))
        columns = replace_nulls(self._settings, table)
        rows = to_rows(codes, {name: column.to_numpy() for name, column in columns.items()})
        return _Part(rows, [key or "" for key in keys], owners(keys, self._settings.tasks))

    def _share(self, part: _Part, task: int) -> tuple[list[str], Rows]:
        """Return the keys and the rows of one task; with operators upstream, of all tasks."""
        if self._settings.upstreams:
            return part.keys, part.rows
        mine = part.task == task
        rows = part.rows.take(np.flatnonzero(mine[part.rows.key]))
        used, codes = compact(rows.key)
        return [part.keys[code] for code in used.tolist()], rows._replace(key=codes)
