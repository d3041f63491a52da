"""The state of a task comes back unchanged from Spark's state store."""

from typing import Any

import numpy as np
import pytest

from spark_impl.runtime.arrays import Records
from spark_impl.slack.query import SLACK
from spark_impl.watermark.query import UPSTREAM, WATERMARK
from spark_impl.windows.records import (
    IDENTITY,
    PANE,
    Clock,
    TaskState,
    state_from_bytes,
    state_to_bytes,
)

KEYS = ("", "a\nb", "é", '"')
MEMORIES = {"slack": SLACK.memory, "watermark": WATERMARK.memory, "upstream": UPSTREAM.memory}


def filled(dtype: np.dtype[Any], size: int) -> Records:
    """Return records without two equal numbers."""
    numbers = np.arange(1, size * dtype.itemsize // 8 + 1)
    return numbers.view(dtype) if dtype.names else numbers.astype(dtype)


@pytest.mark.parametrize(
    "empty",
    [SLACK.memory, WATERMARK.memory, UPSTREAM.memory],
    ids=["slack", "watermark", "upstream"],
)
@pytest.mark.parametrize("size", [0, 3])
def test_state_comes_back(empty: Any, size: int) -> None:
    parts = [
        filled(each.dtype, size + place)
        if isinstance(each, np.ndarray)
        else each + place + size / 4
        for place, each in enumerate(empty)
    ]
    memory = empty._make(parts)
    clock = Clock(1 << 61, np.int64(-5), 7)  # type: ignore[arg-type]  # a value of another type is tried
    state = TaskState(memory, clock, KEYS[: size + 1], filled(PANE, size), filled(IDENTITY, size))
    back = state_from_bytes(empty, state_to_bytes(state))
    assert (back.clock, back.keys) == (state.clock, state.keys)
    for got, want in zip((*back.memory, *back[3:]), (*memory, *state[3:]), strict=True):
        assert np.array_equal(got, want)
        assert getattr(got, "dtype", type(got)) == getattr(want, "dtype", type(want))


def test_numbers_that_text_writes_badly() -> None:
    memory = SLACK.memory._replace(alpha=0.1 + 0.2, s1=float("inf"), s2=5e-324)
    assert (
        state_from_bytes(SLACK.memory, state_to_bytes(TaskState(memory))).memory[:6] == memory[:6]
    )
