"""States as bytes: what was written comes back, and nothing else is made of bytes."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_impl.grouping.keys import Summary
from spark_impl.runtime.states import from_bytes, to_bytes
from spark_impl.runtime.storage import Location, locate
from spark_impl.watermark.rule import Memory
from spark_impl.windows.records import PANE, Clock, TaskState


def test_a_state_comes_back_as_it_was_written() -> None:
    panes = np.array([(1, -2, 3, 1 << 62, -0.0)], PANE)
    memory = Memory(inv=2, cluster=np.arange(3))
    state = TaskState(memory, Clock(7, 1 << 61), ("a", "ä"), panes)
    large = np.array([1 << 80, -3], object)
    summary = Summary(pa.array(["b", ""]), np.arange(2), np.arange(2), 5, 4)
    written = to_bytes((state, large, summary, panes["n"] > 0, np.int64(9)))
    found, integers, counted, flags, number = from_bytes(written)
    assert type(found) is TaskState
    assert (found.clock, found.keys, found.memory.inv) == (state.clock, ("a", "ä"), 2)
    assert found.panes.dtype == PANE
    assert found.panes.tobytes() == panes.tobytes()
    assert found.memory.cluster.tolist() == [0, 1, 2]
    assert len(found.identities) == 0
    assert found.identities.dtype == state.identities.dtype
    assert integers.tolist() == [1 << 80, -3]
    assert (counted.keys, counted.floor) == (pa.array(["b", ""]), 4)
    assert (flags.tolist(), number) == ([True], 9)


def test_bytes_of_others_change_no_class() -> None:
    change = pickle.dumps((None, {"batch": 7, "_make": 8}))[2:-1]  # for the opcode BUILD
    for part in ("grouping.windows\nStanding", "runtime.states\n_record"):
        named = b"\x80\x05cspark_impl." + part.encode() + b"\n"
        with pytest.raises(pickle.UnpicklingError, match=r"a state (has no part|sets)"):
            from_bytes(named + change + b"b.")
    for name in (
        "spark_impl.script.processor:Row",
        "spark_impl.join.matching:Chosen",
        "os:stat_result",
    ):
        given = pickle.dumps((name, []))[2:-1]
        with pytest.raises(pickle.UnpicklingError, match="a state has no part"):
            from_bytes(b"\x80\x05cspark_impl.runtime.states\n_record\n" + given + b"R.")


@pytest.mark.parametrize("call", [os.unlink, Location.remove, locate])
def test_bytes_of_others_call_nothing(tmp_path: Path, call: Callable[..., Any]) -> None:
    file = tmp_path / "kept"
    file.touch()

    class Foreign:
        def __reduce__(self) -> Any:
            return call, (Location(str(file)) if call is Location.remove else str(file),)

    with pytest.raises(pickle.UnpicklingError, match="a state has no part"):
        from_bytes(pickle.dumps(Foreign()))
    assert file.exists()
