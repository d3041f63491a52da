"""The instances that a policy lets a key go to.

Source: docs/grouping.md, section 3; the papers are named there.

Rules of this file:

* One function a policy, from the table and a key to a set; which of the set is taken does not
  stand here. A policy that knows no set of a key has all instances.
* Sums are float64, added in the order in which the page names their terms.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import ceil

from model.grouping import hashes
from model.grouping.table import Candidates, Placement, Table
from model.vocabulary import GroupingConfig

SLACK = 0.0001
"""``d-choices``: by how much an instance may have more than its share."""


def _text(table: Table, key: str) -> int:
    return hashes.text_hash(key, table.config.hash_seed)


def everywhere(table: Table, _key: str) -> set[int]:
    """All instances."""
    return set(range(table.n))


def one(table: Table, key: str) -> set[int]:
    """``key``: the first instance."""
    return {hashes.first(_text(table, key), table.n)}


def two(table: Table, key: str) -> set[int]:
    """``pkg``: the first and the second."""
    text = _text(table, key)
    return {hashes.first(text, table.n), hashes.second(text, table.n)}


def hot_everywhere(table: Table, key: str) -> set[int]:
    """``w-choices``: all for heavy keys, else two."""
    return everywhere(table, key) if key in table.heavy else two(table, key)


def cold_one(table: Table, key: str) -> set[int]:
    """``dag``: all for heavy keys, else the first."""
    return everywhere(table, key) if key in table.heavy else one(table, key)


# -------------------------------------------------------------------------------------- d-choices


def hot_some(table: Table, key: str) -> set[int]:
    """``d-choices``: two, and for heavy keys as many more hashes as all of them need."""
    found = two(table, key)
    if key in table.heavy:
        text = _text(table, key)
        shares = sorted((table.share(heavy) for heavy in table.heavy), reverse=True)
        d = choices(shares, table.n)
        found |= {hashes.hashed(text, j) % table.n for j in range(3, d + 1)}
    return found


def choices(shares: Sequence[float], n: int) -> int:
    """d: the smallest number of choices with which the heavy keys fit, or n.

    Source: Nasir, Morales, Kourtellis, Serafini, "When Two Choices Are not Enough".
    """
    return next((d for d in range(2, n + 1) if _fit(shares, n, d)), n)


def _fit(shares: Sequence[float], n: int, d: int) -> bool:
    together = min(1.0, sum(shares))
    for length in range(1, len(shares) + 1):
        b = n - n * ((n - 1) / n) ** (length * d)
        hot = sum(shares[:length]) + (b / n) ** d * sum(shares[length:])
        if hot + (b / n) ** 2 * (1 - together) > b / n + SLACK:
            return False
    return True


# -------------------------------------------------------------------------------------------- dkg


def mapped(table: Table, key: str) -> set[int]:
    """``dkg``: where the map says; while it is learnt, the first."""
    if table.placement is None:
        return one(table, key)
    at = table.placement.keys.get(key)
    return {table.placement.buckets[bucket_of(table.config, key)] if at is None else at}


def bucket_of(config: GroupingConfig, key: str) -> int:
    """One of 2n."""
    text = hashes.text_hash(key, config.hash_seed)
    return hashes.hashed(text, 3) % (2 * config.instances)


def place(config: GroupingConfig, heavy: Mapping[str, int], tuples: Sequence[int]) -> Placement:
    """Largest first, each on the instance with the least weight so far.

    ``heavy`` has the counts of heavy keys, ``tuples`` how many fell into each bucket. Source:
    Graham, "Bounds on Multiprocessing Timing Anomalies".
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


def drawn(table: Table, key: str) -> set[int]:
    """``tag-literal``: for heavy keys one draw by speed for every q tuples, else two."""
    if key not in table.heavy:
        return two(table, key)
    text = _text(table, key)
    sums = list(accumulate(table.speeds))
    draws = -(-table.heavy[key].counted // draw_tuples(table.config))
    return {_reached(sums, hashes.unit(text, j) * sums[-1]) for j in range(1, draws + 1)}


def draw_tuples(config: GroupingConfig) -> int:
    """q, by default the tuples that a key at theta has in a window."""
    if config.draw_tuples is not None:
        return config.draw_tuples
    return ceil(config.window_tuples * config.theta_share)


def _reached(sums: Sequence[float], mark: float) -> int:
    return next((i for i, each in enumerate(sums) if each > mark), len(sums) - 1)


def enough(table: Table, key: str) -> set[int]:
    """``tag``: as much of the rendezvous order as the key's share needs, two at least."""
    order = hashes.rendezvous(_text(table, key), table.times_us)
    if key not in table.heavy:
        return set(order[:2])
    speeds = table.speeds
    needed = sum(speeds) * table.share(key) / table.config.gamma
    for length, speed in enumerate(accumulate(speeds[i] for i in order), 1):
        if length >= 2 and speed >= needed:
            return set(order[:length])
    return set(order)


CANDIDATES: Mapping[str, Candidates] = {
    "key": one,
    "round-robin": everywhere,
    "shuffle": everywhere,
    "pkg": two,
    "d-choices": hot_some,
    "w-choices": hot_everywhere,
    "dkg": mapped,
    "nag-static": everywhere,
    "nag-dynamic": everywhere,
    "dag": cold_one,
    "cg": everywhere,
    "tag-literal": drawn,
    "tag": enough,
}
