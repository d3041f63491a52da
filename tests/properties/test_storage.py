"""Names of files say where a query resumes, and what workers wrote has to be where drivers look."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spark_impl.grouping.store import SENDER, GroupingStore
from spark_impl.runtime.queries import last_logged, remove_unwritten_plan, require_checkpoint
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.runtime.stores import Draft, claim
from spark_impl.runtime.tables import TableWriter

NUMBERS = st.sets(st.integers(0, 120), max_size=4)
NOT_LOGGED = st.sets(st.sampled_from([".7.crc", "8.tmp", ".9.a1.tmp", "notes", "12x"]), max_size=3)


@example({0}, {".9.a1.tmp"}, 0)
@given(NUMBERS, NOT_LOGGED, st.integers(-1, 120))
def test_a_checkpoint_that_was_lost_or_rolled_back_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, logged: set[int], others: set[str], last: int
) -> None:
    folder = tmp_path_factory.mktemp("checkpoint")
    (folder / "offsets").mkdir()
    for name in {*map(str, logged), *others}:
        (folder / "offsets" / name).touch()
    checkpoint = locate(folder)
    store: Any = SimpleNamespace(root=locate("store"), require_plan=lambda: None)
    assert last_logged(checkpoint, "offsets") == max(logged, default=-1)
    assert last_logged(checkpoint, "commits") == -1
    if last > max(logged, default=-1):  # Spark would plan a micro-batch anew
        with pytest.raises(InputProblem, match=f"whose tables are at micro-batch {last}$"):
            require_checkpoint(checkpoint, store, last)
    else:
        require_checkpoint(checkpoint, store, last)
    remove_unwritten_plan(checkpoint)
    left = {path.name for path in (folder / "offsets").iterdir()} - {*map(str, logged)}
    assert left == (others if logged else others - {".9.a1.tmp"})


def test_rows_that_workers_wrote_to_another_folder_are_missed(tmp_path: Path) -> None:
    store = GroupingStore(locate(tmp_path / "store"))
    claim(store, {"version": 1})
    here, there = (store.save(SENDER, 0, at, b"") for at in (0, 1))
    there.remove()
    shared = "the driver and all workers have to reach one folder under this address$"
    draft = Draft(store, TableWriter(store.root), 0)
    sentence = f"has 1 of the 2 rows that workers wrote to '{SENDER}' in micro-batch 0: {shared}"
    with pytest.raises(InputProblem, match=sentence):
        draft.add(SENDER, {here: 1, there: 1})
    with pytest.raises(InputProblem, match=f"lacks kind={SENDER}/{there.name}, which .*: {shared}"):
        store.read_state(there, SENDER)
