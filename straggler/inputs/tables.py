"""A user's file as arrivals: Parquet or CSV, with the columns and the time unit that it has.

Rules of this file:

1. Cells are read as Landing reads them (:mod:`spark_impl.runtime.cells`); nothing is guessed.
2. A row without a readable event time, arrival time, key or identity is set aside and counted. A
   row without a readable value stays, with the value NaN.
3. The identity of a row without a column of identities is its place among all rows of the file.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from model.vocabulary import Event
from model.vocabulary.durations import write_duration
from model.vocabulary.settings import nearest
from sim.kernel.distributions import AnyArray
from spark_impl.runtime import cells
from spark_impl.runtime.cell_arrays import MISSING, Cells, shown
from spark_impl.runtime.cell_times import read_times
from straggler.errors import UsageError
from straggler.inputs.columns import DEFAULT_COLUMNS, MAX_FUTURE_US, Columns
from straggler.inputs.frames import Frame, read_frame
from straggler.inputs.set_aside import Flaw, SetAside, kinds_of
from straggler.inputs.text_files import name_of

EVENT_TIME, VALUE, KEY, ARRIVAL = "event_time", "value", "key", "arrival_time"
"""Default names of columns."""
NO_CELLS: Mapping[str, Cells] = {}
_SEPARATORS = {";": "';'", "\t": "tab", "|": "'|'", ",": "','"}

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Recording(NamedTuple):
    """Arrivals with the name that a user gave."""

    name: str
    label: str
    """Name with a note for the reader, for example that the arrivals are simulated."""
    events: tuple[Event, ...]
    set_aside: tuple[SetAside, ...] = ()
    """Bad rows of the files that were read."""


def read_table(path: Path, columns: Columns = DEFAULT_COLUMNS) -> Recording:
    """Read a Parquet or CSV file in order of arrival.

    Raise :class:`UsageError` for a file that cannot be read, and as :func:`read_rows`.
    """
    return read_rows(path, read_frame(path, columns), columns)


def read_rows(
    path: Path, frame: Frame, columns: Columns, more: Mapping[str, Cells] = NO_CELLS
) -> Recording:
    """Return the rows of a file in order of arrival, with ``more`` columns by name in the file.

    Raise :class:`UsageError` for a file without a column that is needed, and one without a row that
    can be used.
    """
    reader = _Reader(frame, columns)
    event_us, arrival_us = reader.times()
    keys = reader.keys()
    ids, texts = reader.identities()
    values = reader.values()
    others = [_texts(each.values) for each in more.values()]
    for name, each in more.items():
        reader.note_unread(name, each)
    if columns.id is not None:
        parts: dict[str, AnyArray] = {"event time": event_us, "value": values, "key": keys}
        reader.refuse_repeated(ids, texts, {**parts, **dict(zip(more, others, strict=True))})
    found = reader.set_aside()
    kept = reader.is_kept
    if not (kept & np.isfinite(values)).any():
        if not found.rows:
            raise UsageError(f"{frame.file} has no rows")
        raise UsageError(f"no row can be used of {found.sentence}")
    if arrival_us is None:
        arrival_us = event_us.copy()
        arrival_us[kept] = np.maximum.accumulate(event_us[kept])
    rows = ids[kept], keys[kept], event_us[kept], values[kept], arrival_us[kept]
    label = name_of(path)
    name = label if label != path.name else path.stem
    events = arrivals(*rows, [each[kept] for each in others])
    return Recording(name, label, events, (found,))


def arrivals(
    ids: Ints,
    keys: Iterable[str],
    event_us: Ints,
    values: Iterable[float],
    arrival_us: Ints,
    more: Sequence[NDArray[np.object_]] = (),
) -> tuple[Event, ...]:
    """Return events in a stable order of arrival, from parallel columns."""
    order = np.argsort(arrival_us, kind="stable")
    columns = (
        ids[order].tolist(),
        np.asarray(list(keys), dtype=object)[order].tolist(),
        event_us[order].tolist(),
        np.asarray(values, dtype=np.float64)[order].tolist(),
        arrival_us[order].tolist(),
    )
    rows = zip(*columns, strict=True)
    events = (Event(seq, *row) for seq, row in enumerate(rows))
    if not more:
        return tuple(events)
    others = zip(*(each[order].tolist() for each in more), strict=True)
    return tuple(event._replace(more=each) for event, each in zip(events, others, strict=True))


def cuts_into(rows: int, batches: int) -> tuple[int, ...]:
    """Return the cuts of ``rows`` rows into at most ``batches`` equal micro-batches, none empty."""
    made = min(rows, batches)
    return tuple(rows * number // made for number in range(1, made))


# -------------------------------------------------------------------------------- rows of a file


class _Reader:
    """Reader of the columns of a file, which remembers the rows that cannot be used."""

    def __init__(self, frame: Frame, columns: Columns) -> None:
        self.frame = frame
        self.columns = columns
        self.event_time = self._name("event-time", columns.event_time, EVENT_TIME)
        self.value = self._name("value", columns.value, VALUE)
        self.key = self._name("key", columns.key, KEY)
        self.arrival = self._name("arrival", columns.arrival, ARRIVAL)
        self.id = self._name("id", columns.id, None)
        if columns.max_future_us is not None and self.arrival is None:
            raise UsageError(
                f"--max-future needs arrival times: --arrival names their column of {frame.file}"
            )
        self.rows = len(frame.numbers)
        self.is_kept: Bools = np.ones(self.rows, bool)
        self.gone = list(frame.flaws)
        """Flaws of rows that are set aside, one for each."""
        self.lacking: list[Flaw] = []
        """Flaws of rows that stay without a value."""
        self.unread: list[Flaw] = []
        """Flaws of cells that are missing in rows that stay."""

    def set_aside(self) -> SetAside:
        """Return the rows that cannot be used, or not as they are."""
        kept = set(self.frame.numbers[self.is_kept].tolist())
        lacking, unread = (
            kinds_of(flaw for flaw in flaws if flaw.number in kept)
            for flaws in (self.lacking, self.unread)
        )
        rows = self.rows + len(self.frame.flaws)
        found = kinds_of(self.gone), lacking, unread
        return SetAside(self.frame.file, rows, self.frame.unit, *found)

    # -------------------------------------------------------------------------------- columns

    def times(self) -> tuple[Ints, Ints | None]:
        """Return event times and, if there are any, arrival times, in microseconds."""
        if self.event_time is None:
            event_us = np.arange(self.rows, dtype=np.int64)
        else:
            event_us = self._times(self.event_time)
            if self.columns.since_1970:
                column = self.frame.column(self.event_time)
                self._drop(self.event_time, column, event_us < 0, "lies before 1970")
        if self.arrival is None:
            return event_us, None
        arrival_us = self._times(self.arrival)
        if self.event_time is not None:
            limit_us = self.columns.max_future_us
            limit_us = MAX_FUTURE_US if limit_us is None else limit_us
            ahead = event_us - arrival_us > limit_us
            reason = f"lies more than {write_duration(limit_us)} beyond its arrival"
            self._drop(self.event_time, self.frame.column(self.event_time), ahead, reason)
        return event_us, arrival_us

    def _times(self, name: str) -> Ints:
        found = self._read(name, cells.TIMES, lambda each: read_times(each, self.columns.time_unit))
        return _filled(found.values, 0).astype(np.int64)

    def keys(self) -> NDArray[np.object_]:
        """Return the key of every row."""
        if self.key is None:
            return np.full(self.rows, "", object)
        return _texts(self._read(self.key, cells.KEYS, cells.read_keys).values)

    def identities(self) -> tuple[Ints, NDArray[np.object_]]:
        """Return the identity of every row, and its text as the file has it."""
        if self.id is None:
            return self.frame.numbers, self.frame.numbers.astype(object)
        found = self._read(self.id, cells.IDENTITIES, cells.read_identities)
        return _filled(found.values, 0).astype(np.int64), _texts(
            found.values if found.texts is None else found.texts
        )

    def values(self) -> NDArray[np.float64]:
        """Return the value of every row; NaN if it has none."""
        if self.value is None:
            return np.ones(self.rows)
        column = self._column(self.value, cells.NUMBERS)
        found = cells.read_numbers(column)
        values = _filled(found.values, np.nan).astype(np.float64)
        is_refused = np.asarray(found.reason.is_valid())
        self.lacking += self._flaws(self.value, column, is_refused, found.reason)
        is_bad = ~np.isfinite(values) & ~is_refused
        self.lacking += self._flaws(self.value, column, is_bad, "is not finite")
        return values

    def note_unread(self, name: str, found: Cells) -> None:
        """Note the cells of a column that hold something that it has no value for."""
        reasons = found.reason.fill_null(MISSING)
        is_bad = np.asarray(pc.not_equal(reasons, MISSING))
        self.unread += self._flaws(name, self.frame.column(name), is_bad, found.reason)

    def refuse_repeated(
        self, ids: Ints, texts: NDArray[np.object_], parts: Mapping[str, AnyArray]
    ) -> None:
        """Set aside rows whose identity an earlier row has with another tuple.

        A redelivery repeats its tuple: the parts are what has to be equal.
        """
        kept = np.flatnonzero(self.is_kept)
        _, first, group = np.unique(ids[kept], return_index=True, return_inverse=True)
        earlier = kept[first[group]]
        for what, part in {"text": texts, **parts}.items():
            mine, theirs = part[kept], part[earlier]
            # NaN differs from itself; two missing values are equal.
            differs = (mine != theirs) & ~((mine != mine) & (theirs != theirs))
            for at, before in zip(kept[differs], earlier[differs], strict=True):
                if self.is_kept[at]:
                    number = int(self.frame.numbers[before])
                    if what == "text":
                        reason = f"has the number of another identity, {texts[before]!r}"
                    else:
                        reason = f"comes again with another {what}"
                    text = f"{texts[at]} (first in {self.frame.unit} {number:,})"
                    flaw = Flaw(int(self.frame.numbers[at]), reason, self.id, text)
                    self.gone.append(flaw)
                    self.is_kept[at] = False

    # ---------------------------------------------------------------------------------- flaws

    def _read(self, name: str, wanted: str, read: Callable[[pa.Array], Cells]) -> Cells:
        """Return the cells of a column, and set aside the rows without a readable one."""
        column = self._column(name, wanted)
        found = read(column)
        self._drop(name, column, np.asarray(found.reason.is_valid()), found.reason)
        return found

    def _drop(self, name: str, column: pa.Array, is_bad: Bools, reasons: pa.Array | str) -> None:
        is_bad = is_bad & self.is_kept
        self.gone += self._flaws(name, column, is_bad, reasons)
        self.is_kept &= ~is_bad

    def _flaws(
        self, name: str, column: pa.Array, is_bad: Bools, reasons: pa.Array | str
    ) -> Iterator[Flaw]:
        for at in np.flatnonzero(is_bad).tolist():
            reason = reasons if isinstance(reasons, str) else reasons[at].as_py()
            text = _text(column[at]) if column[at].is_valid else ""
            yield Flaw(int(self.frame.numbers[at]), reason, name, text)

    def _column(self, name: str, wanted: str) -> pa.Array:
        column = self.frame.column(name)
        said = cells.refuse_type(wanted, column.type, self.columns.time_unit)
        if said is not None:
            raise UsageError(f"column {name!r} of {self.frame.file} {said}")
        return column

    def _name(self, option: str, given: str | None, usual: str | None) -> str | None:
        """Return the name of a column; raise :class:`UsageError` if a needed one is missing."""
        columns, names = self.columns, self.frame.names
        is_needed = {"event-time": columns.needs_times, "value": columns.needs_values}
        name = usual if given is None else given
        if name is None or name in names:
            return name
        if given is None and not is_needed.get(option):
            return None
        is_usual = given is None or columns.options != DEFAULT_COLUMNS.options
        option = f" ({columns.options}{option} names another)" if is_usual else ""
        raise UsageError(
            f"{self.frame.file} has no column {name!r}{option};"
            f" its columns are {', '.join(names)}{self._hint(name) or nearest(name, names)}"
        )

    def _hint(self, wanted: str) -> str:
        """Return what may be wrong with a header that lacks a column."""
        names = self.frame.names
        if self.columns.header is None or self.frame.unit != "line":
            return ""
        if not wanted.isdigit():
            for line, row in self.frame.head:
                if wanted in map(str.strip, row):
                    return f"; line {line} has it, and --header {line} takes that as the header"
        if len(names) == 1:
            found = [name for sign, name in _SEPARATORS.items() if sign in names[0]]
            found = ["' '"] if wanted in names[0].split(" ") else found
            return f"; --separator {found[0]} would make several of it" if found else ""
        if any(name.startswith('"') for name in names):
            comma = self.columns.separator
            return f"; --separator '{comma} ' takes blanks before a cell as no part of it"
        texts = pa.array(names, pa.string())
        readers = cells.read_numbers(texts), read_times(texts, "iso")
        if any(found.reason.null_count for found in readers):
            return "; if that is a row, --header none calls the columns 1, 2, ..."
        return ""


def _filled(column: pa.Array, rest: float) -> AnyArray:
    return np.asarray(column.fill_null(rest).to_numpy(zero_copy_only=False))


def _texts(column: pa.Array) -> NDArray[np.object_]:
    return np.array([*column.to_pylist(), None], object)[:-1]


def _text(cell: pa.Scalar) -> str:
    return str(shown(pa.array([cell], cell.type))[0])
