"""The instances that the keys of a window may go to (docs/grouping.md, 3), for many keys at once.

Candidates are instances in the order that decides ties: the smaller latency first, then the smaller
index.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from math import ceil
from typing import NamedTuple

import numpy as np

from model.vocabulary import GroupingConfig
from model.vocabulary.settings import look_up
from spark_impl.grouping.keys import (
    Table,
    base_hashes,
    candidate_pairs,
    hash_modulo,
    hash_unit,
    rendezvous_order,
)
from spark_impl.runtime.arrays import Ints, Unsigned

EVERYWHERE = ("shuffle", "nag-static", "nag-dynamic")
"""Policies that let every key go to all instances."""


class Candidates(NamedTuple):
    """The instances that each of some keys may go to."""

    light: Ints
    """A row of instances for each key, unless ``heavy`` has the key."""
    heavy: dict[int, tuple[int, ...]]
    """Instances of keys with sets of their own, by the row of the key."""

    def of(self, row: int) -> tuple[int, ...]:
        """Return the instances of one key."""
        return self.heavy.get(row) or tuple(self.light[row].tolist())


def preference(config: GroupingConfig) -> Ints:
    """Return the instances in the order that decides ties."""
    latency = config.latency_us or (0,) * config.instances
    order = sorted(range(config.instances), key=lambda place: (latency[place], place))
    return np.array(order, np.int64)


def candidates(config: GroupingConfig, table: Table, keys: Sequence[str]) -> Candidates:
    """Return the candidates of each key."""
    order = preference(config)
    if config.policy in EVERYWHERE:
        return Candidates(np.broadcast_to(order, (len(keys), len(order))), {})
    rank = np.argsort(order)
    base = base_hashes(keys, config.hash_seed)
    light = look_up("policy", config.policy, _LIGHT)(config, table, base)
    find = _HEAVY.get(config.policy)
    special = table.placed or {} if config.policy == "dkg" else table.heavy
    heavy = {}
    for row, key in enumerate(keys):
        if find is not None and key in special:
            found = np.unique(rank[find(config, table, base[row : row + 1], key)])
            heavy[row] = tuple(order[found].tolist())
    return Candidates(order[np.sort(rank[light], axis=1)], heavy)


# ------------------------------------------------------------------------------------ light keys


def _first(config: GroupingConfig, _table: Table, base: Unsigned) -> Ints:
    return hash_modulo(base, 1, config.instances)[:, np.newaxis]


def _mapped(config: GroupingConfig, table: Table, base: Unsigned) -> Ints:
    if table.buckets is None:
        return _first(config, table, base)
    bucket = hash_modulo(base, 3, 2 * config.instances)
    return np.array(table.buckets, np.int64)[bucket][:, np.newaxis]


_LIGHT: Mapping[str, Callable[[GroupingConfig, Table, Unsigned], Ints]] = {
    **dict.fromkeys(
        ("pkg", "w-choices", "tag-literal"),
        lambda config, _, base: candidate_pairs(base, config.instances),
    ),
    "key": _first,
    "dkg": _mapped,
    "dag": _first,
    "tag": lambda config, table, base: rendezvous_order(
        base, table.times, min(2, config.instances)
    ),
}

# ------------------------------------------------------------------------------------ heavy keys


def _drawn(config: GroupingConfig, table: Table, base: Unsigned, key: str) -> list[int]:
    speeds = [1 / time for time in table.times]
    sums = list(accumulate(speeds))
    size = config.draw_tuples or ceil(config.window_tuples * config.theta_share)
    draws = -(-table.heavy[key].counted // size)
    found = []
    for number in range(1, draws + 1):
        aim = float(hash_unit(base, number)[0]) * sums[-1]
        found.append(next((place for place, total in enumerate(sums) if total > aim), -1))
    return [place % config.instances for place in found]


def _enough(config: GroupingConfig, table: Table, base: Unsigned, key: str) -> list[int]:
    order: list[int] = rendezvous_order(base, table.times, config.instances)[0].tolist()
    share = table.heavy[key].counted / table.tuples
    wanted = table.speed * share / config.gamma
    reached = accumulate(1 / table.times[place] for place in order)
    for length, speed in enumerate(reached, 1):
        if length >= 2 and speed >= wanted:
            return order[:length]
    return order


_HEAVY: Mapping[str, Callable[[GroupingConfig, Table, Unsigned, str], list[int]]] = {
    **dict.fromkeys(("w-choices", "dag"), lambda config, *_: list(range(config.instances))),
    "dkg": lambda _config, table, _base, key: [(table.placed or {})[key]],
    "tag-literal": _drawn,
    "tag": _enough,
}


TELLS_HEAVY_KEYS = tuple(_HEAVY)
"""Policies that need a table."""
