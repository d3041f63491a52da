"""Hashes of keys, and the instances that they point at.

Source: docs/grouping.md, section 2. SplitMix64's last steps are those of Steele, Lea, Flood, "Fast
Splittable Pseudorandom Number Generators"; weighted rendezvous hashing is that of Schindelhauer and
Schomaker, "Weighted Distributed Hash Tables".

Rules of this file:

* Text is hashed once, by ``text_hash``; everything else is arithmetic on what came out of it, in
  unsigned 64 bits.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import log
from operator import mul

from model.vocabulary import stable_hash

_BITS_64 = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    """SplitMix64's finalizer, a permutation of the unsigned 64-bit integers."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _BITS_64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _BITS_64
    return z ^ (z >> 31)


@lru_cache(maxsize=1 << 14)
def text_hash(key: str, seed: int) -> int:
    """XXH64 of a key, unsigned."""
    return stable_hash(key, seed) & _BITS_64


def hashed(text: int, j: int) -> int:
    """``h(k, j)`` for a key whose text hash is given; j = 1, 2, ..."""
    return mix((text + j * _GOLDEN) & _BITS_64)


def unit(text: int, j: int) -> float:
    """``u(k, j)``, in (0, 1]."""
    return ((hashed(text, j) >> 11) + 0.5) / (1 << 53)


def first(text: int, n: int) -> int:
    """The instance that every key has."""
    return hashed(text, 1) % n


def second(text: int, n: int) -> int:
    """Another one; with a single instance the same."""
    return (first(text, n) + 1 + hashed(text, 2) % (n - 1)) % n if n > 1 else 0


def rendezvous(text: int, times_us: Sequence[int]) -> list[int]:
    """All instances in the key's weighted order; i is the first one with probability s_i/S."""
    distance = list(map(mul, _exponentials(text, len(times_us)), times_us))
    return sorted(range(len(distance)), key=distance.__getitem__)


@lru_cache(maxsize=1 << 14)
def _exponentials(text: int, n: int) -> tuple[float, ...]:
    """``-ln(u(k, i+1))`` of every instance; keys come again, and times change."""
    return tuple([-log(unit(text, i + 1)) for i in range(n)])
