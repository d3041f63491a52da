"""The router of one sender (docs/grouping.md, 3).

The least loaded instance depends on the tuple before, so that routing needs a loop over tuples. The
loop does as little as possible: keys are numbers, which index the candidates in plain lists.
"""

from collections.abc import Callable, Mapping
from heapq import heapify, heapreplace
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from model.vocabulary import GroupingConfig
from model.vocabulary.settings import look_up
from spark_impl.grouping.candidates import EVERYWHERE, Candidates, candidates, preference
from spark_impl.grouping.keys import (
    EMPTY,
    Summary,
    Table,
    base_hashes,
    count_exactly,
    hash_modulo,
    merge,
    summary_capacity,
)
from spark_impl.runtime.arrays import Ints

BY_TIME = ("tag", "tag-literal")
"""Policies whose loads are times; those of ``_BY_NUMBER`` are numbers of tuples."""
_BY_NUMBER = ("key", "shuffle", "pkg", "w-choices", "dkg", "dag")
RESET = ("dag", *BY_TIME)
"""Policies whose loads start every window anew."""
_WEIGHTS = {0: 4, 1: 3, 2: 2, 3: 1}
"""Weight of an instance by its tier, for ``nag``."""


class SenderState(NamedTuple):
    """The state of a sender between micro-batches, as plain values."""

    loads: tuple[int, ...] = ()
    routed: int = 0
    sent: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Instances that heavy keys went to in this window, for ``dag``."""
    summary: Summary = EMPTY
    buckets: tuple[int, ...] = ()
    """Number of tuples of every bucket until there is a map, for ``dkg``."""


def begin_window(config: GroupingConfig, state: SenderState) -> SenderState:
    """Return the state at the beginning of a window."""
    loads = (0,) * config.instances
    if state.loads and config.policy not in RESET:
        loads = state.loads
    return SenderState(loads, state.routed)


def route(
    config: GroupingConfig, table: Table, state: SenderState, keys: pa.StringArray
) -> tuple[Ints, SenderState]:
    """Route the tuples of a micro-batch by key; return their instances and the next state."""
    encoded = keys.dictionary_encode()
    found, state = choose(config, table, state, encoded)
    summary = merge(state.summary, count_exactly(encoded), summary_capacity(config.eps_share))
    state = state._replace(summary=summary)
    if config.policy == "dkg" and table.buckets is None:
        state = state._replace(buckets=_bucketed(config, state, encoded))
    return found, state


def choose(
    config: GroupingConfig, table: Table, state: SenderState, keys: pa.DictionaryArray
) -> tuple[Ints, SenderState]:
    """Route tuples without learning from them; return their instances and the next state."""
    codes = keys.indices.to_numpy()
    job = Job(config, table, state, keys.dictionary.to_pylist(), codes)
    found, state = look_up("policy", config.policy, _WAYS)(job)
    return found, state._replace(routed=state.routed + len(codes))


def costs(config: GroupingConfig, table: Table) -> list[int]:
    """Return what a tuple adds to the load of each instance."""
    n = config.instances
    if config.policy in BY_TIME:
        return list(table.times)
    if config.policy in _BY_NUMBER:
        return [1] * n
    given = config.tiers or (0,) * n
    known = {"nag-static": given, "nag-dynamic": table.tiers or given}
    return [12 // _WEIGHTS[tier] for tier in look_up("policy", config.policy, known)]


class Job(NamedTuple):
    """Tuples of a sender, and everything that decides where they go."""

    config: GroupingConfig
    table: Table
    state: SenderState
    keys: list[str]
    """Every key once."""
    codes: npt.NDArray[np.int32]
    """The key of each tuple, as its position in ``keys``."""


def _least(job: Job) -> tuple[Ints, SenderState]:
    cost = costs(job.config, job.table)
    loads = list(job.state.loads)
    if job.config.policy in EVERYWHERE:
        places = _of_all(preference(job.config).tolist(), len(job.codes), loads, cost)
    else:
        found = candidates(job.config, job.table, job.keys)
        places = _of_candidates(found, job.codes, loads, cost)
    return np.array(places, np.int64), job.state._replace(loads=tuple(loads))


def _of_all(order: list[int], tuples: int, loads: list[int], cost: list[int]) -> list[int]:
    """Return the least loaded instance for each tuple, the first of equals; update the loads."""
    heap = [(loads[place], rank, place) for rank, place in enumerate(order)]
    heapify(heap)
    found = []
    for _ in range(tuples):
        load, rank, place = heap[0]
        heapreplace(heap, (load + cost[place], rank, place))
        found.append(place)
    for load, _, place in heap:
        loads[place] = load
    return found


def _of_candidates(
    sets: Candidates, codes: npt.NDArray[np.int32], loads: list[int], cost: list[int]
) -> list[int]:
    """Return the least loaded candidate for each tuple, the first of equals; update the loads."""
    ones, twos = sets.light[:, 0].copy(), sets.light[:, -1].copy()
    large: list[tuple[tuple[int, ...], Callable[[list[int]], tuple[int, ...]]]] = []
    for row, places in sets.heavy.items():
        ones[row], twos[row] = places[0], places[-1]
        if len(places) > 2:
            ones[row], twos[row] = -1, len(large)
            large.append((places, itemgetter(*places)))
    found = []
    for one, two in zip(ones[codes].tolist(), twos[codes].tolist(), strict=True):
        place = one
        if one < 0:
            places, loads_of = large[two]
            own = loads_of(loads)
            place = places[own.index(min(own))]
        elif loads[two] < loads[one]:
            place = two
        loads[place] += cost[place]
        found.append(place)
    return found


def _by_score(job: Job) -> tuple[Ints, SenderState]:
    """Route for ``dag``: heavy keys go where they have been, unless the load there is too high."""
    sets = candidates(job.config, job.table, job.keys)
    sent = {key: set(places) for key, places in job.state.sent}
    been = {row: sent.setdefault(job.keys[row], set()) for row in sets.heavy}
    first = sets.light[:, 0].tolist()
    loads = list(job.state.loads)
    total = sum(loads)
    found = []
    for code in job.codes.tolist():
        place = first[code]
        if code in been:
            place = _best(job.config, sets.heavy[code], loads, total, been[code])
            been[code].add(place)
        loads[place] += 1
        total += 1
        found.append(place)
    kept = tuple((key, tuple(sorted(places))) for key, places in sorted(sent.items()))
    return np.array(found, np.int64), job.state._replace(loads=tuple(loads), sent=kept)


def _best(
    config: GroupingConfig, places: tuple[int, ...], loads: list[int], total: int, there: set[int]
) -> int:
    n, alpha = config.instances, config.alpha
    scores = [
        alpha * (place in there) - (1 - alpha) * ((loads[place] * n - total) / (total or 1))
        for place in places
    ]
    return places[scores.index(max(scores))]


def _bucketed(
    config: GroupingConfig, state: SenderState, keys: pa.DictionaryArray
) -> tuple[int, ...]:
    size = 2 * config.instances
    base = base_hashes(keys.dictionary.to_pylist(), config.hash_seed)
    bucket = hash_modulo(base, 3, size)[keys.indices.to_numpy()]
    counted = np.bincount(bucket, minlength=size)
    return tuple((counted + np.array(state.buckets or (0,) * size, np.int64)).tolist())


_LEAST_LOADED = (
    *EVERYWHERE,
    *("key", "pkg", "w-choices", "dkg", "tag-literal", "tag"),
)
"""Policies that send a tuple to the least loaded of its key's candidates."""
_WAYS: Mapping[str, Callable[[Job], tuple[Ints, SenderState]]] = {
    **dict.fromkeys(_LEAST_LOADED, _least),
    "dag": _by_score,
}
