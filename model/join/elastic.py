"""More and fewer workers on a quiet chain.

Source: docs/join.md, section 7.

Rules of this file:

* A chain is quiet before and after: no message, no copy. Block numbers start again.
* Merging owes the pairs that the boundary kept apart; splitting may not part tuples that met, in
  a way that lets them meet again.
"""

from collections.abc import Iterator

from model.join.state import NO_PAIRS, Action, Setup, State, Step, is_quiet
from model.join.worker import Lane, Ranks, Worker
from model.vocabulary.join import R, S


def can_merge(_setup: Setup, state: State) -> Iterator[Action]:
    """Every two neighbours."""
    if state.changes and is_quiet(state):
        for at in range(len(state.workers) - 1):
            yield Action("merge", at)


def merge(setup: Setup, state: State, action: Action) -> Step:
    """Two neighbours become one; what lies left in R and right in S meets now."""
    left, right = state.workers[action.worker], state.workers[action.worker + 1]
    pairs = setup.content.join(R, left.r.store, right.s.store)
    return _replaced(state, action.worker, 2, (merged(left, right),)), pairs


def merged(left: Worker, right: Worker) -> Worker:
    """The two as one worker: older tuples of R lie further right, of S further left."""
    return Worker(
        right.r._replace(
            store=right.r.store + left.r.store, heard_us=max(left.r.heard_us, right.r.heard_us)
        ),
        left.s._replace(
            store=left.s.store + right.s.store, heard_us=max(left.s.heard_us, right.s.heard_us)
        ),
    )


def can_split(_setup: Setup, state: State) -> Iterator[Action]:
    """Every worker: n of R go right and S stays, or all of R goes right with n of S.

    R that goes right is its oldest, S its newest.
    """
    if state.changes and is_quiet(state):
        for at, worker in enumerate(state.workers):
            for n in range(len(worker.r.store) + 1):
                yield Action("split", at, R, n)
            for n in range(1, len(worker.s.store) + 1):
                yield Action("split", at, S, n)


def split(setup: Setup, state: State, action: Action) -> Step:
    """One worker becomes two; no r is left of an s that it met."""
    _, at, stream, n, _ = action
    r, s = state.workers[at].r.store, state.workers[at].s.store
    if stream == R:
        return split_into(setup, state, at, (r[n:], s), (r[:n], s[:0])), NO_PAIRS
    kept = len(s) - n
    return split_into(setup, state, at, (r[:0], s[:kept]), (r, s[kept:])), NO_PAIRS


def split_into(
    setup: Setup, state: State, at: int, left: tuple[Ranks, Ranks], right: tuple[Ranks, Ranks]
) -> State:
    """A worker replaced by two with these stores of R and of S; both know what it knew.

    But what the one holds has not passed the other, if its way still leads there.
    """
    worker, content = state.workers[at], setup.content
    parts = [
        Worker(worker.r._replace(store=r), worker.s._replace(store=s)) for r, s in (left, right)
    ]
    r_us = min(worker.r.wm_us, content.least_us(R, left[0]))
    s_us = min(worker.s.wm_us, content.least_us(S, right[1]))
    parts[0] = parts[0]._replace(s=parts[0].s._replace(wm_us=s_us))
    parts[1] = parts[1]._replace(r=parts[1].r._replace(wm_us=r_us))
    return _replaced(state, at, 1, tuple(parts))


def _replaced(state: State, at: int, count: int, new: tuple[Worker, ...]) -> State:
    workers = (*state.workers[:at], *new, *state.workers[at + count :])
    channels = ((),) * (len(workers) - 1)
    return state._replace(
        workers=tuple(Worker(_fresh(worker.r), _fresh(worker.s)) for worker in workers),
        right=channels,
        left=channels,
        changes=state.changes - 1,
    )


def _fresh(lane: Lane) -> Lane:
    return lane._replace(sent=0, received=0, neighbour=0)
