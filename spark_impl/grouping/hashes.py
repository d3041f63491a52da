"""Hashes of keys, and the places that they lead to (docs/grouping.md, 2).

A text is hashed once; everything else is arithmetic on arrays of unsigned 64-bit integers, which
wrap around.
"""

from collections.abc import Sequence

import numpy as np
import xxhash

from spark_impl.runtime.arrays import Floats, Ints, Unsigned

_STEP = 0x9E3779B97F4A7C15
_MODULUS = 1 << 64
_AT_ONCE = 1 << 20
"""Numbers that a table of hashes has at most."""


def bases(keys: Sequence[str], seed: int) -> Unsigned:
    """What all hashes of the keys come from."""
    digest = xxhash.xxh64_intdigest
    return np.array([digest(key.encode("utf-8"), seed) for key in keys], np.uint64)


def hashed(base: Unsigned, number: int) -> Unsigned:
    """``h(k, number)`` for every key."""
    bits = base + np.uint64(number * _STEP % _MODULUS)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def modulo(base: Unsigned, number: int, places: int) -> Ints:
    """``h(k, number) mod places`` for every key."""
    return (hashed(base, number) % np.uint64(places)).astype(np.int64)


def unit(base: Unsigned, number: int) -> Floats:
    """``u(k, number)`` for every key: above 0, at most 1."""
    return ((hashed(base, number) >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def pairs(base: Unsigned, instances: int) -> Ints:
    """``first`` and ``second`` of every key, as two columns; as one for a single instance."""
    first = modulo(base, 1, instances)
    if instances == 1:
        return first[:, np.newaxis]
    second = (first + 1 + modulo(base, 2, instances - 1)) % instances
    return np.stack((first, second), axis=1)


def leading(base: Unsigned, times: Sequence[int], length: int) -> Ints:
    """The first ``length`` instances of every key's weighted rendezvous order, as columns."""
    rows = max(1, _AT_ONCE // len(times))
    parts = [
        _leading(base[start : start + rows], times, length) for start in range(0, len(base), rows)
    ]
    return np.concatenate(parts) if parts else np.empty((0, length), np.int64)


def _leading(base: Unsigned, times: Sequence[int], length: int) -> Ints:
    scores = np.stack(
        [-np.log(unit(base, place + 1)) * time for place, time in enumerate(times)], axis=1
    )
    if 2 * length < len(times):
        # Few of many: as often the least one, which of equals is the one with the least index.
        found = np.empty((len(base), length), np.int64)
        for column in range(length):
            found[:, column] = scores.argmin(axis=1)
            np.put_along_axis(scores, found[:, column : column + 1], np.inf, axis=1)
        return found
    return np.argsort(scores, axis=1, kind="stable")[:, :length]
