"""One sender: where its tuples go (docs/grouping.md, 3).

Which instance has the least load depends on the tuple before, so this is a loop over tuples and
nothing else is: keys are numbers, candidates are looked up by them, and what is looked up lies in
plain lists.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from model.vocabulary import GroupingConfig
from spark_impl.grouping import hashes
from spark_impl.grouping.candidates import Sets, candidates
from spark_impl.grouping.summaries import EMPTY, Summary, capacity, exact, merged
from spark_impl.grouping.table import Table

RESET = ("tag", "tag-literal")
"""Policies whose loads start every window anew."""
VIRTUAL = 10
"""``cg``: virtual workers an instance."""
_TRIES = 64
_WEIGHTS = {0: 4, 1: 3, 2: 2, 3: 1}
"""``nag``: weight of an instance by its tier."""

Instances = npt.NDArray[np.int64]


class SenderState(NamedTuple):
    """What a sender keeps from one micro-batch to the next: plain values."""

    loads: tuple[int, ...] = ()
    routed: int = 0
    virtual: tuple[int, ...] = ()
    """``cg``: loads of virtual workers."""
    sent: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """``dag``: where heavy keys have been in this window."""
    summary: Summary = EMPTY
    buckets: tuple[int, ...] = ()
    """``dkg``: tuples of every bucket, until there is a map."""


def begun(config: GroupingConfig, state: SenderState) -> SenderState:
    """The state at the beginning of a window."""
    loads = (0,) * config.instances
    if state.loads and config.policy not in RESET:
        loads = state.loads
    virtual = state.virtual or (0,) * (VIRTUAL * config.instances)
    return SenderState(loads, state.routed, virtual)


def route(
    config: GroupingConfig, table: Table, sender: int, state: SenderState, keys: pa.StringArray
) -> tuple[Instances, SenderState]:
    """The instance of each tuple of a micro-batch, by its key, and the state afterwards."""
    encoded = keys.dictionary_encode()
    found, state = choose(config, table, sender, state, encoded)
    summary = merged(state.summary, exact(keys), capacity(config.eps_share))
    state = state._replace(summary=summary)
    if config.policy == "dkg" and table.buckets is None:
        state = state._replace(buckets=_bucketed(config, state, encoded))
    return found, state


def choose(
    config: GroupingConfig, table: Table, sender: int, state: SenderState, keys: pa.DictionaryArray
) -> tuple[Instances, SenderState]:
    """The instance of each tuple, and the state afterwards; nothing is learned."""
    own = _OWN.get(config.policy, _least)
    codes = keys.indices.to_numpy()
    found, state = own(config, table, sender, state, keys.dictionary.to_pylist(), codes)
    return found, state._replace(routed=state.routed + len(codes))


def costs(config: GroupingConfig, times: tuple[int, ...]) -> list[int]:
    """What a tuple adds to the load of each instance."""
    if config.policy in RESET:
        return list(times)
    if config.policy.startswith("nag"):
        weights = [12 // _WEIGHTS[tier] for tier in config.tiers or (0,) * config.instances]
        if config.policy == "nag-static":
            return weights
        return [time * weight for time, weight in zip(times, weights, strict=True)]
    return [1] * config.instances


Own = Callable[
    [GroupingConfig, Table, int, SenderState, list[str], npt.NDArray[np.int32]],
    tuple[Instances, SenderState],
]


def _least(
    config: GroupingConfig,
    table: Table,
    _sender: int,
    state: SenderState,
    distinct: list[str],
    codes: npt.NDArray[np.int32],
) -> tuple[Instances, SenderState]:
    sets = candidates(config, table, distinct)
    loads = list(state.loads)
    cost = costs(config, table.times)
    if max(map(len, sets), default=0) == 1:
        found = np.array([only for (only,) in sets], np.int64)[codes]
        counted = np.bincount(found, minlength=config.instances).tolist()
        after = [load + n * c for load, n, c in zip(loads, counted, cost, strict=True)]
        return found, state._replace(loads=tuple(after))
    found = np.array(_choose(sets, codes.tolist(), loads, cost), np.int64)
    return found, state._replace(loads=tuple(loads))


def _choose(sets: Sets, codes: list[int], loads: list[int], cost: list[int]) -> list[int]:
    """The candidate with the least load, the earlier one of equals; changes the loads."""
    one = [each[0] if len(each) <= 2 else -1 for each in sets]
    two = [each[-1] for each in sets]
    load = loads.__getitem__
    found = []
    for code in codes:
        place = one[code]
        if place < 0:
            place = min(sets[code], key=load)
        else:
            other = two[code]
            if loads[other] < loads[place]:
                place = other
        loads[place] += cost[place]
        found.append(place)
    return found


def _in_turns(
    config: GroupingConfig,
    _table: Table,
    sender: int,
    state: SenderState,
    _distinct: list[str],
    codes: npt.NDArray[np.int32],
) -> tuple[Instances, SenderState]:
    return (sender + state.routed + np.arange(len(codes))) % config.instances, state


def _by_score(
    config: GroupingConfig,
    table: Table,
    _sender: int,
    state: SenderState,
    distinct: list[str],
    codes: npt.NDArray[np.int32],
) -> tuple[Instances, SenderState]:
    """``dag``: heavy keys go where they have been, unless there is more to do than elsewhere."""
    sets = candidates(config, table, distinct)
    sent = {key: set(places) for key, places in state.sent}
    been = [sent.setdefault(key, set()) if key in table.heavy else None for key in distinct]
    loads = list(state.loads)
    total = sum(loads)
    found = []
    for code in codes.tolist():
        there = been[code]
        place = sets[code][0]
        if there is not None:
            place = _best(config, sets[code], loads, total, there)
            there.add(place)
        loads[place] += 1
        total += 1
        found.append(place)
    kept = tuple((key, tuple(sorted(places))) for key, places in sorted(sent.items()))
    return np.array(found, np.int64), state._replace(loads=tuple(loads), sent=kept)


def _best(
    config: GroupingConfig, places: tuple[int, ...], loads: list[int], total: int, there: set[int]
) -> int:
    n, alpha = config.instances, config.alpha
    scores = [
        alpha * (place in there) - (1 - alpha) * ((loads[place] * n - total) / (total or 1))
        for place in places
    ]
    return places[scores.index(max(scores))]


def _by_virtual_workers(
    config: GroupingConfig,
    table: Table,
    _sender: int,
    state: SenderState,
    distinct: list[str],
    codes: npt.NDArray[np.int32],
) -> tuple[Instances, SenderState]:
    """``cg``: the first virtual worker of the key that is not too far above the mean."""
    base = hashes.bases(distinct, config.hash_seed)
    virtual = list(state.virtual)
    number = len(virtual)
    tries = [hashes.modulo(base, n + 1, number).tolist() for n in range(_TRIES)]
    owners = _owners(table, number)
    total = sum(virtual)
    found = []
    for code in codes.tolist():
        limit = 5 * (total + 1)
        for each in tries:
            worker = each[code]
            if 4 * virtual[worker] * number < limit:
                break
        else:
            worker = virtual.index(min(virtual))
        virtual[worker] += 1
        total += 1
        found.append(owners[worker])
    return np.array(found, np.int64), state._replace(virtual=tuple(virtual))


def _owners(table: Table, number: int) -> list[int]:
    """The instance of every virtual worker: in blocks, by speed."""
    quotas = [number * (1 / time) / table.speed for time in table.times]
    blocks = [int(quota) for quota in quotas]
    order = sorted(range(len(blocks)), key=lambda place: (blocks[place] - quotas[place], place))
    for place in order[: number - sum(blocks)]:
        blocks[place] += 1
    return [place for place, block in enumerate(blocks) for _ in range(block)]


def _bucketed(
    config: GroupingConfig, state: SenderState, keys: pa.DictionaryArray
) -> tuple[int, ...]:
    size = 2 * config.instances
    base = hashes.bases(keys.dictionary.to_pylist(), config.hash_seed)
    bucket = hashes.modulo(base, 3, size)[keys.indices.to_numpy()]
    counted = np.bincount(bucket, minlength=size)
    return tuple((counted + np.array(state.buckets or (0,) * size, np.int64)).tolist())


_OWN: dict[str, Own] = {
    "round-robin": _in_turns,
    "dag": _by_score,
    "cg": _by_virtual_workers,
}
