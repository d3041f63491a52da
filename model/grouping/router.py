"""Routers: from the table of the window, a sender's state and a key to an instance and a state.

Source: docs/grouping.md, section 3.

Rules of this file:

* A router is a pure function; what a sender knows is in its ``State`` and nowhere else.
* Candidates come in the order of preference among equals, so that the first least load is it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from model.grouping import hashes
from model.grouping.candidates import bucket_of
from model.grouping.table import Table
from model.vocabulary import GroupingConfig

VIRTUAL_EACH = 10
"""``cg``: virtual workers an instance."""
TRIES = 64
"""``cg``: hashes that are tried."""


class State(NamedTuple):
    """What a sender knows; a policy that does not need a field leaves it as it is."""

    sender: int
    loads: tuple[int, ...]
    """L_i."""
    routed: int = 0
    """Tuples routed so far."""
    sent: frozenset[tuple[str, int]] = frozenset()
    """``dag``: heavy keys and where they have been sent to in this window."""
    virtual: tuple[int, ...] = ()
    """``cg``: loads of virtual workers."""
    buckets: tuple[int, ...] = ()
    """``dkg``: tuples that fell into each bucket in window 0."""


Router = Callable[[Table, State, str], tuple[int, State]]


def initial(config: GroupingConfig, sender: int) -> State:
    """A sender that has seen nothing."""
    n = config.instances
    return State(sender, (0,) * n, virtual=(0,) * (VIRTUAL_EACH * n), buckets=(0,) * (2 * n))


def started(table: Table, state: State) -> State:
    """The sender at the start of a window."""
    afresh = table.config.policy in table.rules.afresh
    loads = (0,) * table.n if afresh else state.loads
    return state._replace(loads=loads, sent=frozenset())


def route(table: Table, state: State, key: str) -> tuple[int, State]:
    """Route one tuple."""
    return ROUTERS.get(table.config.policy, _least_load)(table, state, key)


def route_all(table: Table, state: State, keys: Sequence[str]) -> tuple[list[int], State]:
    """Route tuples one after the other: the same as :func:`route` for each of them."""
    own = ROUTERS.get(table.config.policy)
    where = []
    if own is not None:
        for key in keys:
            instance, state = own(table, state, key)
            where.append(instance)
        return where, state
    loads, costs = list(state.loads), table.costs
    least = table.rules.least
    charged = [table.rules.charged(table, instance) for instance in range(table.n)]
    candidates = {key: table.candidates(key) for key in dict.fromkeys(keys)}
    for key in keys:
        instance = least(candidates[key], loads)
        at = charged[instance]
        loads[at] += costs[at]
        where.append(instance)
    return where, state._replace(loads=tuple(loads), routed=state.routed + len(where))


def least(candidates: Sequence[int], loads: Sequence[int]) -> int:
    """The first one with the least load."""
    if len(candidates) == 2:  # As nearly every key has it; a call of min takes three times as long.
        one, other = candidates
        return one if loads[one] <= loads[other] else other
    return min(candidates, key=loads.__getitem__)


def _least_load(table: Table, state: State, key: str) -> tuple[int, State]:
    return _taken(table, state, table.rules.least(table.candidates(key), state.loads))


def _taken(table: Table, state: State, instance: int) -> tuple[int, State]:
    loads = state.loads
    at = table.rules.charged(table, instance)
    increased = (*loads[:at], loads[at] + table.costs[at], *loads[at + 1 :])
    return instance, State(
        state.sender, increased, state.routed + 1, state.sent, state.virtual, state.buckets
    )


def _in_turns(table: Table, state: State, _key: str) -> tuple[int, State]:
    return _taken(table, state, (state.sender + state.routed) % table.n)


def _learning(table: Table, state: State, key: str) -> tuple[int, State]:
    """``dkg``: counts buckets until there is a map."""
    if table.placement is None:
        state = state._replace(buckets=_more(state.buckets, bucket_of(table.config, key)))
    return _least_load(table, state, key)


def _by_score(table: Table, state: State, key: str) -> tuple[int, State]:
    """``dag``: a heavy key likes to go where it has been, and where there is little."""
    if key not in table.heavy:
        return _least_load(table, state, key)
    n, alpha, total = table.n, table.config.alpha, sum(state.loads)

    def score(instance: int) -> float:
        there = (key, instance) in state.sent
        more = (state.loads[instance] * n - total) / total if total else 0.0
        return alpha * there - (1 - alpha) * more

    instance = max(table.candidates(key), key=score)
    if (key, instance) not in state.sent:
        state = state._replace(sent=state.sent | {(key, instance)})
    return _taken(table, state, instance)


def _by_virtual_workers(table: Table, state: State, key: str) -> tuple[int, State]:
    """``cg``: the first virtual worker of the key's sequence with room, else the least loaded."""
    text = hashes.text_hash(key, table.config.hash_seed)
    loads, n = state.virtual, len(state.virtual)
    tried = (hashes.hashed(text, j) % n for j in range(1, TRIES + 1))
    virtual = next(
        (each for each in tried if 4 * loads[each] * n < 5 * (state.routed + 1)),
        None,
    )
    if virtual is None:
        virtual = loads.index(min(loads))
    state = state._replace(virtual=_more(loads, virtual))
    return _taken(table, state, table.owners[virtual])


def owners(times_us: Sequence[int]) -> tuple[int, ...]:
    """``cg``: the instance of every virtual worker, in blocks by speed."""
    speeds = [1 / time_us for time_us in times_us]
    total, n = sum(speeds), VIRTUAL_EACH * len(speeds)
    shares = [n * speed / total for speed in speeds]
    blocks = [int(share) for share in shares]
    remainders = sorted(range(len(shares)), key=lambda i: blocks[i] - shares[i])
    for i in remainders[: n - sum(blocks)]:
        blocks[i] += 1
    return tuple(i for i, size in enumerate(blocks) for _ in range(size))


def _more(numbers: tuple[int, ...], at: int) -> tuple[int, ...]:
    return (*numbers[:at], numbers[at] + 1, *numbers[at + 1 :])


ROUTERS: Mapping[str, Router] = {
    "round-robin": _in_turns,
    "dkg": _learning,
    "dag": _by_score,
    "cg": _by_virtual_workers,
}
"""Those that are not simply to the least load of the candidates."""
