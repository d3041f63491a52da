"""A file of a history is opened if its columns have the types that a query reads, else refused."""

import random
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.windows.arrival_files import group_type, open_file

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
SITE: Mapping[str, tuple[pa.DataType, ...]] = {"text": TEXTS, "integers": INTEGERS}
"""Types of a grouping column, by the words for them."""


def files(rng: random.Random) -> Iterator[tuple[dict[str, pa.DataType], str, str | None]]:
    """Yield the types of a file's columns, the type of the groups, and the column of values.

    Each column has each type in turn; the types of the others are such as a query reads.
    """
    for wanted, value in product(SITE, ("watts", None)):
        good = {name: types for name, (_, types) in GOOD.items()} | {"site": SITE[wanted]}
        for name, kind in product(good, (MISSING, *TEXTS, *FLOATS, *INTEGERS, *OTHERS)):
            types = {each: rng.choice(kinds) for each, kinds in good.items()}
            yield {**types, name: kind}, wanted, value


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
    for number, (types, wanted, value) in enumerate(files(random.Random(seed))):
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
    reasons = {f"it must hold {each}" for each in ("integers", "numbers", "text")}
    assert met == {"", "has no column", "it must hold text or integers", *reasons}
