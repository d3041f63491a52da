"""Cells of files: what the door of files makes of drawn texts and types, against an oracle.

A landing is compared with the same oracle, so that both doors read a cell alike.
"""

import csv
from datetime import date, datetime
from math import isfinite, nan
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import parquet

from model.vocabulary import stable_hash
from straggler.inputs.tables import Columns, Recording, read_table
from tests.harness import cells as drawn
from tests.harness.cells import number_of, same, time_of

UNITS = ("us", "ms", "s", "ns")
NUMBERS = st.one_of(
    st.lists(drawn.TEXT_NUMBERS, max_size=20).map(lambda cells: (pa.string(), cells)),
    st.lists(drawn.WHOLE, max_size=20).map(lambda cells: (pa.int64(), cells)),
    st.lists(drawn.DECIMALS, max_size=20).map(lambda cells: (pa.decimal128(38, 9), cells)),
)
"""Types with cells of them."""
ON_CALENDAR = st.one_of(
    st.lists(drawn.STAMPS, max_size=20).map(lambda cells: (pa.timestamp("us"), cells)),
    st.lists(st.dates(date(1, 1, 1)), max_size=20).map(lambda cells: (pa.date32(), cells)),
)
FLOATS = st.lists(st.floats(), max_size=20).map(lambda cells: (pa.float64(), cells))
Drawn = tuple[pa.DataType, list[object]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cells")


def read(folder: Path, columns: Columns, cells: dict[str, Drawn]) -> list[Recording]:
    """Read columns from a Parquet file and, if all of them are text, from a CSV file as well."""
    table = pa.table({name: pa.array(each, kind) for name, (kind, each) in cells.items()})
    path = folder / "cells.parquet"
    parquet.write_table(table, path)
    found = [read_table(path, columns)]
    if pa.string() in table.schema.types:
        path = folder / "cells.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_ALL)
            writer.writerow(table.column_names)
            writer.writerows(row.values() for row in table.to_pylist())
        found.append(read_table(path, columns))
    return found


def places(cells: list[object]) -> Drawn:
    """Return a column of values that say where a row is."""
    return pa.float64(), [float(row) for row in range(len(cells))]


def check_times(folder: Path, unit: str, kind: pa.DataType, cells: list[object]) -> None:
    good: object = {"iso": "1970-01-01"}.get(unit, "0")
    if kind != pa.string():
        good = date(1970, 1, 1) if kind == pa.date32() else 0
        good = datetime(1970, 1, 1) if kind == pa.timestamp("us") else good  # noqa: DTZ001 - a wall clock
    column = [*cells, good]
    expected = {
        row: us for row, cell in enumerate(column) if (us := time_of(cell, unit)) is not None
    }
    given: dict[str, Drawn] = {"event_time": (kind, column), "value": places(column)}
    for recording in read(folder, Columns(time_unit=unit), given):
        found = {int(event.value): event.event_time_us for event in recording.events}
        assert found == expected
        assert recording.set_aside[0].count == len(column) - len(expected)


@given(cells=st.lists(drawn.TEXT_TIMES, max_size=20))
def test_texts_of_times_are_those_of_the_calendar(folder: Path, cells: list[object]) -> None:
    check_times(folder, "iso", pa.string(), cells)


@given(unit=st.sampled_from(UNITS), column=NUMBERS | ON_CALENDAR)
def test_times_in_every_unit_and_type_are_exact(folder: Path, unit: str, column: Drawn) -> None:
    check_times(folder, unit, *column)


@example(column=(pa.string(), [""]))
@given(column=NUMBERS | FLOATS)
def test_values_of_every_type_are_the_nearest_float_or_missing(folder: Path, column: Drawn) -> None:
    kind, drawn_cells = column
    cells: list[object] = [*drawn_cells, "1" if kind == pa.string() else 1]
    expected = [nan if (number := number_of(cell)) is None else number for cell in cells]
    for recording in read(folder, Columns(needs_times=False), {"value": (kind, cells)}):
        assert all(map(same, [event.value for event in recording.events], expected))
        lacking = sum(each.total for each in recording.set_aside[0].lacking)
        assert lacking == sum(not isfinite(each) for each in expected)


@given(texts=st.lists(drawn.IDENTITIES.filter(bool), max_size=20))
def test_identities_and_keys_are_those_of_their_own_text(folder: Path, texts: list[object]) -> None:
    texts = [*texts, "good"]
    rows = range(len(texts))
    cells: dict[str, Drawn] = {
        "seen": (pa.int64(), list(rows)),
        "event_time": (pa.int64(), [0] * len(texts)),
        "id": (pa.string(), texts),
        "key": (pa.string(), texts),
    }
    columns = Columns(arrival="seen", id="id", needs_values=False)
    for recording in read(folder, columns, cells):
        found = [(event.source_id, event.key) for event in recording.events]
        assert found == [(identity_of(str(text)), text) for text in texts]


def identity_of(text: str) -> int:
    """Return the 64-bit integer that a text is the usual form of, or else its hash."""
    try:
        number = int(text)
    except ValueError:
        return stable_hash(text)
    is_plain = str(number) == text and -(2**63) <= number < 2**63
    return number if is_plain else stable_hash(text)
