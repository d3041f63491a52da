"""The chain as a transition system: workers, channels, and everything that may happen next.

Source: docs/join.md, sections 3 to 6.

Rules of this file:

* ``TABLE`` is the protocol: an action is possible where its guard lists it, and its effect is one
  step. Nothing else changes a state.
* An effect returns the next state and the pairs that were found on the way.
* What one worker does stands in ``worker``, what a channel does in ``network``, when a block is
  sent in ``sending``, what is decided in ``rules``.

Theory of operation: ``Setup`` says how many workers, which tuples, which network and whether
blocks are sent freely or by load. The explorer takes every action, ``run`` takes one drawn by
lot, ``recorded`` those that somebody else took.
"""

from collections.abc import Iterator

from model.join import elastic
from model.join import worker as local
from model.join.sending import sizes
from model.join.state import (
    NO_PAIRS,
    Action,
    Setup,
    State,
    Step,
    Transition,
    boundary,
    channel_of,
    send,
    sends,
    source,
    with_channel,
    with_worker,
)
from model.join.worker import Ack, Block, Message, lanes, with_lane
from model.vocabulary.join import END_US, STREAMS, R, S

# ------------------------------------------------------------------------------ admission and end


def _can_admit(setup: Setup, state: State) -> Iterator[Action]:
    if state.admitted_r < len(setup.wm_us[0]):
        yield Action("admit", source(state, R), R)
    if state.admitted_s < len(setup.wm_us[1]):
        yield Action("admit", source(state, S), S)


def _admit(setup: Setup, state: State, action: Action) -> Step:
    _, at, stream, n, _ = action
    rank = state.admitted_r if stream == R else state.admitted_s
    last = rank + (n or 1)
    wm_us = setup.wm_us[STREAMS.index(stream)][last - 1]
    tuples = tuple(range(rank, last))
    worker, pairs = local.admit(state.workers[at], stream, tuples, wm_us, setup.content)
    state = with_worker(state, at, worker)
    if stream == R:
        return state._replace(admitted_r=last), pairs
    return state._replace(admitted_s=last), pairs


def _can_end(setup: Setup, state: State) -> Iterator[Action]:
    if setup.ends and not state.ended and not any(_can_admit(setup, state)):
        yield Action("end")


def _end(setup: Setup, state: State, _action: Action) -> Step:
    for stream in STREAMS:
        at = source(state, stream)
        lane, _ = lanes(state.workers[at], stream)
        lane = lane._replace(wm_us=END_US, heard_us=END_US)
        state = with_worker(state, at, with_lane(state.workers[at], stream, lane))
    return state._replace(ended=True), NO_PAIRS


# ------------------------------------------------------------------------------------- forwarding


def _can_forward(setup: Setup, state: State) -> Iterator[Action]:
    for at in range(len(state.workers)):
        for stream in STREAMS:
            yield from forwards(setup, state, at, stream)


def forwards(setup: Setup, state: State, at: int, stream: str) -> Iterator[Action]:
    """Blocks of a stream that one worker may send now."""
    if not sends(state, at, stream):
        return
    worker = state.workers[at]
    lane, _ = lanes(worker, stream)
    if not (lane.store or setup.empty_blocks) or local.unacknowledged(lane) >= setup.credit:
        return
    if setup.network.has_room(channel_of(state, boundary(at, stream), to_right=stream == R)):
        for n in sizes(setup, worker, stream):
            yield Action("forward", at, stream, n)


def _forward(setup: Setup, state: State, action: Action) -> Step:
    _, at, stream, n, _ = action
    worker, block = local.forward(state.workers[at], stream, n, setup.content, setup.rules)
    if setup.empty_blocks:
        lane, _ = lanes(worker, stream)
        worker = with_lane(worker, stream, lane._replace(told_us=block.wm_us))
    state = with_worker(state, at, worker)
    return send(setup, state, boundary(at, stream), block), NO_PAIRS


# -------------------------------------------------------------------------------------- receiving


def _arriving(setup: Setup, state: State) -> Iterator[tuple[int, int, int, Message]]:
    """Receiving worker, boundary, position in the channel, message."""
    for at in range(len(state.workers) - 1):
        for to_right, channel in ((True, state.right[at]), (False, state.left[at])):
            for position in setup.network.deliverable(channel):
                yield at + to_right, at, position, channel[position]


def _can_receive(setup: Setup, state: State) -> Iterator[Action]:
    for to, at, position, message in _arriving(setup, state):
        if not isinstance(message, Block):
            continue
        lane, _ = lanes(state.workers[to], message.stream)
        is_next = setup.rules.in_turn(lane, message)
        if not is_next and message.number > lane.received:
            continue
        if not setup.network.has_room(channel_of(state, at, to_right=message.stream == S)):
            continue
        yield from _deliveries(state, Action("receive", to, message.stream, position))


