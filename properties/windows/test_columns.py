"""A file of a history is opened if its columns have the types that a query reads, else refused."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.windows.arrival_files import group_type, open_file
from tests.harness.stream_packs import collect

CASES = 400
"""Number of drawn files that together have to be opened, and refused for every reason."""
TEXTS = (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()))
INTEGERS = (pa.int64(), pa.int32(), pa.int8())
FLOATS = (pa.float64(), pa.float32())
OTHERS = (pa.bool_(), pa.timestamp("us"), pa.date32())
MISSING = None
GOOD: Mapping[str, tuple[str, tuple[pa.DataType, ...]]] = {
    "seq": ("integers", INTEGERS),
    "source_id": ("integers", INTEGERS),
    "key": ("text", TEXTS),
    "event_time_us": ("integers", INTEGERS),
    "watts": ("numbers", (*INTEGERS, *FLOATS)),
    "arrival_us": ("integers", INTEGERS),
}
"""Types of the columns that a query reads, and the words for them."""
WRONG = (MISSING, *TEXTS, *FLOATS, *INTEGERS, *OTHERS)
SITE: Mapping[str, tuple[pa.DataType, ...]] = {"text": TEXTS, "integers": INTEGERS}
"""Types of a grouping column, by the words for them."""


@st.composite
def files(draw: st.DrawFn) -> tuple[dict[str, pa.DataType], str, str | None]:
    """Draw the types of a file's columns, the type of the groups, and the column of values."""
    wanted = draw(st.sampled_from(sorted(SITE)))
    good = {name: types for name, (_, types) in GOOD.items()} | {"site": SITE[wanted]}
    types = {name: draw(st.sampled_from(each)) for name, each in good.items()}
    if draw(st.booleans()):
        types[draw(st.sampled_from(sorted(good)))] = draw(st.sampled_from(WRONG))
    return types, wanted, draw(st.sampled_from(["watts", "watts", None]))


def refusal(types: Mapping[str, pa.DataType], wanted: str, value: str | None) -> str:
    """Return how the sentence about a file's first bad column ends; empty without such a column."""
    needed = {name: each for name, each in GOOD.items() if name != "watts" or value}
    for name, (words, good) in {**needed, "site": (wanted, SITE[wanted])}.items():
        if types[name] is MISSING:
            return f"has no column '{name}'"
        if types[name] not in good:
            allowed = "text or integers" if name == "site" and not _is_group(types[name]) else words
            return f"holds {types[name]}; it must hold {allowed}"
    return ""


def _is_group(kind: pa.DataType) -> bool:
    return any(kind in each for each in SITE.values())


def test_a_file_with_a_column_of_another_type_is_refused(tmp_path: Path, seed: int) -> None:
    met = set()
    folder = locate(tmp_path)
    for number, (types, wanted, value) in enumerate(collect(files(), CASES, seed)):
        held = [pa.field(name, each) for name, each in types.items() if each is not MISSING]
        file = folder / f"{number:08d}.parquet"
        pq.write_table(pa.schema(held).empty_table(), file.path, filesystem=file.files)
        groups = [pa.field("site", pa.string() if wanted == "text" else pa.int64())]
        said = refusal(types, wanted, value)
        met.add(said.partition("; ")[2] or said.partition(" '")[0])
        if said:
            with pytest.raises(InputProblem, match=r"\.parquet") as caught:
                open_file(file, groups, value)
            assert said in str(caught.value)
        else:
            schema = open_file(file, groups, value).file.schema_arrow
            assert group_type(file, schema, "site") == groups[0].type
    assert {"", "has no column", "it must hold integers", "it must hold text"} <= met
