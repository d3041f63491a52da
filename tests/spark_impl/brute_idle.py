"""Idle streams of a join by definition, arrival by arrival: plain Python, nothing of ours."""

import math
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

OTHER = {"R": "S", "S": "R"}


class Came(NamedTuple):
    """An arrival of a stream."""

    name: str
    seq: int
    identity: int
    ts: int
    value: float


class Chain(NamedTuple):
    """What a chain admits, refuses and pairs."""

    rejected: set[tuple[str, int, str]]
    """Name, number and ``late`` or ``not finite``."""
    pairs: set[tuple[int, int]]
    by_floor: int
    """Arrivals that are late because of a floor only."""
    returned: int
    """Tuples of a stream that were admitted after its floor had risen."""


def join_epochs(  # noqa: C901 (the definition in one piece)
    epochs: Sequence[Sequence[Came]], window_us: int, lateness_us: int, idle_us: int | None
) -> Chain:
    """Join two streams, epoch by epoch."""
    admitted: dict[str, dict[int, Came]] = {"R": {}, "S": {}}
    latest: dict[str, int | None] = {"R": None, "S": None}
    mark: dict[str, int | None] = {"R": None, "S": None}
    floor: dict[str, int | None] = {"R": None, "S": None}
    rejected, by_floor, returned = set(), 0, 0
    for arrivals in epochs:
        for name, other in OTHER.items() if idle_us is not None else ():
            theirs, since = latest[other], mark[name]
            if since is not None and theirs is not None and theirs - since > idle_us:
                rise = theirs - lateness_us - idle_us
                floor[name] = rise if floor[name] is None else max(floor[name], rise)
        lively = set()
        for each in arrivals:
            if not math.isfinite(each.value):
                rejected.add((each.name, each.seq, "not finite"))
                continue
            lively.add(each.name)
            own = latest[each.name]
            own = None if own is None else own - lateness_us
            low = floor[each.name]
            if own is not None and each.ts < own:
                rejected.add((each.name, each.seq, "late"))
            elif low is not None and each.ts < low:
                rejected.add((each.name, each.seq, "late"))
                by_floor += 1
            elif each.identity not in admitted[each.name]:
                admitted[each.name][each.identity] = each
                latest[each.name] = max(each.ts, each.ts if own is None else latest[each.name])
                returned += low is not None
        for name, other in OTHER.items():
            if name in lively or mark[name] is None:
                mark[name] = latest[other]
    pairs = {
        (r.identity, s.identity)
        for r, s in product(admitted["R"].values(), admitted["S"].values())
        if abs(r.ts - s.ts) <= window_us
    }
    return Chain(rejected, pairs, by_floor, returned)
