"""A history keeps every row under its number, however it grows and is shortened."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_impl.runtime import histories
from spark_impl.runtime.histories import file_of, files_below, numbers, open_piece
from spark_impl.runtime.storage import InputProblem, locate

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
