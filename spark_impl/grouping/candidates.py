"""Where the keys of a window may go (docs/grouping.md, 3): for many keys at once.

Candidates are instances in the order in which a tie is decided: the smaller latency first, then
the smaller index.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from math import ceil

import numpy as np

from model.vocabulary import GroupingConfig
from spark_impl.grouping import hashes
from spark_impl.grouping.hashes import Places, Unsigned
from spark_impl.grouping.table import Table

Sets = list[tuple[int, ...]]
"""Candidates of each key."""

_SLACK = 0.0001
"""By which the feasibility inequality of D-Choices may be missed."""


def preference(config: GroupingConfig) -> list[int]:
    """For every instance its place in the order of ties."""
    latency = config.latency_us or (0,) * config.instances
    order = sorted(range(config.instances), key=lambda place: (latency[place], place))
    ranks = [0] * config.instances
    for rank, place in enumerate(order):
        ranks[place] = rank
    return ranks


def candidates(config: GroupingConfig, table: Table, keys: Sequence[str]) -> Sets:
    """Candidates of each key under a policy that compares loads."""
    base = hashes.bases(keys, config.hash_seed)
    light = _LIGHT.get(config.policy, _pairs)(config, table, base)
    ranks = preference(config)
    sets = [tuple(sorted(dict.fromkeys(row), key=ranks.__getitem__)) for row in light.tolist()]
    find = _HEAVY.get(config.policy)
    special = table.placed or {} if config.policy == "dkg" else table.heavy
    if find is not None and special:
        rows = [row for row, key in enumerate(keys) if key in special]
        for row in rows:
            found = find(config, table, base[row : row + 1], keys[row])
            sets[row] = tuple(sorted(set(found), key=ranks.__getitem__))
    return sets


# ------------------------------------------------------------------------------------ light keys


def _pairs(config: GroupingConfig, _table: Table, base: Unsigned) -> Places:
    return hashes.pairs(base, config.instances)


def _first(config: GroupingConfig, _table: Table, base: Unsigned) -> Places:
    return hashes.modulo(base, 1, config.instances)[:, np.newaxis]


def _everywhere(config: GroupingConfig, _table: Table, base: Unsigned) -> Places:
    return np.tile(np.arange(config.instances), (len(base), 1))


def _quickest(config: GroupingConfig, table: Table, base: Unsigned) -> Places:
    return hashes.leading(base, table.times, min(2, config.instances))


def _mapped(config: GroupingConfig, table: Table, base: Unsigned) -> Places:
    if table.buckets is None:
        return _first(config, table, base)
    bucket = hashes.modulo(base, 3, 2 * config.instances)
    return np.array(table.buckets, np.int64)[bucket][:, np.newaxis]


_LIGHT: Mapping[str, Callable[[GroupingConfig, Table, Unsigned], Places]] = {
    "key": _first,
    "round-robin": _everywhere,
    "shuffle": _everywhere,
    "cg": _everywhere,
    "nag-static": _everywhere,
    "nag-dynamic": _everywhere,
    "dkg": _mapped,
    "dag": _first,
    "tag": _quickest,
}

# ------------------------------------------------------------------------------------ heavy keys


def _some(config: GroupingConfig, table: Table, base: Unsigned, _key: str) -> list[int]:
    pair = hashes.pairs(base, config.instances)[0].tolist()
    more = [
        int(hashes.modulo(base, number, config.instances)[0])
        for number in range(3, table.choices + 1)
    ]
    return [*pair, *more]


def _all(config: GroupingConfig, _table: Table, _base: Unsigned, _key: str) -> list[int]:
    return list(range(config.instances))


def _drawn(config: GroupingConfig, table: Table, base: Unsigned, key: str) -> list[int]:
    speeds = [1 / time for time in table.times]
    sums = list(accumulate(speeds))
    size = config.draw_tuples or ceil(config.window_tuples * config.theta_share)
    draws = -(-table.heavy[key].counted // size)
    found = []
    for number in range(1, draws + 1):
        aim = float(hashes.unit(base, number)[0]) * sums[-1]
        found.append(next((place for place, total in enumerate(sums) if total > aim), -1))
    return [place % config.instances for place in found]


def _enough(config: GroupingConfig, table: Table, base: Unsigned, key: str) -> list[int]:
    order: list[int] = hashes.leading(base, table.times, config.instances)[0].tolist()
    share = table.heavy[key].counted / table.tuples
    wanted = table.speed * share / config.gamma
    reached = accumulate(1 / table.times[place] for place in order)
    for length, speed in enumerate(reached, 1):
        if length >= 2 and speed >= wanted:
            return order[:length]
    return order


def _placed(_config: GroupingConfig, table: Table, _base: Unsigned, key: str) -> list[int]:
    return [(table.placed or {})[key]]


_HEAVY: Mapping[str, Callable[[GroupingConfig, Table, Unsigned, str], list[int]]] = {
    "d-choices": _some,
    "w-choices": _all,
    "dkg": _placed,
    "dag": _all,
    "tag-literal": _drawn,
    "tag": _enough,
}


def choices(instances: int, shares: Sequence[float]) -> int:
    """D-Choices' d for heavy keys with these shares, the largest first."""
    for number in range(2, instances):
        if _is_feasible(instances, shares, number):
            return number
    return instances


def _is_feasible(n: int, shares: Sequence[float], number: int) -> bool:
    sums = list(accumulate(shares))
    for length, reached in enumerate(sums, 1):
        part = (n - n * ((n - 1) / n) ** (length * number)) / n
        light = part**2 * (1 - min(1.0, sums[-1]))
        load = reached + part**number * (sums[-1] - reached) + light
        if load > part + _SLACK:
            return False
    return True
