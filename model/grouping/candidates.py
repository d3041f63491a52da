"""Hashes of keys, and the instances that each policy allows for a key.

Source: docs/grouping.md, sections 2 and 3, which name the papers. SplitMix64's last steps are those
of Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators"; weighted rendezvous hashing
is that of Schindelhauer and Schomaker, "Weighted Distributed Hash Tables".

Rules of this file:

* Text is hashed once, by ``text_hash``; everything else is arithmetic on the result, in unsigned
  64 bits.
* A policy has one function, which maps the table and a key to a set; ``rules`` chooses from it. A
  policy that names no set for a key has all instances.
* Sums are float64, added in the order in which the page names their terms.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from math import ceil, log
from operator import mul

from model.grouping.state import Candidates, Placement, Table
from model.vocabulary import GroupingConfig, stable_hash

_BITS_64 = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    """Return SplitMix64's finalizer of z, a permutation of the unsigned 64-bit integers."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _BITS_64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _BITS_64
    return z ^ (z >> 31)


@lru_cache(maxsize=1 << 14)
def text_hash(key: str, seed: int) -> int:
    """Return the XXH64 of a key's UTF-8 bytes, unsigned."""
    return stable_hash(key, seed) & _BITS_64


def numbered_hash(text: int, j: int) -> int:
    """Return ``h(k, j)`` of the key whose text hash is ``text``; j = 1, 2, ..."""
    return mix((text + j * _GOLDEN) & _BITS_64)


def unit_hash(text: int, j: int) -> float:
    """Return ``u(k, j)``, in (0, 1]."""
    return ((numbered_hash(text, j) >> 11) + 0.5) / (1 << 53)


def first_instance(text: int, n: int) -> int:
    """Return the first instance of a key."""
    return numbered_hash(text, 1) % n


def second_instance(text: int, n: int) -> int:
    """Return an instance other than the first; 0 if there is only one instance."""
    return (first_instance(text, n) + 1 + numbered_hash(text, 2) % (n - 1)) % n if n > 1 else 0


def rendezvous(text: int, times_us: Sequence[int]) -> list[int]:
    """Return a key's weighted rendezvous order; i is the first with probability s_i/S."""
    distance = list(map(mul, _exponentials(text, len(times_us)), times_us))
    return sorted(range(len(distance)), key=distance.__getitem__)


@lru_cache(maxsize=1 << 14)
def _exponentials(text: int, n: int) -> tuple[float, ...]:
    """Return ``-ln(u(k, i+1))`` of every instance; cached, because keys recur."""
    return tuple([-log(unit_hash(text, i + 1)) for i in range(n)])


def _text(table: Table, key: str) -> int:
    return text_hash(key, table.config.hash_seed)


def all_instances(table: Table, _key: str) -> set[int]:
    """Return all instances."""
    return set(range(table.n))


def one_instance(table: Table, key: str) -> set[int]:
    """Return the first instance (``key``)."""
    return {first_instance(_text(table, key), table.n)}


def two_instances(table: Table, key: str) -> set[int]:
    """Return the first and the second instance (``pkg``)."""
    text = _text(table, key)
    return {first_instance(text, table.n), second_instance(text, table.n)}


def all_if_heavy(table: Table, key: str) -> set[int]:
    """Return all instances for a heavy key, else its two (``w-choices``)."""
    return all_instances(table, key) if key in table.heavy else two_instances(table, key)


def one_if_light(table: Table, key: str) -> set[int]:
    """Return all instances for a heavy key, else the first (``dag``)."""
    return all_instances(table, key) if key in table.heavy else one_instance(table, key)


# -------------------------------------------------------------------------------------------- dkg


def mapped_instance(table: Table, key: str) -> set[int]:
    """Return the mapped instance; in window 0, which has no map yet, the first (``dkg``)."""
    if table.placement is None:
        return one_instance(table, key)
    at = table.placement.keys.get(key)
    return {table.placement.buckets[bucket_of(table.config, key)] if at is None else at}


def bucket_of(config: GroupingConfig, key: str) -> int:
    """Return the bucket of a key, one of 2n."""
    text = text_hash(key, config.hash_seed)
    return numbered_hash(text, 3) % (2 * config.instances)


def place(config: GroupingConfig, heavy: Mapping[str, int], tuples: Sequence[int]) -> Placement:
    """Place heavy keys and buckets, the heaviest first, on the instance with the least weight.

    ``heavy`` has the count of each heavy key, ``tuples`` the number of tuples of each bucket, heavy
    keys included. Source: Graham, "Bounds on Multiprocessing Timing Anomalies".
    """
    light = list(tuples)
    for key, count in heavy.items():
        light[bucket_of(config, key)] -= count
    order: list[tuple[int, int, str, int]] = [(-count, 0, key, 0) for key, count in heavy.items()]
    order += [(-max(0, count), 1, "", number) for number, count in enumerate(light)]
    weights = [0] * config.instances
    keys, buckets = {}, [0] * len(light)
    for weight, is_bucket, key, number in sorted(order):
        at = weights.index(min(weights))
        weights[at] -= weight
        if is_bucket:
            buckets[number] = at
        else:
            keys[key] = at
    return Placement(keys, tuple(buckets))


# -------------------------------------------------------------------------------------------- tag


def drawn_by_speed(table: Table, key: str) -> set[int]:
    """Return draws by speed, one for q tuples of a heavy key; else its two (``tag-literal``)."""
    if key not in table.heavy:
        return two_instances(table, key)
    text = _text(table, key)
    sums = list(accumulate(table.speeds))
    draws = -(-table.heavy[key].counted // draw_tuples(table.config))
    return {_reached(sums, unit_hash(text, j) * sums[-1]) for j in range(1, draws + 1)}


def draw_tuples(config: GroupingConfig) -> int:
    """Return q, by default the tuples in a window of a key whose share is theta."""
    if config.draw_tuples is not None:
        return config.draw_tuples
    return ceil(config.window_tuples * config.theta_share)


def _reached(sums: Sequence[float], mark: float) -> int:
    return next((i for i, each in enumerate(sums) if each > mark), len(sums) - 1)


def enough_instances(table: Table, key: str) -> set[int]:
    """Return the first two or more of the rendezvous order, as the share needs (``tag``)."""
    order = rendezvous(_text(table, key), table.times_us)
    if key not in table.heavy:
        return set(order[:2])
    speeds = table.speeds
    needed = sum(speeds) * table.share(key) / table.config.gamma
    for length, speed in enumerate(accumulate(speeds[i] for i in order), 1):
        if length >= 2 and speed >= needed:
            return set(order[:length])
    return set(order)


CANDIDATES: Mapping[str, Candidates] = {
    "key": one_instance,
    "shuffle": all_instances,
    "pkg": two_instances,
    "w-choices": all_if_heavy,
    "dkg": mapped_instance,
    "nag-static": all_instances,
    "nag-dynamic": all_instances,
    "dag": one_if_light,
    "tag-literal": drawn_by_speed,
    "tag": enough_instances,
}
