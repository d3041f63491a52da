"""The decisions and transitions of planted bugs, which replace those of the protocol.

Source: docs/join.md, section 3, with one decision changed at a time.

Rules of this file:

* Each function replaces one entry of the rules or of the table; ``variants`` says which one, and
  why it is wrong.
"""

from collections.abc import Callable, Iterator, Mapping

from model.join import chain, live
from model.join.rules import Setup, Step, Transition
from model.join.state import (
    NO_PAIRS,
    Action,
    Block,
    ChainState,
    Copies,
    Copy,
    Worker,
    lanes,
    source,
    with_lane,
    with_worker,
)
from model.vocabulary.join import S


def with_transition(
    name: str,
    guard: Callable[[Setup, ChainState], Iterator[Action]],
    effect: Callable[[Setup, ChainState, Action], Step],
) -> Mapping[str, Transition]:
    """Return the table with one transition added or replaced."""
    return {**chain.TABLE, name: Transition(guard, effect)}


def both_visible(worker: Worker, block: Block) -> Copies:
    """Return the copies of the other stream, for blocks of either stream."""
    return lanes(worker, block.stream)[1].copies


def can_forget(_setup: Setup, state: ChainState) -> Iterator[Action]:
    """Yield the workers that have a copy of S."""
    for at, worker in enumerate(state.workers):
        if worker.s.copies:
            yield Action("forgets a copy of", at, S)


def forget(_setup: Setup, state: ChainState, action: Action) -> Step:
    """Delete the oldest copy of S."""
    worker = state.workers[action.worker]
    lane = worker.s._replace(copies=worker.s.copies[1:])
    return with_worker(state, action.worker, with_lane(worker, S, lane)), NO_PAIRS


def renewed(copy: Copy, worker: Worker) -> Block:
    """Return a block with what its sender has seen by now."""
    return copy.block._replace(seen=lanes(worker, copy.block.stream)[1].received)


def own_wm_us(worker: Worker, stream: str) -> int:
    """Return the watermark of the tuple's own stream."""
    return lanes(worker, stream)[0].wm_us


def merge_in_silence(setup: Setup, state: ChainState, action: Action) -> Step:
    """Merge two workers without joining anything."""
    return chain.merge(setup, state, action)[0], NO_PAIRS


def can_redirect_at_once(_setup: Setup, state: ChainState) -> Iterator[Action]:
    """Yield the redirection of S while R may still be at the leaving worker."""
    if state.phase == live.LEAVING:
        yield Action("gets no more S", source(state, S))
