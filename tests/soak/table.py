"""The stored records of soaks, and what they come to."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.soak.faults import KINDS, MOMENTS
from tests.soak.oracles import LOST, TWICE, WRONG

Record = Mapping[str, Any]
"""Line of a fault in the file of a soak."""


def read_records(file: Path) -> list[Record]:
    """Return the records of a soak; a line that a kill cut off is left out."""
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines[:-1]]


def _add_lives(records: Iterable[Record], name: str) -> int:
    """Return the sum of a figure that grows within a life, over all lives."""
    total = before = 0
    for record in records:
        now = record.get(name, 0)
        total, before = total + (now - before if now >= before else now), now
    return total


def summarise(records: Iterable[Record]) -> dict[str, Any]:
    """Return the figures of a soak by their labels: faults by kind and moment, by room, losses."""
    every = [*records]
    struck = [each for each in every if each["struck"]]
    seconds = [each["seconds"] for each in struck]
    found = Counter(kind for each in struck for kind, _ in each["findings"])
    table = Counter((each["kind"], each["moment"]) for each in struck)
    return {
        "seeds": sorted({each["seed"] for each in struck}),
        "faults": len(struck),
        "recovered": sum(not each["failed"] for each in struck),
        LOST: found[LOST],
        TWICE: found[TWICE],
        WRONG: found[WRONG],
        "stalled": sum(each["stalls"] for each in struck),
        "restarts": sum(each["starts"] for each in struck),
        "compared": sum(each["checked"] for each in struck),
        "resizes": _add_lives(every, "resizes"),
        "shed": _add_lives(every, "shed"),
        "minutes": round(sum(seconds) / 60, 1),
        "slowest_s": max(seconds, default=0),
        "rooms": dict(sorted(Counter(each["room"] for each in struck).items())),
        "moments": {kind: {moment: table[kind, moment] for moment in MOMENTS} for kind in KINDS},
    }


def add_to(stored: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of both soaks together; of the new one if it went on with the stored one.

    A folder that goes on with its next faults has the earlier ones in its summary as well. Raise
    ``ValueError`` if only some seeds are the same: nobody knows which faults are in both.
    """
    known, seeds = {*stored["seeds"]}, {*summary["seeds"]}
    if known <= seeds and stored["faults"] <= summary["faults"]:
        return dict(summary)
    if known & seeds:
        msg = f"a soak with seed {min(known & seeds)} is stored already; take another SEED"
        raise ValueError(msg)
    found = _sum(stored, summary)
    return found | {
        "seeds": sorted([*stored["seeds"], *summary["seeds"]]),
        "minutes": round(found["minutes"], 1),
        "slowest_s": max(stored["slowest_s"], summary["slowest_s"]),
    }


def _sum(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sums of figures with the same labels, also in groups of them."""
    return {
        name: _sum(one.get(name, {}), other.get(name, {}))
        if isinstance(one.get(name, other.get(name)), Mapping)
        else one.get(name, 0) + other.get(name, 0)
        for name in dict.fromkeys((*one, *other))
        if name != "seeds"
    }
