"""Shrink a failing workload to a counterexample that people can read.

Source: Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (delta debugging).

Rules of this file:

* The result is deterministic: the same workload and verdicts give the same counterexample.
* The configuration never changes; a smaller workload is one with fewer arrivals, fewer cuts, fewer
  faults, fewer keys, or plainer values.
* Every candidate is run. The number of runs is limited; when it is used up, the result is the
  smallest failing workload so far.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from model.vocabulary import Event, Workload

RUNS_MAX = 400
PLAIN_VALUES = (1.0, 2.0, 3.0)

Fails = Callable[[Workload], bool]
"""Function that returns whether a workload still shows the failure."""

T = TypeVar("T")


def smallest(workload: Workload, fails: Fails, runs_max: int = RUNS_MAX) -> Workload:
    """Return a smaller workload that still fails; the given workload must fail.

    No single arrival, cut or fault of the result can be left out, unless ``runs_max`` ended the
    search before that was certain. ``fails`` is called at most ``runs_max`` times.
    """
    runs_left = runs_max

    def limited(candidate: Workload) -> bool:
        nonlocal runs_left
        runs_left -= 1
        return runs_left >= 0 and fails(candidate)

    size = None
    while size != (size := _size(workload)) and runs_left > 0:
        workload = _fewer_arrivals(workload, limited)
        workload = _fewer(workload, "cuts", limited)
        workload = _fewer(workload, "faults", limited)
        workload = _plainer(workload, limited)
    return workload


def _size(workload: Workload) -> tuple[int, int, int]:
    return len(workload.arrivals), len(workload.cuts), len(workload.faults)


def _fewer_arrivals(workload: Workload, fails: Fails) -> Workload:
    numbered = [(n, event) for n, batch in enumerate(workload.batches()) for event in batch]
    kept = _minimal(numbered, lambda some: bool(some) and fails(_with_batches(workload, some)))
    return _with_batches(workload, kept)


def _fewer(workload: Workload, name: str, fails: Fails) -> Workload:
    """Leave out elements of a field of the workload where it still fails."""
    kept = _minimal(
        [*dict.fromkeys(getattr(workload, name))],
        lambda some: fails(workload.with_(**{name: tuple(some)})),
    )
    return workload.with_(**{name: tuple(kept)})


def _plainer(workload: Workload, fails: Fails) -> Workload:
    """Use one key and :data:`PLAIN_VALUES` where the workload still fails, in all deliveries."""
    keys = sorted({event.key for event in workload.arrivals})
    for key in reversed(keys[1:]):
        fewer = _with_events(workload, "key", key, key=keys[0])
        workload = fewer if fails(fewer) else workload
    values = {event.source_id: event.value for event in workload.arrivals}
    for identity in sorted(values):
        for plain in PLAIN_VALUES:
            if values[identity] == plain:
                break
            plainer = _with_events(workload, "source_id", identity, value=plain)
            if fails(plainer):
                workload = plainer
                break
    return workload


def _with_events(workload: Workload, field: str, old: object, /, **changes: Any) -> Workload:
    """Return the workload with changes to all arrivals whose ``field`` is ``old``."""
    arrivals = [
        event._replace(**changes) if getattr(event, field) == old else event
        for event in workload.arrivals
    ]
    return workload.with_(arrivals=tuple(arrivals))


def _minimal(items: list[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """Return the items that are left when ever smaller pieces go, as long as the rest fails."""
    piece = len(items)
    while piece:
        position = 0
        before = len(items)
        while position < len(items):
            rest = items[:position] + items[position + piece :]
            if fails(rest):
                items = rest
            else:
                position += piece
        # Pieces of one are tried again until none can be left out.
        piece = piece // 2 if piece > 1 else int(len(items) < before)
    return items


def _with_batches(workload: Workload, numbered: Sequence[tuple[int, Event]]) -> Workload:
    """Return the workload with only these (batch, arrival) pairs; ``seq`` counts from 0 again."""
    arrivals = tuple(event._replace(seq=seq) for seq, (_, event) in enumerate(numbered))
    batches = [batch for batch, _ in numbered]
    cuts = tuple(n for n, pair in enumerate(pairwise(batches), start=1) if pair[0] != pair[1])
    return workload.with_(arrivals=arrivals, cuts=cuts)
