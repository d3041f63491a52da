"""Columns, streams, functions and times that users give are taken as they are, or refused."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import GroupingConfig
from model.vocabulary.join import And
from spark_impl.grouping.query import times_of
from spark_impl.join.inputs import read_file, require_accepted
from spark_impl.join.matching import Query, _flags
from spark_impl.runtime.histories import compact, file_of, history_schema, write_parquet
from spark_impl.runtime.storage import InputProblem, locate

# --------------------------------------------------------------- columns and streams of joins

WHOLE_BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
"""Types of whole numbers, with the bits of their largest values."""
DOUBLE_BITS = 53
"""Bits up to which a double holds every whole number."""
OTHERS = (
    "boolean",
    "date",
    "timestamp",
    "timestamp_ntz",
    "decimal(9,0)",
    "binary",
    "array<int>",
)
KINDS = [*WHOLE_BITS, "float", "double", "string", *OTHERS]
COLUMNS = ("seq", "source_id", "key", "event_time_us", "value")


def holds_all(column: str, kind: str) -> bool:
    """Return whether every value of a type is one of the column, as it is."""
    if column == "key":
        return kind == "string"
    if column == "value":
        return kind in ("float", "double") or WHOLE_BITS.get(kind, 99) < DOUBLE_BITS
    return kind in WHOLE_BITS or (column == "event_time_us" and kind == "timestamp")


@given(st.dictionaries(st.sampled_from(COLUMNS), st.sampled_from(KINDS)))
def test_a_column_is_accepted_if_all_its_values_fit(kinds: dict[str, str]) -> None:
    for column in COLUMNS:
        if column not in kinds:
            with pytest.raises(InputProblem, match=f"^the input R has no column '{column}'; it ha"):
                require_accepted("R", kinds, column)
        elif holds_all(column, kinds[column]):
            assert require_accepted("R", kinds, column) == kinds[column]
        else:
            with pytest.raises(InputProblem, match=f"^the column '{column}' of the input R is "):
                require_accepted("R", kinds, column)


NAMES = st.sampled_from(["R", "S", "R", "S", "R", "S", "T", None])
PARTS = st.lists(st.lists(NAMES, min_size=1, max_size=4), min_size=1, max_size=5)


@given(PARTS, st.booleans())
def test_a_row_of_another_stream_is_refused(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[str | None]], is_merged: bool
) -> None:
    folder = locate(tmp_path_factory.mktemp("history"))
    schema = history_schema(pa.field("stream", pa.string()))
    common: dict[str, object] = {name: "a" if name == "key" else 0 for name in schema.names}
    rows = [
        {**common, "stream": name, "seq": seq}
        for seq, name in enumerate(name for file in files for name in file)
    ]
    first = 0
    for number, names in enumerate(files):
        part = pa.Table.from_pylist(rows[first : first + len(names)], schema)
        write_parquet(part, file_of(folder, number))
        first += len(names)
    if is_merged:
        compact(folder, 2)
    first = 0
    for number, names in enumerate(files):
        address = str(file_of(folder, number))
        if {*names} <= {"R", "S"}:
            found = read_file(address, schema, "stream", ("R", "S")).to_pylist()
            assert found == rows[first : first + len(names)]
        else:
            other = next(name for name in names if name not in ("R", "S"))
            with pytest.raises(InputProblem, match=f"has the stream {other!r}; it can be R or S$"):
                read_file(address, schema, "stream", ("R", "S"))
        first += len(names)


ANSWERS = st.one_of(
    st.lists(st.booleans(), max_size=4),
    st.lists(st.booleans(), max_size=4).map(np.array),
    st.lists(st.integers(0, 1), max_size=4),
    st.lists(st.lists(st.booleans(), max_size=2), max_size=4),
    st.sampled_from([None, True, "yes", np.ones((3, 1), np.bool_), {True}]),
)


@given(st.integers(1, 4), ANSWERS)
def test_a_function_decides_on_every_pair_or_is_refused(pairs: int, returned: object) -> None:
    query = Query("q", And(), None)
    given_flags = returned.tolist() if isinstance(returned, np.ndarray) else returned
    if (
        isinstance(given_flags, list)
        and len(given_flags) == pairs
        and all(isinstance(each, bool) for each in given_flags)
    ):
        assert _flags(query, pairs, returned).tolist() == given_flags
    else:
        sentence = f"^the function of the query 'q' has to return {pairs} truth values, one for"
        with pytest.raises(InputProblem, match=sentence):
            _flags(query, pairs, returned)


# ------------------------------------------------------------------------------ times of a router

WHOLE = st.sampled_from([1, 2, 7, 1 << 40, np.int64(5)])
TIMES = st.one_of(
    st.lists(WHOLE, min_size=1, max_size=4),
    st.lists(WHOLE | st.sampled_from([0, -1]), min_size=2, max_size=2),
    st.lists(WHOLE | st.sampled_from([1.5, "3", None]), max_size=4),
)


@given(st.integers(2, 3), TIMES)
def test_times_are_taken_as_they_are_or_refused(instances: int, given_times: list[Any]) -> None:
    config = GroupingConfig(instances)
    is_whole = all(isinstance(each, int | np.integer) for each in given_times)
    if is_whole and len(given_times) == instances and all(each >= 1 for each in given_times):
        assert times_of(config, given_times) == tuple(given_times)
        return
    sentence = rf"are not {instances} whole microseconds, each at least 1$"
    with pytest.raises(InputProblem, match=sentence):
        times_of(config, given_times)