def _deliveries(state: State, action: Action) -> Iterator[Action]:
    yield action
    if state.repeats:
        yield action._replace(repeats=True)


def _taken(state: State, action: Action, at: int, to_right: bool) -> tuple[State, Message]:
    channel = channel_of(state, at, to_right)
    message = channel[action.n]
    if action.repeats:
        return state._replace(repeats=state.repeats - 1), message
    rest = channel[: action.n] + channel[action.n + 1 :]
    return with_channel(state, at, to_right, rest), message


def _receive(setup: Setup, state: State, action: Action) -> Step:
    to, stream = action.worker, action.stream
    at = boundary(to, local.other(stream))
    state, block = _taken(state, action, at, to_right=stream == R)
    assert isinstance(block, Block)
    worker = state.workers[to]
    pairs = NO_PAIRS
    if setup.rules.in_turn(lanes(worker, stream)[0], block):
        worker, pairs = local.receive(worker, block, setup.content, setup.rules)
    answer = local.receipt(worker, block, setup.hints)
    return send(setup, with_worker(state, to, worker), at, answer), pairs


def _can_acknowledge(setup: Setup, state: State) -> Iterator[Action]:
    for to, _, position, message in _arriving(setup, state):
        if isinstance(message, Ack):
            yield from _deliveries(state, Action("acknowledge", to, message.stream, position))


def _acknowledge(setup: Setup, state: State, action: Action) -> Step:
    to, stream = action.worker, action.stream
    state, ack = _taken(state, action, boundary(to, stream), to_right=stream == S)
    assert isinstance(ack, Ack)
    worker = local.acknowledged(state.workers[to], ack, setup.rules, setup.hints)
    return with_worker(state, to, worker), NO_PAIRS


# ---------------------------------------------------------------------- dropping, hearing, losing


def _can_drop(setup: Setup, state: State) -> Iterator[Action]:
    for at, worker in enumerate(state.workers):
        for stream in STREAMS:
            if local.can_be_dropped(worker, stream, setup.window_us, setup.content, setup.rules):
                yield Action("drop", at, stream)


def _drop(setup: Setup, state: State, action: Action) -> Step:
    worker, stream = state.workers[action.worker], action.stream
    horizon_us = setup.rules.drop_wm_us(worker, stream) - setup.window_us
    worker = local.drop(worker, stream, horizon_us, setup.content)
    return with_worker(state, action.worker, worker), NO_PAIRS


def _can_hear(setup: Setup, state: State) -> Iterator[Action]:
    if not setup.hints:
        return
    for at in range(len(state.workers) - 1):
        left, right = state.workers[at], state.workers[at + 1]
        if left.r.heard_us > right.r.heard_us:
            yield Action("hear", at + 1, R)
        if right.s.heard_us > left.s.heard_us:
            yield Action("hear", at, S)


def _hear(_setup: Setup, state: State, action: Action) -> Step:
    _, to, stream, *_ = action
    neighbour, _ = lanes(state.workers[to - 1 if stream == R else to + 1], stream)
    worker = local.hear(state.workers[to], stream, neighbour.heard_us)
    return with_worker(state, to, worker), NO_PAIRS


def _can_cut(_setup: Setup, state: State) -> Iterator[Action]:
    if state.cuts:
        for at, (right, left) in enumerate(zip(state.right, state.left, strict=True)):
            if right or left:
                yield Action("cut", at)


def _cut(setup: Setup, state: State, action: Action) -> Step:
    """Everything on the connection is lost; both sides send again what is not acknowledged."""
    at, rules = action.worker, setup.rules
    left, right = state.workers[at], state.workers[at + 1]
    again_r = tuple([rules.resent(copy, left) for copy in left.r.copies if copy.sent < 0])
    again_s = tuple([rules.resent(copy, right) for copy in right.s.copies if copy.sent < 0])
    state = with_channel(state, at, True, again_r)
    return with_channel(state, at, False, again_s)._replace(cuts=state.cuts - 1), NO_PAIRS


# ------------------------------------------------------------------------------------- the table


TABLE = {
    "admit": Transition(_can_admit, _admit),
    "end": Transition(_can_end, _end),
    "forward": Transition(_can_forward, _forward),
    "receive": Transition(_can_receive, _receive),
    "acknowledge": Transition(_can_acknowledge, _acknowledge),
    "drop": Transition(_can_drop, _drop),
    "hear": Transition(_can_hear, _hear),
    "cut": Transition(_can_cut, _cut),
    "merge": Transition(elastic.can_merge, elastic.merge),
    "split": Transition(elastic.can_split, elastic.split),
}


def possible(setup: Setup, state: State) -> Iterator[Action]:
    """Everything that may happen next."""
    for transition in (setup.table or TABLE).values():
        yield from transition.guard(setup, state)


def after(setup: Setup, state: State, action: Action) -> Step:
    """The state that follows, and the pairs that were found on the way."""
    return (setup.table or TABLE)[action.what].effect(setup, state, action)
