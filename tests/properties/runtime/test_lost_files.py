"""A store that has lost a file says so, whatever was merged."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from model.vocabulary import SlackConfig
from properties.stream_packs import collect
from spark_impl.runtime import tables
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.runtime.stores import Draft, require_view
from spark_impl.runtime.tables import TableWriter
from spark_impl.slack.query import SLACK
from spark_impl.windows.store import WindowStore, open_store

CASES = 60
"""Number of drawn stores that together have to lose files of every kind."""
KINDS = ("late", "result", "revision")
MERGED, SINGLE, NOTHING = "a merged file is lost", "a file is lost", "nothing is lost"
ROWS = st.fixed_dictionaries({name: st.integers(0, 3) for name in KINDS})
BATCHES = st.lists(ROWS, min_size=2, max_size=12)


def written(folder: Path, batches: list[dict[str, int]]) -> WindowStore:
    """Return a store with some rows of each kind in each micro-batch."""
    store = open_store(locate(folder), SLACK, SlackConfig(4, 2), ())
    writer = TableWriter(store.root)
    for batch, rows_of in enumerate(batches):
        draft = Draft(store, writer.view, batch)
        for kind, rows in rows_of.items():
            table = pa.Table.from_pylist([{"task": row} for row in range(rows)], store.schema(kind))
            draft.write(kind, table, "task")
        draft.commit(writer)
        writer.tidy(store.growing())
    return store


def lost(store: WindowStore, kind: str, place: int) -> str:
    """Remove a file that the present version names; return what it was."""
    files = require_view(store.root).of(kind)
    if not files:
        return NOTHING
    file = files[place % len(files)].file
    file.remove()
    return MERGED if file.name.startswith("part-") else SINGLE


def test_a_lost_file_of_any_kind_is_noticed(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "TIDIED", 4)
    met = Counter[str]()
    places = st.tuples(BATCHES, st.sampled_from(KINDS), st.integers(0, 9))
    for number, (batches, kind, place) in enumerate(collect(places, CASES, seed)):
        store = written(tmp_path / str(number), batches)
        rows = {name: sum(each[name] for each in batches) for name in KINDS}
        assert {name: store.read_all(name).num_rows for name in KINDS} == rows
        what = lost(store, kind, place)
        met[what] += 1
        if what == NOTHING:
            assert store.read_all(kind).num_rows == rows[kind]
            continue
        with pytest.raises(InputProblem, match=rf"has lost \S+ with \d+ rows of kind '{kind}'"):
            store.read_all(kind)
        others = {name: each for name, each in rows.items() if name != kind}
        assert {name: store.read_all(name).num_rows for name in others} == others
    assert min(met[each] for each in (MERGED, SINGLE)) >= 3, met
