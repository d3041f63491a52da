"""The decisions and transitions of planted bugs, which replace those of the protocol.

Source: docs/join.md, section 3, with one decision changed at a time.

Rules of this file:

* Each function replaces one entry of the rules or of the table; ``variants`` says which one, and
  why it is wrong.
"""

from collections.abc import Callable, Iterator, Mapping

from model.join import chain
from model.join import worker as local
from model.join.rules import Setup, Step, Transition, send
from model.join.state import (
    NO_PAIRS,
    Action,
    Block,
    ChainState,
    Copies,
    Copy,
    Worker,
    boundary,
    channel_of,
    is_quiet,
    lanes,
    other,
    with_channel,
    with_lane,
    with_worker,
)
from model.vocabulary.join import STREAMS, R, S


def with_transition(
    name: str,
    guard: Callable[[Setup, ChainState], Iterator[Action]],
    effect: Callable[[Setup, ChainState, Action], Step],
) -> Mapping[str, Transition]:
    """Return the table with one transition added or replaced."""
    return {**chain.TABLE, name: Transition(guard, effect)}


# ------------------------------------------------------------------------------- receiving in two


def _take_block(state: ChainState, action: Action) -> tuple[ChainState, Block]:
    at, to_right = boundary(action.worker, other(action.stream)), action.stream == R
    block, *rest = channel_of(state, at, to_right)
    assert isinstance(block, Block)
    return with_channel(state, at, to_right, tuple(rest)), block


def _put_aside(state: ChainState, at: int, block: Block) -> ChainState:
    lane, _ = lanes(state.workers[at], block.stream)
    lane = lane._replace(waiting=(*lane.waiting, block))
    return with_worker(state, at, with_lane(state.workers[at], block.stream, lane))


def _take_aside(state: ChainState, action: Action) -> tuple[ChainState, Block]:
    lane, _ = lanes(state.workers[action.worker], action.stream)
    block, *rest = lane.waiting
    worker = with_lane(state.workers[action.worker], action.stream, lane._replace(waiting=(*rest,)))
    return with_worker(state, action.worker, worker), block


def _answer(setup: Setup, state: ChainState, at: int, block: Block) -> ChainState:
    ack = local.receipt(state.workers[at], block, setup.hints)
    return send(setup, state, boundary(at, other(block.stream)), ack)


def _join(setup: Setup, state: ChainState, at: int, block: Block) -> Step:
    worker, pairs = local.receive(state.workers[at], block, setup.content, setup.rules)
    return with_worker(state, at, worker), pairs


def answer_then_wait(setup: Setup, state: ChainState, action: Action) -> Step:
    """Acknowledge a block and put it aside."""
    state, block = _take_block(state, action)
    state = _put_aside(state, action.worker, block)
    return _answer(setup, state, action.worker, block), NO_PAIRS


def join_then_wait(setup: Setup, state: ChainState, action: Action) -> Step:
    """Join a block and put it aside."""
    state, block = _take_block(state, action)
    state, pairs = _join(setup, state, action.worker, block)
    return _put_aside(state, action.worker, block), pairs


def join_at_last(setup: Setup, state: ChainState, action: Action) -> Step:
    """Join a block that was put aside."""
    state, block = _take_aside(state, action)
    return _join(setup, state, action.worker, block)


def answer_at_last(setup: Setup, state: ChainState, action: Action) -> Step:
    """Acknowledge a block that was put aside."""
    state, block = _take_aside(state, action)
    return _answer(setup, state, action.worker, block), NO_PAIRS


def _can_go_on(name: str) -> Callable[[Setup, ChainState], Iterator[Action]]:
    def guard(_setup: Setup, state: ChainState) -> Iterator[Action]:
        for at, worker in enumerate(state.workers):
            for stream in STREAMS:
                if lanes(worker, stream)[0].waiting:
                    yield Action(name, at, stream)

    return guard


