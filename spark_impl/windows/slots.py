"""Numbers that Spark's hash spreads evenly, one for every task.

Spark sends rows to partitions by a hash of the grouping key. Of four tasks numbered 0 to 3 three
land on the same partition of two, and one core does most of the work. So a task travels under
another number, its *slot*, which Spark sends to partition ``task % partitions`` for every number of
partitions that divides 50,400: 1 to 10, 12, 14, 15, 16, 20, 24, 25, 32, 40, 48, 50, 100, Spark's
own 200, and more. (Not 11 or 64, where chance decides.) With grouping columns the hash depends on
their values, too, and slots do neither good nor harm.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spark_impl.runtime.arrays import Ints

SLOT = "task_slot"
"""Name of the column in which a task travels."""
_Words: TypeAlias = NDArray[np.uint32]
_SEED = 42
_RESIDUES = 50_400
"""A multiple of every number of partitions that is balanced."""
_BALANCED = 2_000
"""Of more tasks every partition gets about its share by chance, and the search would take long."""
_AT_ONCE = 1 << 14
_MOST = (1 << 31) - 1


def slots(tasks: int) -> tuple[int, ...]:
    """A number for every task; :func:`task_of_slot` finds the task again."""
    if tasks > _BALANCED:
        return tuple(range(tasks))
    return tuple(_slot(task, tasks) for task in range(tasks))


def task_of_slot(slot: int, tasks: int) -> int:
    """The task that travels under a number."""
    return slot % tasks


def _slot(task: int, tasks: int) -> int:
    start = task
    while start + tasks * _AT_ONCE <= _MOST:
        candidates = start + tasks * np.arange(_AT_ONCE)
        found = np.flatnonzero(_hash(candidates) % _RESIDUES == task % _RESIDUES)
        if len(found):
            return int(candidates[found[0]])
        start += tasks * _AT_ONCE
    return task  # none is left below 2**31; at most one task in a thousand million


def _hash(numbers: Ints) -> Ints:
    """Spark's hash of a 32-bit integer: Murmur3 (x86, 32 bits), as a signed number."""
    k = _multiplied(numbers.astype(np.uint32), 0xCC9E2D51)
    k = _multiplied(_rotated(k, 15), 0x1B873593)
    h = np.uint32(_SEED) ^ k
    h = _multiplied(_rotated(h, 13), 5) + np.uint32(0xE6546B64)
    h ^= np.uint32(4)  # bytes hashed
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = _multiplied(h ^ (h >> np.uint32(shift)), factor)
    return (h ^ (h >> np.uint32(16))).view(np.int32).astype(np.int64)


def _rotated(numbers: _Words, by: int) -> _Words:
    return (numbers << np.uint32(by)) | (numbers >> np.uint32(32 - by))


def _multiplied(numbers: _Words, by: int) -> _Words:
    return numbers * np.uint32(by)
