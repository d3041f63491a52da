"""Every cell that a user hands in has its meaning, or is in a list with the reason.

The doors for tables have no Spark in them until rows are numbered: the readers of Arrow's columns,
Parquet and CSV files, and the tasks of a landing. They are given columns of every type in every
unit, each with the edges of its type, and are compared with :mod:`properties.oracles.cells`.
"""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import cycle, islice, product
from math import isfinite, nan
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from properties.oracles import cells as oracle
from properties.oracles.cells import same
from properties.promised import Reached, promised
from spark_impl.grouping.tasks import Columns as Routed
from spark_impl.grouping.tasks import refused_rows
from spark_impl.runtime import cells, numbering
from spark_impl.runtime.columns import REASON_FUTURE, Chosen, Field, Reader, read_batches
from spark_impl.runtime.histories import SOURCE_TEXT, history_schema
from spark_impl.runtime.numbering import LANDED, REJECTED, write_in_order
from spark_impl.runtime.storage import locate
from straggler.errors import UsageError
from straggler.inputs.columns import Columns
from straggler.inputs.tables import read_table
from straggler.strategies.cells import CONTROLS, ISO, NO_UTF8, UNITS, Column, Drawn, tables

BATCH, FIRST, READ = 7, 1 << 40, 1 << 33
"""Number of a micro-batch, of its first arrival, and of the rows that were read before it."""
GROUP = 16
"""Most rows of a row group."""
NOW_US, SINCE_US = 1_714_521_600_000_000, 1_714_521_600_000_500
"""Time at which a micro-batch was planned, and arrival time of the last row before it."""
DAY_US = 86_400_000_000
WANTED = {"event_time_us": cells.TIMES, "value": cells.NUMBERS, "key": cells.KEYS} | {
    "source_id": cells.IDENTITIES
}
"""Kinds of cells by column of a history, in the order in which they are checked."""


class Row(NamedTuple):
    """A row by definition."""

    cells: Mapping[str, object]
    us: int | None
    number: float | None
    key: str | None
    identity: int | None
    faults: tuple[str, ...]
    """Columns with a cell that cannot be read: the first that keeps the row out, or values."""

    @property
    def at(self) -> object:
        """The cell of the time."""
        return self.cells["event_time_us"]

    @property
    def lands(self) -> bool:
        """Return whether the row becomes an arrival."""
        return self.faults in ((), ("value",))


def rows_of(drawn: Drawn, limit_us: int | None = None) -> list[Row]:
    """Return the rows of a table: shorter columns begin again, but identities do not."""
    size = max(len(column.cells) for column in drawn.values())
    columns = {name: [*islice(cycle(each.cells), size)] for name, each in drawn.items()}
    seen = set[str]()
    is_whole = pa.types.is_integer(drawn["source_id"].kind)
    for at, cell in enumerate(columns["source_id"]):
        if (text := oracle.text_of(cell)) is not None and text in seen:
            columns["source_id"][at] = 10**6 + at if is_whole else f"row {at}"
        seen.add(text or "")
    made = (dict(zip(columns, each, strict=True)) for each in zip(*columns.values(), strict=True))
    return [_row(cells, drawn["event_time_us"].unit, limit_us) for cells in made]


def _row(row: Mapping[str, object], unit: str, limit_us: int | None) -> Row:
    us = oracle.time_of(row["event_time_us"], unit)
    if us is not None and limit_us is not None and us - NOW_US > limit_us:
        us = None
    number, key = oracle.number_of(row["value"]), oracle.text_of(row["key"])
    read = us, number, key, oracle.identity_of(row["source_id"])
    bad = [name for name, each in zip(WANTED, read, strict=True) if each is None]
    out = [name for name in bad if name != "value"]
    return Row(row, *read, tuple(out[:1] or bad))


def array_of(drawn: Drawn, rows: Sequence[Row]) -> dict[str, pa.Array]:
    """Return the columns of rows in Arrow."""
    found = {name: [row.cells[name] for row in rows] for name in drawn}
    return {name: drawn[name]._replace(cells=each).array for name, each in found.items()}


# ------------------------------------------------------------------------------------- a landing


