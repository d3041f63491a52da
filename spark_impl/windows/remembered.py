"""What a task remembers between two micro-batches, as the bytes that Spark's state store holds.

    {"clock": [...], "keys": [...], "numbers": [...], "sizes": [...]}\\n  then the bytes of arrays

One binary instead of a column for each part: whatever a value in the store consists of, Spark finds
out and writes code for anew in every micro-batch and on every partition.
"""

import json
from typing import Any

import numpy as np

from spark_impl.runtime.arrays import Column
from spark_impl.windows.records import IDENTITY, PANE, Clock, TaskState

_WORD = 8
"""Arrays begin at a multiple of so many bytes."""


def to_bytes(state: TaskState) -> bytes:
    """A state as bytes."""
    arrays = [state.panes, state.identities, *filter(_is_array, state.memory)]
    head = {
        "clock": state.clock,
        "keys": state.keys,
        "numbers": [each for each in state.memory if not _is_array(each)],
        "sizes": [len(each) for each in arrays],
    }
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":"), default=_plain).encode()
    filled = text + b" " * (-(len(text) + 1) % _WORD)
    return b"".join([filled, b"\n", *(each.tobytes() for each in arrays)])


def from_bytes(empty: Any, data: bytes) -> TaskState:
    """Read what :func:`to_bytes` wrote; ``empty`` is a memory with the dtypes of all arrays."""
    offset = data.index(b"\n") + 1
    head = json.loads(data[:offset])
    sizes, numbers = iter(head["sizes"]), iter(head["numbers"])

    def next_array(dtype: np.dtype[Any]) -> Column:
        nonlocal offset
        size, start = next(sizes), offset
        offset += size * dtype.itemsize
        return np.frombuffer(data, dtype, size, start)

    panes, identities = next_array(PANE), next_array(IDENTITY)
    memory = [next_array(each.dtype) if _is_array(each) else next(numbers) for each in empty]
    return TaskState(
        empty._make(memory), Clock(*head["clock"]), tuple(head["keys"]), panes, identities
    )


def _is_array(part: Any) -> bool:
    return isinstance(part, np.ndarray)


def _plain(number: np.generic) -> Any:
    """A number of numpy's as one of Python's."""
    return number.item()
