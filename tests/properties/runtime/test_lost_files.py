"""A store whose tables have lost a file says so, whatever was merged, and whoever began it."""

from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import SlackConfig
from properties.promised import Reached, promised
from spark_impl.runtime import stores
from spark_impl.runtime.histories import write_parquet
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.slack.query import SLACK
from spark_impl.windows.store import WindowStore, load_store, open_store

TABLES = ("late", "result", "revision")
MERGED, SINGLE, NOTHING = "a merged file is lost", "a file is lost", "nothing is lost"
ROWS = st.fixed_dictionaries({name: st.integers(0, 3) for name in TABLES})
BATCHES = st.lists(ROWS, min_size=2, max_size=12)


def written(folder: Path, batches: list[dict[str, int]], unmarked: int) -> WindowStore:
    """Return a store with rows in its tables; its first micro-batches have no notes."""
    open_store(locate(folder), SLACK, SlackConfig(4, 2), ())
    _, store = load_store(locate(folder), SLACK)
    for batch, rows_of in enumerate(batches):
        store.begin(batch)
        for name, rows in rows_of.items():
            table = pa.Table.from_pylist([{"task": row} for row in range(rows)], store.schema(name))
            store.write(name, batch, table)
        mark = store.schema("pending").empty_table()
        if batch < unmarked:  # as earlier versions wrote it
            write_parquet(mark, store.folder("pending", batch) / "part-00000-0.parquet")
        else:
            store.complete(batch, mark, rows_of)
        store.compact(batch)
    return store


def rows_in_files(store: WindowStore, table: str) -> int:
    """Return the number of rows in the files of a table."""
    files = [file for each in store.files(table).values() for file in each]
    return sum(pq.read_metadata(file.path).num_rows for file in files)


def lost(store: WindowStore, table: str, place: int) -> str:
    """Remove a file of a table; return what it was.

    Parts of a merged file may be left, so that nothing is lost with it.
    """
    files = [file for each in store.files(table).values() for file in each]
    if not files:
        return NOTHING
    before, file = rows_in_files(store, table), files[place % len(files)]
    file.remove()
    if rows_in_files(store, table) == before:
        return NOTHING
    return SINGLE if "part" in file.name else MERGED


@promised(MERGED, SINGLE, examples=10)
@given(
    batches=BATCHES,
    unmarked=st.integers(0, 3),
    table=st.sampled_from(TABLES),
    place=st.integers(0, 9),
)
def test_a_lost_file_of_any_table_is_noticed(
    tmp_path_factory: pytest.TempPathFactory,
    reached: Reached,
    batches: list[dict[str, int]],
    unmarked: int,
    table: str,
    place: int,
) -> None:
    with patch.object(stores, "MERGED", 3):
        folder = tmp_path_factory.mktemp("store")
        store = written(folder, batches, min(unmarked, len(batches) - 1))
        rows = {name: sum(each[name] for each in batches) for name in TABLES}
        assert {name: store.read_all(name).num_rows for name in TABLES} == rows
        what = lost(store, table, place)
        reached.add({what: 1})
        if what == NOTHING:
            assert store.read_all(table).num_rows == rows[table]
            return
        with pytest.raises(InputProblem, match=rf"of the {rows[table]} rows .* '{table}' up to"):
            store.read_all(table)
        assert {name: store.read_all(name).num_rows for name in rows if name != table} == {
            name: each for name, each in rows.items() if name != table
        }
