"""A history keeps every row under its number, however its files are merged and removed.

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

from properties.promised import Reached, promised
from spark_impl.runtime import histories, landing, numbering
from spark_impl.runtime.columns import FAULT, FAULTS
from spark_impl.runtime.histories import COLUMNS, file_of, numbers, open_piece, remove_below
from spark_impl.runtime.storage import InputProblem, Location, locate

MERGED, REMOVED, TWICE = (
    "files were merged",
    "a part of a merged file was no longer needed",
    "several merges in one go",
)
SCHEMA = pa.schema({"seq": pa.int64(), "key": pa.string()})
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 6)),
        st.tuples(st.just("compact"), st.just(0)),
        st.tuples(st.just("remove"), st.integers(0, 5)),
    ),
    min_size=3,
    max_size=12,
)
"""Acts on a history: files to append, merges, and files that nobody needs any more."""


class Memory:
    """The rows of a history, by number."""

    def __init__(self, folder: Path, merged: int) -> None:
        self.folder = folder
        self.merged = merged
        """Number of files that become one."""
        self.rows: dict[int, list[int]] = {}
        self.start = 0

    @property
    def end(self) -> int:
        """Number of the next file."""
        return max(self.rows, default=-1) + 1

    def check_rows(self) -> None:
        """Assert that each number can be read and has its rows, and that no other number is."""
        history = locate(self.folder)
        assert numbers(history) == range(self.start, self.end)
        for number in range(self.start, self.end):
            piece = open_piece(file_of(history, number))
            batches = list(piece.batches(2, ["seq"]))
            found = [seq for batch in batches for seq in batch.column(0).to_pylist()]
            assert found == self.rows[number], number
        for number in (self.start - 1, self.end):
            with pytest.raises(InputProblem, match="cannot be read: No such file or directory"):
                open_piece(file_of(history, number))

    def check_files(self) -> int:
        """Assert that all that can be merged is, and that not much of it is there twice.

        Return the number of merged files.
        """
        names = [path.stem.split("-") for path in self.folder.glob("[0-9]*.parquet")]
        merged = {int(each[0]): int(each[1]) for each in names if len(each) == 2}
        assert all(last - first == self.merged - 1 for first, last in merged.items())
        for first in range(0, self.end - 2 * self.merged + 1, self.merged):
            assert first < self.start or first in merged, first
        single = [int(each[0]) for each in names if len(each) == 1]
        twice = [number for number in single if number // self.merged * self.merged in merged]
        assert {number // self.merged * self.merged for number in twice} <= {max(merged, default=0)}
        return len(merged)


@promised(MERGED, REMOVED, TWICE, examples=15)
@given(merged=st.integers(2, 3), group_rows=st.integers(1, 3), acts=ACTS, last=st.integers(0, 5))
def test_rows_stay_under_their_number(
    tmp_path_factory: pytest.TempPathFactory,
    reached: Reached,
    merged: int,
    group_rows: int,
    acts: list[tuple[str, int]],
    last: int,
) -> None:
    memory, before = Memory(tmp_path_factory.mktemp("history"), merged), 0
    history = locate(memory.folder)
    memory.check_rows()
    for kind, number in [*acts, ("compact", 0), ("remove", last), ("compact", 0)]:
        if kind == "append":
            for _ in range(number):
                seqs = [10 * memory.end + each for each in range(memory.end % 4)]
                rows = pa.table([seqs, ["a"] * len(seqs)], schema=SCHEMA)
                file = file_of(history, memory.end)
                histories.write_parquet(rows, file, group_rows)
                memory.rows[memory.end] = seqs
        elif kind == "compact":
            histories.compact(history, merged)
            after = memory.check_files()
            reached.add({MERGED: after > before, TWICE: after > before + 1})
            before = after
        elif memory.end:
            wanted = min(memory.start + number, memory.end - 1)
            remove_below(history, wanted)
            first = numbers(history).start
            assert first == wanted or (first % merged == 0 and wanted - first < merged)
            reached.add({REMOVED: first < wanted})
            memory.start = first
            before = len(list(memory.folder.glob("*-*.parquet")))
        memory.check_rows()


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
        self, given: MicroBatch, *, is_nullable: bool
    ) -> tuple[list[tuple[object, ...]], list[dict[str, Any]]]:
        """Return the arrivals of a micro-batch, and a row for each fault."""
        landed, rejected, since_us = list[tuple[object, ...]](), list[dict[str, Any]](), self.now_us
        for row in (each for part in given.parts for each in part):
            needed = row[:1] if is_nullable else (row.event_time_us, row.value_a, row.value_b)
            seq = None if None in needed else self.seq
            rejected += [{**fault, "seq": seq} for fault in row.faults()]
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
    last, nullable = landing._find_last(history), VALUES if is_nullable else ()
    with pytest.MonkeyPatch.context() as patch:
        if group_rows is not None:
            patch.setattr(numbering, "ROW_GROUP", group_rows)
        for batch, given_rows in enumerate(batches):
            written = written_by(history, last, batch, given_rows, nullable)
            expected = log.land(given_rows, is_nullable=is_nullable)
            assert read(written) == expected
            if expected[0]:
                name = numbering.LANDED
                assert largest_group(written[name]) <= (group_rows or 1 << 20)
                last = last._replace(number=last.number + 1)
                written[name].rename(Path(file_of(history, last.number).path))
                last = landing._find_last(history)
                assert last[1:] == (batch, log.seq - 1, log.now_us)


def written_by(
    history: Location,
    last: landing._Last,
    batch: int,
    given_rows: MicroBatch,
    nullable: Sequence[str],
) -> dict[str, Path]:
    """Let the task of a micro-batch write; return its files by table."""
    rows = [batch_of(part, given_rows.is_identified) for part in given_rows.parts]
    schema = LANDED.with_metadata({landing._BATCH: str(batch)})
    scratch = history / "_scratch"
    scratch.remove()
    found = numbering.write_in_order(rows, schema, scratch, last.seq + 1, last.arrival_us, nullable)
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