def land(drawn: Drawn, rows: Sequence[Row], limit_us: int | None, folder: Path) -> dict[str, Any]:
    """Read and number rows as the tasks of a landing do; return what they have written."""
    columns = array_of(drawn, rows)
    unit = drawn["event_time_us"].unit
    schema = history_schema(has_texts=_is_text(drawn["source_id"]))
    typed = pa.schema([field for field in schema if field.name not in ("seq", "arrival_us")])
    typed = typed.append(pa.field("arrival_us", pa.int64()))
    chosen = Chosen({}, {"value"}, (), unit, limit_us)
    fields = [Field(name, name, wanted) for name, wanted in WANTED.items()]
    reader = Reader(fields, [*columns], [], chosen, typed)
    table = pa.table({**columns, "_now": pa.array([NOW_US] * len(rows))})
    given = table.to_batches(max_chunksize=len(rows) // 2 + 1)
    found = write_in_order(
        read_batches(given, reader), schema, locate(folder), BATCH, FIRST, SINCE_US, ["value"], READ
    )
    with patch.object(numbering, "ROW_GROUP", GROUP):
        return {each["table"]: each for batch in found for each in batch.to_pylist()}


def _is_text(column: Column) -> bool:
    return column.kind in (pa.string(), pa.large_string())


def wrong_landing(
    drawn: Drawn, rows: Sequence[Row], limit_us: int | None, folder: Path
) -> Iterator[str]:
    """Yield how the arrivals and the list of a landing differ from the rows."""
    written = land(drawn, rows, limit_us, folder)
    landed = [row for row in rows if row.lands]
    faults = sum(len(row.faults) for row in rows)
    counts = {LANDED: (len(landed), 0), REJECTED: (faults, len(rows) - len(landed))}
    for name, (size, gone) in counts.items():
        each = written.get(name, {"rows": 0, "gone": 0, "read": READ + len(rows)})
        if (each["rows"], each["gone"], each["read"]) != (size, gone, READ + len(rows)):
            yield f"{name}: {each}, due {size}, {gone} and {READ + len(rows)}"
    found = _content(written, LANDED)
    for seq, (row, each) in enumerate(zip(landed, found, strict=False), FIRST):
        expected = {
            "seq": seq,
            "source_id": row.identity,
            "key": row.key,
            "event_time_us": row.us,
            "arrival_us": SINCE_US,
        }
        if SOURCE_TEXT in each:
            expected[SOURCE_TEXT] = oracle.text_of(row.cells["source_id"])
        if not same(each.pop("value"), row.number) or each != expected:
            yield f"{row} landed as {each}"
    seqs = dict(zip(map(id, landed), range(FIRST, FIRST + len(landed)), strict=True))
    due = [(row, name) for row in rows for name in row.faults]
    for (row, name), each in zip(due, _content(written, REJECTED), strict=False):
        place = each["column"], each["seq"], each["batch"]
        fits = place == (name, seqs.get(id(row)), BATCH)
        if not (
            fits and _says_why(each["reason"], row, name, drawn) and _is_shown(each, drawn, row)
        ):
            yield f"{row} is listed as {each}"


def _content(written: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the rows of a table, whose row groups but the last one are full."""
    if name not in written:
        return []
    with pq.ParquetFile(written[name]["file"]) as file:
        sizes = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
        assert {*sizes[:-1]} <= {GROUP}, sizes
        assert 0 < sizes[-1] <= GROUP, sizes
        found: list[dict[str, Any]] = file.read().to_pylist()
        return found


def _says_why(said: str, row: Row, name: str, drawn: Drawn) -> bool:
    """Return whether a reason names what is wrong with a cell."""
    cell, unit = row.cells[name], drawn[name].unit
    if name == "event_time_us":
        if oracle.time_of(cell, unit) is not None:
            return said == REASON_FUTURE
        if unit in UNITS and (finer := oracle.finer_unit(cell, unit)):
            return said.endswith(f"in {unit}; it looks like {finer}")
    is_blank = name in ("event_time_us", "value") and not str(cell).strip(oracle.SPACES)
    is_missing = cell is None or is_blank
    return (said == "is missing") == is_missing and ("looks" not in said or unit == "day")


def _is_shown(each: Mapping[str, Any], drawn: Drawn, row: Row) -> bool:
    """Return whether a fault shows the cell and the whole row, as far as JSON has its types."""
    whole = json.loads(each["row"], parse_constant=pytest.fail)
    if whole.keys() != row.cells.keys():
        return False
    for name, cell in row.cells.items():
        kind, found, due = drawn[name].kind, whole[name], oracle.shown(cell)
        if isinstance(cell, dict):  # a time is shown in the words of Python, if it has any
            due = {**due, "at": found["at"]}
        if name == each["column"] and each["text"] != (None if found is None else str(found)):
            return False
        if pa.types.is_temporal(kind):
            continue  # in the words of Python, if it has any
        if kind == pa.string() and isinstance(cell, bytes):
            due = cell.decode("utf-8", "backslashreplace")
        if isinstance(cell, Decimal):  # the column has nine places
            found, due = Decimal(found), cell
        if found != due:
            return False
    return True


def listed(column: Column) -> list[Any]:
    """Return the positions of the cells that a router lists because they are no finite numbers."""
    at = pa.array(range(len(column.cells)))
    table = pa.table([at, at, column.array], ["seq", "key", "value"])
    return [*refused_rows(table, Routed("key", "seq", "value")).column("seq").to_pylist()]


# ----------------------------------------------------------------------------------------- files


def wrong_files(drawn: Drawn, rows: Sequence[Row], folder: Path) -> Iterator[str]:
    """Yield how the arrivals in Parquet and CSV files differ from the rows."""
    names = [*WANTED]
    table = pa.table(array_of({name: drawn[name] for name in names}, rows))
    path = folder / "cells.parquet"
    pq.write_table(table, path)
    yield from _wrong_file(path, drawn, rows)
    if {*table.schema.types} == {pa.string()} and NO_UTF8[0] not in drawn["key"].cells:
        path = folder / "cells.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerow(names)
            writer.writerows(row.values() for row in table.to_pylist())
        unit = drawn["event_time_us"].unit
        blank = [{name: cell or None for name, cell in row.cells.items()} for row in rows]
        yield from _wrong_file(path, drawn, [_row(each, unit, None) for each in blank])


def _wrong_file(path: Path, drawn: Drawn, rows: Sequence[Row]) -> Iterator[str]:
    unit = drawn["event_time_us"].unit
    columns = Columns("event_time_us", "value", "key", id="source_id", time_unit=unit)
    if not any(row.lands and row.number is not None and isfinite(row.number) for row in rows):
        with pytest.raises(UsageError, match="no row can be used"):
            read_table(path, columns)
        return
    found = read_table(path, columns)
    due = {row.identity: row for row in rows if row.lands}
    if found.set_aside[0].count != len(rows) - len(due):
        yield f"{found.set_aside[0].count} rows of {path.name} are set aside"
    lacking = [row for row in due.values() if row.number is None or not isfinite(row.number)]
    if sum(each.total for each in found.set_aside[0].lacking) != len(lacking):
        yield f"{len(lacking)} rows of {path.name} have no number: {found.set_aside[0].lacking}"
    for event in found.events:
        row = due.pop(event.source_id, None)
        if row is None:
            yield f"{event} is no row, or comes twice"
            continue
        value = nan if row.number is None else row.number
        if (event.key, event.event_time_us) != (row.key, row.us) or not same(event.value, value):
            yield f"{row} is {event} in {path.name}"
    if due:
        yield f"{due} are missing in {path.name}"


# ------------------------------------------------------------------------------------ properties


def _written(row: Row) -> str:
    return "".join(map(str, row.cells.values()))


CLASSES: Mapping[str, Callable[[Row, str], object]] = {
    "times of no year": lambda row, unit: unit in UNITS and row.at is not None and row.us is None,
    "times that seem to have a finer unit": lambda row, unit: (
        unit in UNITS and oracle.finer_unit(row.at, unit)
    ),
    "numbers that no float is": lambda row, _: (
        oracle.NUMBER.fullmatch(str(row.cells["value"])) and row.number is None
    ),
    "numbers that are not finite": lambda row, _: not isfinite(row.number or 0),
    "characters beyond ASCII": lambda row, _: not _written(row).isascii(),
    "control characters": lambda row, _: any(each in _written(row) for each in CONTROLS),
    "bytes that are no text": lambda row, _: row.cells["key"] in NO_UTF8,
    "missing cells": lambda row, _: None in row.cells.values(),
    "rows that landed": lambda row, _: row.lands,
    "rows that did not land": lambda row, _: not row.lands,
}
"""Cells of a row that readers get wrong, and what becomes of it; times have a unit."""


@promised(*CLASSES)
@given(drawn=tables())
def test_every_cell_is_read_or_listed(
    reached: Reached, tmp_path_factory: pytest.TempPathFactory, drawn: Sequence[Drawn]
) -> None:
    folder = tmp_path_factory.mktemp("doors")
    for number, table in enumerate(drawn):
        if "string" not in str((column := table["value"]).kind):
            due = [at for at, n in enumerate[Any](column.cells) if n is None or not isfinite(n)]
            assert listed(column) == due
        limit_us = (None, DAY_US)[number % 2]
        rows = rows_of(table, limit_us)
        wrong = [*wrong_landing(table, rows, limit_us, folder)]
        if not str(table["event_time_us"].kind).startswith("timestamp[s"):  # no type of Parquet
            wrong += wrong_files(table, rows_of(table), folder)
        assert not wrong, f"{ {name: str(each.kind) for name, each in table.items()} }: {wrong[0]}"
        for row in rows:
            unit = table["event_time_us"].unit
            reached.add({name: bool(fits(row, unit)) for name, fits in CLASSES.items()})


TIMED = (cells.TIMES, cells.NUMBERS)
CAN_BE: Mapping[tuple[pa.DataType, ...], tuple[str, ...]] = {
    (pa.string(), pa.large_string(), pa.string_view(), pa.null()): (*WANTED.values(), ISO),
    (pa.dictionary(pa.int8(), pa.string()),): (*WANTED.values(), ISO),
    (pa.int8(), pa.int64(), pa.uint64()): tuple(WANTED.values()),
    (pa.float32(), pa.float64(), pa.decimal128(20, 2)): TIMED,
    (pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.date32(), pa.date64()): (cells.TIMES, ISO),
    (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(16)): (cells.KEYS,),
    (pa.bool_(), pa.time64("us"), pa.duration("us"), pa.list_(pa.int8()), pa.struct([])): (),
}
"""Kinds of cells that a column may hold, by its type: those of :data:`WANTED`, times of a numeric
unit among them, and times of a calendar."""


def test_a_column_is_refused_by_its_type_alone() -> None:
    for kinds, fits in CAN_BE.items():
        for kind, wanted in product(kinds, (*WANTED.values(), ISO)):
            unit, word = (ISO, cells.TIMES) if wanted == ISO else ("s", wanted)
            said = cells.refuse_type(word, kind, unit)
            assert said == (None if wanted in fits else f"holds {kind}, not {word}")
