"""One hash for Python and Spark."""

import xxhash

SEED = 42
"""Seed of Spark's ``xxhash64`` function, which is not configurable."""

_SIGN_BIT = 1 << 63


def stable_hash(text: str, seed: int = SEED) -> int:
    """Return the XXH64 of the UTF-8 bytes of ``text`` as a signed 64-bit integer.

    With the default seed Spark's ``xxhash64(column)`` gives the same for a string column.
    """
    unsigned = int(xxhash.xxh64_intdigest(text.encode("utf-8"), seed=seed))
    return unsigned - (1 << 64) if unsigned & _SIGN_BIT else unsigned


def task_of(key: str, tasks: int) -> int:
    """Return the task, 0..tasks-1, that owns ``key``: the non-negative remainder of its hash.

    In Spark: ``pmod(xxhash64(key), tasks)``.
    """
    return stable_hash(key) % tasks
