"""The hashes of docs/architecture.md and docs/grouping.md by definition, in plain Python.

Rules of this file: only the standard library is imported, and nothing of ours.
"""

from functools import lru_cache

_PRIMES = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)
MASK = (1 << 64) - 1


def _rotated(number: int, by: int) -> int:
    return ((number << by) | (number >> (64 - by))) & MASK


def _round(lane: int, data: int) -> int:
    return _rotated((lane + data * _PRIMES[1]) & MASK, 31) * _PRIMES[0] & MASK


def xxh64(data: bytes, seed: int) -> int:
    """Return XXH64 as its specification defines it."""
    one, two, three, four, five = _PRIMES
    at = 0
    if len(data) >= 32:
        lanes = [(seed + more) & MASK for more in (one + two, two, 0, -one)]
        while at + 32 <= len(data):
            for lane in range(4):
                piece = int.from_bytes(data[at : at + 8], "little")
                lanes[lane] = _round(lanes[lane], piece)
                at += 8
        turned = zip(lanes, (1, 7, 12, 18), strict=True)
        digest = sum(_rotated(lane, by) for lane, by in turned) & MASK
        for lane in lanes:
            digest = ((digest ^ _round(0, lane)) * one + four) & MASK
    else:
        digest = (seed + five) & MASK
    digest = (digest + len(data)) & MASK
    while at + 8 <= len(data):
        digest ^= _round(0, int.from_bytes(data[at : at + 8], "little"))
        digest = (_rotated(digest, 27) * one + four) & MASK
        at += 8
    if at + 4 <= len(data):
        digest ^= int.from_bytes(data[at : at + 4], "little") * one & MASK
        digest = (_rotated(digest, 23) * two + three) & MASK
        at += 4
    for byte in data[at:]:
        digest = _rotated(digest ^ (byte * five & MASK), 11) * one & MASK
    digest = (digest ^ (digest >> 33)) * two & MASK
    digest = (digest ^ (digest >> 29)) * three & MASK
    return digest ^ (digest >> 32)


GOLDEN = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    """Return the last steps of SplitMix64 for a state."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


@lru_cache(1 << 14)
def signed_hash(text: str, seed: int = 42) -> int:
    """Return the hash of a text as Spark's ``xxhash64`` gives it, a signed number of 64 bits."""
    found = xxh64(text.encode(), seed)
    return found - (1 << 64) if found >> 63 else found
