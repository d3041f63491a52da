"""The protocol as a state diagram, drawn from the transition table.

Rules of this file:

* Nothing is drawn that does not happen: a worker's condition is read off states, and an arrow is
  an action of the worker that leads from one condition to another in some behaviour of a scope.
"""

from collections.abc import Callable, Iterable

from model.join.protocol import Protocol, Scope, State
from model.join.worker import Worker, unacknowledged

Arrow = tuple[str, str, str]
"""From a condition, by an action, to a condition."""


def condition(worker: Worker) -> str:
    """What a worker is doing: it waits for acknowledgements, for blocks that must still meet a copy
    (``Deleting``), or for neither.
    """
    sends = unacknowledged(worker.r) + unacknowledged(worker.s) > 0
    keeps = bool(worker.r.copies or worker.s.copies)
    holds = bool(worker.r.store or worker.s.store)
    if sends:
        return "Forwarding"
    if keeps:
        return "Deleting"
    return "Processing" if holds else "Empty"


def arrows(scope: Scope, number: int, of: Callable[[Worker], str] = condition) -> tuple[Arrow, ...]:
    """Every change of a worker's condition in a scope, in order."""
    protocol = Protocol(scope)
    seen = {protocol.initial()}
    level: Iterable[State] = tuple(seen)
    found: set[Arrow] = set()
    while level:
        following: list[State] = []
        for state in level:
            for action, after in protocol.actions(state):
                if action.worker == number:
                    before, then = state.chain.workers[number], after.chain.workers[number]
                    found.add((of(before), f"{action.what} {action.stream}".rstrip(), of(then)))
                if after not in seen:
                    seen.add(after)
                    following.append(after)
        level = following
    return tuple(sorted(found))


def mermaid(found: Iterable[Arrow]) -> tuple[str, ...]:
    """The arrows as a state diagram in the language Mermaid, one line a pair of conditions."""
    labels: dict[tuple[str, str], list[str]] = {}
    for before, action, then in found:
        if before != then:
            labels.setdefault((before, then), []).append(action)
    lines = [f"    {a} --> {b}: {', '.join(names)}" for (a, b), names in labels.items()]
    return ("stateDiagram-v2", "    [*] --> Empty", *lines)
