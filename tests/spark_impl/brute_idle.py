"""Idle streams and sensors by definition, arrival by arrival: plain Python, nothing of ours."""

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

OTHER = {"R": "S", "S": "R"}


class Came(NamedTuple):
    """An arrival of a stream or of a sensor."""

    name: str
    seq: int
    identity: int
    ts: int
    value: float
    at_us: int = 0


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


class Sensors(NamedTuple):
    """What sensors admit and refuse, and how far each is known."""

    admitted: dict[str, list[Came]]
    rejected: set[tuple[int, str]]
    """Number and ``late`` or ``not finite``."""
    watermarks: dict[str, int]
    by_silence: int
    """Arrivals that are late because of a silence only."""


def admit_sensors(
    arrivals: Iterable[Came], sensors: Sequence[str], lateness_us: int, idle_us: int
) -> Sensors:
    """Admit arrivals of sensors one after the other; ``sensors`` are those that are asked for."""
    watermark = dict.fromkeys(sensors, 0)
    own = dict.fromkeys(sensors, 0)
    moment: dict[str, int] = {}
    admitted: dict[str, list[Came]] = {name: [] for name in sensors}
    rejected, by_silence = set(), 0
    clock = latest = first = None
    for each in arrivals:
        asked = each.name in watermark
        if not math.isfinite(each.value):
            if asked:
                rejected.add((each.seq, "not finite"))
            continue
        clock = each.at_us if clock is None else max(clock, each.at_us)
        latest = each.ts if latest is None else max(latest, each.ts)
        first = clock if first is None else first
        moment[each.name] = clock
        if asked and each.ts < watermark[each.name]:
            rejected.add((each.seq, "late"))
            by_silence += each.ts >= own[each.name]
        elif asked:
            known = {one.identity for one in admitted[each.name]}
            if each.identity not in known:
                admitted[each.name].append(each)
        if asked:
            own[each.name] = max(own[each.name], each.ts - lateness_us)
            watermark[each.name] = max(watermark[each.name], each.ts - lateness_us)
        for name in sensors:
            if clock - moment.get(name, first) > idle_us:
                watermark[name] = max(watermark[name], latest - lateness_us)
    return Sensors(admitted, rejected, watermark, by_silence)
