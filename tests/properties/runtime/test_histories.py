"""A history keeps every row under its number, however its files are merged and removed."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties.promised import Reached, promised
from spark_impl.runtime import histories
from spark_impl.runtime.histories import file_of, numbers, open_piece, remove_below
from spark_impl.runtime.storage import InputProblem, locate

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
