"""Names of files in a checkpoint say where a query resumes."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_impl.runtime.queries import last_logged, require_checkpoint, tidy
from spark_impl.runtime.storage import InputProblem, locate

NUMBERS = st.sets(st.integers(0, 120), max_size=4)
NOT_LOGGED = st.sets(st.sampled_from([".7.crc", "8.tmp", ".9.a1.tmp", "notes", "12x"]), max_size=3)


@given(NUMBERS, NOT_LOGGED, st.integers(-1, 120))
def test_a_checkpoint_that_was_lost_or_rolled_back_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, logged: set[int], others: set[str], last: int
) -> None:
    folder = tmp_path_factory.mktemp("checkpoint")
    (folder / "offsets").mkdir()
    for name in {*map(str, logged), *others}:
        (folder / "offsets" / name).touch()
    checkpoint = locate(folder)
    store: Any = SimpleNamespace(root=locate("store"), require_plan=lambda plan: None)
    assert last_logged(checkpoint, "offsets") == max(logged, default=-1)
    assert last_logged(checkpoint, "commits") == -1
    if last > max(logged, default=-1):  # Spark would plan a micro-batch anew
        with pytest.raises(InputProblem, match=f"whose tables are at micro-batch {last}$"):
            require_checkpoint(checkpoint, store, last)
    else:
        require_checkpoint(checkpoint, store, last)
    tidy(checkpoint)
    left = {path.name for path in (folder / "offsets").iterdir()} - {*map(str, logged)}
    assert left == (others if logged else others - {".9.a1.tmp"})
