"""Changes while the streams run: a worker comes or goes at the right end, a stream falls silent.

Source: docs/join.md, sections 7 and 2.

Rules of this file:

* The source of S and the end of the chain are two things here, with a queue between them, because
  mistakes in a change at the end occur there.
* ``ADDING`` and ``REMOVING`` are tables of their own; between workers the actions are those of
  ``chain.TABLE``.

MARK is the end of the old queue: nothing enters that queue after the change. END says that the
leaving worker has nothing left and nothing under way.
"""

from collections.abc import Callable, Iterator, Mapping

from model.join import chain
from model.join import worker as local
from model.join.rules import Setup, Step, Transition
from model.join.state import (
    NO_PAIRS,
    Action,
    ChainState,
    Worker,
    lanes,
    source,
    with_worker,
)
from model.vocabulary.join import R, S

ADDED, OPEN = "a worker is added", "the new boundary is open"
LEAVING, REDIRECTED, LEFT = "R stops", "the source is redirected", "the worker has left"


def change(
    name: str,
    before: str,
    after: str,
    is_time: Callable[[ChainState], bool] = lambda _: True,
    made: Callable[[ChainState], ChainState] = lambda state: state,
    *,
    at_neighbour: bool = False,
) -> Transition:
    """Return a step of the right end between two phases; ``made`` changes the state with it."""

    def can_change(_setup: Setup, state: ChainState) -> Iterator[Action]:
        if state.phase == before and is_time(state):
            yield Action(name, source(state, S) - at_neighbour)

    def changed(_setup: Setup, state: ChainState, _action: Action) -> Step:
        return made(state)._replace(phase=after), NO_PAIRS

    return Transition(can_change, changed)


# --------------------------------------------------------------------------------- source of S


def _can_admit_r(setup: Setup, state: ChainState) -> Iterator[Action]:
    return (a for a in chain.TABLE["admit"].guard(setup, state) if a.stream == R)


def _can_offer(setup: Setup, state: ChainState) -> Iterator[Action]:
    if state.admitted_s < len(setup.wm_us[1]):
        yield Action("the source sends", source(state, S), S)


def _offer(_setup: Setup, state: ChainState, _action: Action) -> Step:
    rank = state.admitted_s
    state = state._replace(admitted_s=rank + 1)
    if state.phase in ("", LEAVING):
        return state._replace(queue=(*state.queue, rank)), NO_PAIRS
    return state._replace(new_queue=(*state.new_queue, rank)), NO_PAIRS


def _can_read(setup: Setup, state: ChainState) -> Iterator[Action]:
    if state.queue:
        yield Action("read", setup.workers - 1, S)


def _read(setup: Setup, state: ChainState, action: Action) -> Step:
    rank, *rest = state.queue
    return _enter(setup, state._replace(queue=tuple(rest)), action.worker, rank)


def _can_read_new(_setup: Setup, state: ChainState) -> Iterator[Action]:
    if state.new_queue and state.phase != REDIRECTED:
        yield Action("read the new queue", source(state, S), S)


def _read_new(setup: Setup, state: ChainState, action: Action) -> Step:
    rank, *rest = state.new_queue
    return _enter(setup, state._replace(new_queue=tuple(rest)), action.worker, rank)


def _enter(setup: Setup, state: ChainState, at: int, rank: int) -> Step:
    worker, pairs = local.admit(state.workers[at], S, (rank,), setup.wm_us[1][rank], setup.content)
    return with_worker(state, at, worker), pairs


# ------------------------------------------------------------------------------------- a new end


def _add(state: ChainState) -> ChainState:
    return state._replace(
        workers=(*state.workers, Worker()), right=(*state.right, ()), left=(*state.left, ())
    )


def _can_forward_but_over_the_new_boundary(setup: Setup, state: ChainState) -> Iterator[Action]:
    closed = {(setup.workers - 1, R), (setup.workers, S)} if state.phase == ADDED else set()
    for action in chain.TABLE["forward"].guard(setup, state):
        if (action.worker, action.stream) not in closed:
            yield action


# ----------------------------------------------------------------------------------- an end goes


def _can_forward_but_to_the_leaving(setup: Setup, state: ChainState) -> Iterator[Action]:
    is_leaving = state.phase in (LEAVING, REDIRECTED)
    for action in chain.TABLE["forward"].guard(setup, state):
        if not is_leaving or (action.worker, action.stream) != (setup.workers - 2, R):
            yield action


def _is_rid_of_r(state: ChainState) -> bool:
    # A block under way between the two has a copy, until its acknowledgement has come.
    *_, neighbour, leaving = state.workers
    return not (leaving.r.store or neighbour.r.copies)


def _is_done(state: ChainState) -> bool:
    leaving = state.workers[-1].s
    return _is_rid_of_r(state) and not (state.queue or leaving.store or leaving.copies)


def _leave(state: ChainState) -> ChainState:
    return state._replace(workers=state.workers[:-1], right=state.right[:-1], left=state.left[:-1])


# ------------------------------------------------------------------------------------- the tables

_SOURCE = {
    "admit": Transition(_can_admit_r, chain.TABLE["admit"].effect),
    "the source sends": Transition(_can_offer, _offer),
    "read": Transition(_can_read, _read),
    "read the new queue": Transition(_can_read_new, _read_new),
}
_BETWEEN = {name: chain.TABLE[name] for name in ("receive", "acknowledge", "drop")}
_FORWARD = chain.TABLE["forward"].effect

ADDING = {
    **_SOURCE,
    **_BETWEEN,
    "forward": Transition(_can_forward_but_over_the_new_boundary, _FORWARD),
    "a worker is added": change("a worker is added", "", ADDED, made=_add),
    "read MARK": change("read MARK", ADDED, OPEN, lambda at: not at.queue, at_neighbour=True),
}
REMOVING = {
    **_SOURCE,
    **_BETWEEN,
    "forward": Transition(_can_forward_but_to_the_leaving, _FORWARD),
    "gets no more R": change("gets no more R", "", LEAVING),
    "gets no more S": change("gets no more S", LEAVING, REDIRECTED, _is_rid_of_r),
    "read END": change("read END", REDIRECTED, LEFT, _is_done, _leave, at_neighbour=True),
}


# -------------------------------------------------------------------------------- silent streams


def with_silence(
    stream: str, floor_us: int, *, is_too_early: bool = False
) -> Mapping[str, Transition]:
    """Return a table in which a watermark rises to ``floor_us`` after its stream's last arrival.

    If ``is_too_early``, a planted bug, the watermark may rise while arrivals are still to come.
    """

    def can_rise(setup: Setup, state: ChainState) -> Iterator[Action]:
        at = source(state, stream)
        lane, _ = lanes(state.workers[at], stream)
        is_silent = is_too_early or not any(
            action.stream == stream for action in chain.TABLE["admit"].guard(setup, state)
        )
        if is_silent and lane.wm_us < floor_us:
            yield Action("silence", at, stream)

    def rise(_setup: Setup, state: ChainState, _action: Action) -> Step:
        return chain.raise_watermarks(state, {stream: floor_us}), NO_PAIRS

    return {**chain.TABLE, "silence": Transition(can_rise, rise)}
