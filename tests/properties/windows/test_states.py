"""The state of a task comes back from its binary as it was, and its arrays can be read in place."""

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_impl.runtime.arrays import Records
from spark_impl.slack.query import SLACK
from spark_impl.watermark.query import UPSTREAM, WATERMARK
from spark_impl.windows import records
from spark_impl.windows.records import IDENTITY, PANE, Clock, TaskState

MEMORIES = {
    "slack": SLACK.memory,
    "watermark": WATERMARK.memory,
    "watermark with operators upstream": UPSTREAM.memory,
}
WORD = 8
"""Size of every number in an array, in bytes."""
INTEGERS = st.integers(-(1 << 63), (1 << 63) - 1)
NUMBERS = {"i": INTEGERS, "f": st.floats(allow_nan=False)}
KEYS = st.lists(st.text(st.characters(codec="utf-8"), max_size=9), max_size=4, unique=True)


@st.composite
def arrays(draw: st.DrawFn, dtype: "np.dtype[Any]") -> Records:
    """Draw an array whose numbers follow from its size and one number of each kind."""
    size = draw(st.integers(0, 5))
    found = np.zeros(size, dtype)
    for name in dtype.names or (None,):
        column = found if name is None else found[name]
        first = draw(NUMBERS[column.dtype.kind])
        column[:] = [*accumulate([first] * size, lambda last, _: last // 3 + 1)]
    return found


@st.composite
def states(draw: st.DrawFn, empty: Any) -> TaskState:
    """Draw the state of a task whose memory has the types of an empty one."""
    memory = [
        draw(
            arrays(each.dtype)
            if isinstance(each, np.ndarray)
            else NUMBERS[np.array(each).dtype.kind]
        )
        for each in empty
    ]
    clock = Clock(*(draw(INTEGERS) for _ in Clock._fields))
    panes, identities = draw(arrays(PANE)), draw(arrays(IDENTITY))
    return TaskState(empty._make(memory), clock, tuple(draw(KEYS)), panes, identities)


def shown(parts: Iterable[Any]) -> str:
    """Return parts of a state as text, which tells zeros apart and finds NaN equal to itself."""
    return repr([each.tolist() if isinstance(each, np.ndarray) else each for each in parts])


@pytest.mark.parametrize("room", MEMORIES)
@given(data=st.data())
def test_a_state_comes_back_as_it_was(room: str, data: st.DataObject) -> None:
    empty = MEMORIES[room]
    state = data.draw(states(empty))
    binary = records.state_to_bytes(state)
    found = records.state_from_bytes(empty, binary)
    assert shown(found[1:]) == shown(state[1:])
    assert shown(found.memory) == shown(state.memory)
    assert type(found.memory) is type(empty)
    for before, after in zip(empty, found.memory, strict=True):
        assert np.asarray(after).dtype == np.asarray(before).dtype


@given(states(SLACK.memory))
def test_arrays_of_a_state_begin_at_whole_words(state: TaskState) -> None:
    binary = records.state_to_bytes(state)
    assert (binary.index(b"\n") + 1) % WORD == 0
    assert len(binary) % WORD == 0
