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
    """The arrivals that a chain refuses, and the pairs that it finds."""

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
    mark: dict[str, int] = {}
    floor: dict[str, int] = {}
    rejected, by_floor, returned = set(), 0, 0

    def latest(name: str) -> int | None:
        return max((each.ts for each in admitted[name].values()), default=None)

    for arrivals in epochs:
        for name, other in OTHER.items():
            theirs = latest(other)
            if idle_us is None or theirs is None or name not in mark:
                continue
            if theirs - mark[name] > idle_us:
                rise = theirs - lateness_us - idle_us
                floor[name] = max(floor.get(name, rise), rise)
        lively = set()
        for each in arrivals:
            if not math.isfinite(each.value):
                rejected.add((each.name, each.seq, "not finite"))
                continue
            lively.add(each.name)
            own = latest(each.name)
            by_own = own is not None and each.ts < own - lateness_us
            if by_own or (each.name in floor and each.ts < floor[each.name]):
                rejected.add((each.name, each.seq, "late"))
                by_floor += not by_own
            elif each.identity not in admitted[each.name]:
                admitted[each.name][each.identity] = each
                returned += each.name in floor
        for name, other in OTHER.items():
            theirs = latest(other)
            if theirs is not None and (name in lively or name not in mark):
                mark[name] = theirs
    pairs = {
        (r.identity, s.identity)
        for r, s in product(admitted["R"].values(), admitted["S"].values())
        if abs(r.ts - s.ts) <= window_us
    }
    return Chain(rejected, pairs, by_floor, returned)