def split_receipt(
    first: Callable[[Setup, ChainState, Action], Step],
    name: str,
    second: Callable[[Setup, ChainState, Action], Step],
) -> Mapping[str, Transition]:
    """Return the table with a receipt in two steps."""
    receive = Transition(chain.TABLE["receive"].guard, first)
    return {**chain.TABLE, "receive": receive, name: Transition(_can_go_on(name), second)}


# --------------------------------------------------------------------------------- other mistakes


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


def drop_everywhere(setup: Setup, state: ChainState, action: Action) -> Step:
    """Drop tuples, also from the copy at the worker that they came from."""
    at, stream = action.worker, action.stream
    before = set(lanes(state.workers[at], stream)[0].store)
    state, pairs = chain.TABLE["drop"].effect(setup, state, action)
    gone = before - set(lanes(state.workers[at], stream)[0].store)
    sender = at - 1 if stream == R else at + 1
    if 0 <= sender < len(state.workers):
        lane, _ = lanes(state.workers[sender], stream)
        copies = tuple(_without(copy, gone) for copy in lane.copies)
        worker = with_lane(state.workers[sender], stream, lane._replace(copies=copies))
        state = with_worker(state, sender, worker)
    return state, pairs


def _without(copy: Copy, gone: set[int]) -> Copy:
    left = tuple(rank for rank in copy.block.tuples if rank not in gone)
    return copy._replace(block=copy.block._replace(tuples=left))


def renewed(copy: Copy, worker: Worker) -> Block:
    """Return a block with what its sender has seen by now."""
    return copy.block._replace(seen=lanes(worker, copy.block.stream)[1].received)


def own_wm_us(worker: Worker, stream: str) -> int:
    """Return the watermark of the tuple's own stream."""
    return lanes(worker, stream)[0].wm_us


def source_wm_us(worker: Worker, stream: str) -> int:
    """Return the watermark of the other stream at its source, as heard."""
    return lanes(worker, stream)[1].heard_us


def merge_in_silence(setup: Setup, state: ChainState, action: Action) -> Step:
    """Merge two workers without joining anything."""
    return chain.merge(setup, state, action)[0], NO_PAIRS


def can_halve(setup: Setup, state: ChainState) -> Iterator[Action]:
    """Yield every worker of a quiet chain."""
    if state.changes and is_quiet(state):
        for at in range(len(state.workers)):
            yield Action("is split by halves", at)


def halve(setup: Setup, state: ChainState, action: Action) -> Step:
    """Send half of R and half of S to the right."""
    worker = state.workers[action.worker]
    r, s = worker.r.store, worker.s.store
    of_r, of_s = len(r) // 2, len(s) // 2
    parts = (r[of_r:], s[:of_s]), (r[:of_r], s[of_s:])
    return chain.split_into(setup, state, action.worker, *parts), NO_PAIRS


def can_save(_setup: Setup, state: ChainState) -> Iterator[Action]:
    """Yield a checkpoint once, when there is something to save."""
    if is_quiet(state) and not state.saved and any(w.r.store or w.s.store for w in state.workers):
        yield Action("every worker is saved")


def save(_setup: Setup, state: ChainState, _action: Action) -> Step:
    """Save a checkpoint of every worker."""
    return state._replace(saved=state.workers), NO_PAIRS


def can_restore(_setup: Setup, state: ChainState) -> Iterator[Action]:
    """Yield the workers that have changed since the checkpoint."""
    if is_quiet(state) and state.changes and state.saved:
        for at, worker in enumerate(state.saved):
            if worker != state.workers[at]:
                yield Action("fails and is restored alone", at)


def restore(_setup: Setup, state: ChainState, action: Action) -> Step:
    """Restore one worker from the checkpoint."""
    old, now = state.saved[action.worker], state.workers[action.worker]
    # Neighbours number the next block by what they sent; a restored worker learns the numbers.
    worker = Worker(
        old.r._replace(sent=now.r.sent, received=now.r.received),
        old.s._replace(sent=now.s.sent, received=now.s.received),
    )
    state = with_worker(state, action.worker, worker)
    return state._replace(changes=state.changes - 1), NO_PAIRS
