"""A history keeps every row under its number, however it grows and is shortened.

A landing numbers every arrival once, whatever faults rows have and however they are cut; the next
micro-batch continues behind the last file.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_impl.runtime import histories, numbering
from spark_impl.runtime.columns import FAULT, FAULTS
from spark_impl.runtime.histories import COLUMNS, file_of, files_below, numbers, open_piece
from spark_impl.runtime.landed_files import BATCH, PLAN, LastFile, find_last
from spark_impl.runtime.storage import InputProblem, Location, locate

SCHEMA = pa.schema({"seq": pa.int64(), "key": pa.string()})
ACTS = st.lists(
    st.tuples(st.sampled_from(["append", "remove", "look"]), st.integers(0, 5)), max_size=12
)
"""Acts on a history: files to append, files that nobody needs any more, looks of a follower."""


@given(ACTS)
def test_rows_stay_under_their_number(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, int]]
) -> None:
    history = locate(tmp_path_factory.mktemp("history"))
    follower, there = histories.Follower(history), range(0)
    for kind, number in acts:
        if kind == "append":
            for each in range(there.stop, there.stop + number):
                histories.append(history, pa.table([[10 * each], ["a"]], schema=SCHEMA))
            there = range(there.start, there.stop + number)
        elif kind == "remove" and there:
            wanted = min(there.start + number, there.stop - 1)
            for file in files_below(history, wanted):
                file.remove()
            there = range(wanted, there.stop)
        else:
            assert follower.numbers() == there
        assert numbers(history) == there
        for each in there:
            (batch,) = open_piece(file_of(history, each)).batches(2, ["seq"])
            assert batch.column(0).to_pylist() == [10 * each]
        for each in (there.start - 1, there.stop):
            with pytest.raises(InputProblem, match="cannot be read: No such file or directory"):
                open_piece(file_of(history, each))
    if len(there) > 2:
        file_of(history, there.start + 1).remove()
        with pytest.raises(InputProblem, match="is missing, but"):
            numbers(history)


# --------------------------------------------------------------- numbers of a landing

VALUES = ("value_a", "value_b")
NAMES = [each for each in COLUMNS if each != "value"]
LANDED = pa.schema(
    [*((each, COLUMNS[each]) for each in NAMES), *((v, pa.float64()) for v in VALUES)]
)


class Row(NamedTuple):
    """A row of a stream after its columns were converted; ``None`` stands for a bad value."""

    event_time_us: int | None
    source_id: int
    arrival_us: int
    value_a: float | None
    value_b: float | None

    def faults(self) -> list[dict[str, Any]]:
        """Return the faults of the row: the first that keeps it out, or else all of its values."""
        said = [
            {"column": name, "reason": "NULL", "text": "?", "row": repr(self)}
            for name in ("event_time_us", *VALUES)
            if getattr(self, name) is None
        ]
        return said[:1] if self.event_time_us is None else said


class MicroBatch(NamedTuple):
    """The rows of a micro-batch, in parts."""

    parts: list[list[Row]]
    is_identified: bool
    """Whether the stream names its tuples."""


SMALL = st.integers(-5, 20)
BAD_VALUES = st.sampled_from([None, 0.0, 0.5, 2.0])
ROWS = st.builds(
    Row, st.none() | SMALL | SMALL | SMALL, st.integers(0, 9), SMALL, BAD_VALUES, BAD_VALUES
)
MICRO_BATCHES = st.builds(
    MicroBatch, st.lists(st.lists(ROWS, max_size=5), max_size=4), st.booleans()
)


def batch_of(rows: Sequence[Row], is_identified: bool) -> pa.RecordBatch:
    """Return rows as Spark hands them to the task."""
    lines = ["\n".join(map(json.dumps, row.faults())) or None for row in rows]
    columns = {name: [getattr(row, name) for row in rows] for name in Row._fields}
    if not is_identified:
        del columns["source_id"]
    types = {name: LANDED.field(name).type for name in columns}
    arrays = {name: pa.array(given, types[name]) for name, given in columns.items()}
    return pa.record_batch(
        {**arrays, "key": pa.array(["a"] * len(rows)), FAULT: pa.array(lines, pa.string())}
    )


class Log:
    """The arrivals and the rejected rows of a landing, one after the other."""

    def __init__(self) -> None:
        self.seq = 0
        self.now_us: int | None = None

    def land(
        self, given: MicroBatch, batch: int, *, is_nullable: bool
    ) -> tuple[list[tuple[object, ...]], list[dict[str, Any]]]:
        """Return the arrivals of a micro-batch, and a row for each fault."""
        landed, rejected, since_us = list[tuple[object, ...]](), list[dict[str, Any]](), self.now_us
        for row in (each for part in given.parts for each in part):
            needed = row[:1] if is_nullable else (row.event_time_us, row.value_a, row.value_b)
            seq = None if None in needed else self.seq
            rejected += [{**fault, "seq": seq, "batch": batch} for fault in row.faults()]
            if None in needed:
                continue
            arrival_us = row.arrival_us if since_us is None else max(row.arrival_us, since_us)
            source_id = row.source_id if given.is_identified else self.seq
            values = (row.value_a, row.value_b)
            landed.append((self.seq, source_id, "a", row.event_time_us, arrival_us, *values))
            self.seq += 1
            self.now_us = arrival_us if self.now_us is None else max(self.now_us, arrival_us)
        return landed, rejected


@given(st.lists(MICRO_BATCHES, max_size=4), st.booleans(), st.sampled_from([None, None, 1, 2, 3]))
def test_every_arrival_has_the_next_number(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[MicroBatch],
    is_nullable: bool,
    group_rows: int | None,
) -> None:
    history, log = locate(tmp_path_factory.mktemp("history")), Log()
    last, nullable = find_last(history), VALUES if is_nullable else ()
    with pytest.MonkeyPatch.context() as patch:
        if group_rows is not None:
            patch.setattr(numbering, "ROW_GROUP", group_rows)
        for batch, given_rows in enumerate(batches):
            written = written_by(history, last, batch, given_rows, nullable)
            expected = log.land(given_rows, batch, is_nullable=is_nullable)
            assert read(written) == expected
            if expected[0]:
                name = numbering.LANDED
                assert largest_group(written[name]) <= (group_rows or 1 << 20)
                last = last._replace(number=last.number + 1)
                written[name].rename(Path(file_of(history, last.number).path))
                last = find_last(history)
                assert (last.batch, last.first) == (batch, expected[0][0][0])
                assert (last.seq, last.arrival_us) == (log.seq - 1, log.now_us)


def written_by(
    history: Location,
    last: LastFile,
    batch: int,
    given_rows: MicroBatch,
    nullable: Sequence[str],
) -> dict[str, Path]:
    """Let the task of a micro-batch write; return its files by table."""
    rows = [batch_of(part, given_rows.is_identified) for part in given_rows.parts]
    schema = LANDED.with_metadata({BATCH: str(batch), PLAN: "0"})
    scratch = history / "_scratch"
    scratch.remove()
    since = (last.seq + 1, last.arrival_us)
    found = numbering.write_in_order(rows, schema, scratch, batch, *since, nullable)
    listed = [each for part in found for each in part.to_pylist()]
    files = {each["table"]: Path(each["file"]) for each in listed}
    assert sorted(files.values()) == sorted(map(Path, [c.path for c in scratch.children()]))
    for each in listed:
        assert pq.read_metadata(each["file"]).num_rows == each["rows"] > 0
    return files


def read(files: dict[str, Path]) -> tuple[list[tuple[object, ...]], list[dict[str, Any]]]:
    """Return the rows that were landed and rejected."""
    tables = [
        pq.read_table(files[name]) if name in files else schema.empty_table()
        for name, schema in ((numbering.LANDED, LANDED), (numbering.REJECTED, FAULTS))
    ]
    landed = [tuple(row[name] for name in LANDED.names) for row in tables[0].to_pylist()]
    return landed, tables[1].to_pylist()


def largest_group(file: Path) -> int:
    """Return the number of rows of the largest row group."""
    metadata = pq.read_metadata(file)
    return max(int(metadata.row_group(at).num_rows) for at in range(metadata.num_row_groups))
