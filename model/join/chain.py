"""The chain as a transition system: workers, channels, and every possible action.

Source: docs/join.md, sections 3 to 7.

Rules of this file:

* ``TABLE`` is the protocol: an action is possible if its guard lists it, and its effect is one
  step. Nothing else changes a state.
* An effect returns the next state and the pairs that were found on the way.
* The actions of one worker stand in ``worker``, decisions in ``rules``, channels in ``state``.
* A chain is quiet before and after a merge or a split: no message, no copy. Block numbers start
  again. A merge owes the pairs that the boundary kept apart. A split never places two tuples that
  have met so that they could meet again. ``resize`` is a run of merges or of splits.

Theory of operation: ``Setup`` says how many workers, which tuples, which network, and whether
blocks are sent freely or by load. The explorer takes every action, ``run`` takes a random one,
``replay`` takes those of a recorded run.
"""

from collections.abc import Iterator, Mapping

from model.join import worker as local
from model.join.rules import Setup, Step, Transition, send
from model.join.state import (
    NO_PAIRS,
    Acknowledgement,
    Action,
    Block,
    ChainState,
    Lane,
    Message,
    Ranks,
    Worker,
    boundary,
    channel_of,
    is_quiet,
    lanes,
    other,
    sends,
    source,
    unacknowledged,
    with_channel,
    with_lane,
    with_worker,
)
from model.join.worker import sizes
from model.vocabulary.join import END_US, STREAMS, R, S

# ------------------------------------------------------------------------------ admission and end


def _can_admit(setup: Setup, state: ChainState) -> Iterator[Action]:
    if state.admitted_r < len(setup.wm_us[0]):
        yield Action("admit", source(state, R), R)
    if state.admitted_s < len(setup.wm_us[1]):
        yield Action("admit", source(state, S), S)


def _admit(setup: Setup, state: ChainState, action: Action) -> Step:
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


def _can_end(setup: Setup, state: ChainState) -> Iterator[Action]:
    if setup.ends and not state.ended and not any(_can_admit(setup, state)):
        yield Action("end")


def _end(setup: Setup, state: ChainState, _action: Action) -> Step:
    state = raise_watermarks(state, dict.fromkeys(STREAMS, END_US))
    return state._replace(ended=True), NO_PAIRS


def raise_watermarks(state: ChainState, floors_us: Mapping[str, int]) -> ChainState:
    """Move the watermarks of streams up to their floors, at the workers where they enter."""
    for stream, floor_us in floors_us.items():
        at = source(state, stream)
        lane, _ = lanes(state.workers[at], stream)
        if floor_us > lane.wm_us:
            heard_us = max(floor_us, lane.heard_us)
            lane = lane._replace(wm_us=floor_us, heard_us=heard_us)
            state = with_worker(state, at, with_lane(state.workers[at], stream, lane))
    return state


# ------------------------------------------------------------------------------------- forwarding


def _can_forward(setup: Setup, state: ChainState) -> Iterator[Action]:
    for at in range(len(state.workers)):
        for stream in STREAMS:
            yield from forwards(setup, state, at, stream)


def forwards(setup: Setup, state: ChainState, at: int, stream: str) -> Iterator[Action]:
    """Yield the blocks of a stream that one worker may send now."""
    if not sends(state, at, stream):
        return
    worker = state.workers[at]
    lane, _ = lanes(worker, stream)
    if not (lane.store or setup.empty_blocks) or unacknowledged(lane) >= setup.credit:
        return
    for n in sizes(setup, worker, stream):
        yield Action("forward", at, stream, n)


def _forward(setup: Setup, state: ChainState, action: Action) -> Step:
    _, at, stream, n, _ = action
    worker, block = local.forward(state.workers[at], stream, n, setup.content, setup.rules)
    if setup.empty_blocks:
        lane, _ = lanes(worker, stream)
        worker = with_lane(worker, stream, lane._replace(announced_us=block.wm_us))
    state = with_worker(state, at, worker)
    return send(setup, state, boundary(at, stream), block), NO_PAIRS


# -------------------------------------------------------------------------------------- receiving


def _arrivals(setup: Setup, state: ChainState) -> Iterator[tuple[int, int, Message]]:
    """Yield receiving worker, position in the channel and message."""
    for at in range(len(state.workers) - 1):
        for to_right, channel in ((True, state.right[at]), (False, state.left[at])):
            for position in setup.network.deliverable(channel):
                yield at + to_right, position, channel[position]


def _can_receive(setup: Setup, state: ChainState) -> Iterator[Action]:
    for to, position, message in _arrivals(setup, state):
        if not isinstance(message, Block):
            continue
        lane, _ = lanes(state.workers[to], message.stream)
        is_next = setup.rules.in_turn(lane, message)
        if not is_next and message.number > lane.received:
            continue
        yield from _deliveries(state, Action("receive", to, message.stream, position))


def _deliveries(state: ChainState, action: Action) -> Iterator[Action]:
    yield action
    if state.repeats:
        yield action._replace(repeats=True)


def _take(state: ChainState, action: Action, at: int, to_right: bool) -> tuple[ChainState, Message]:
    channel = channel_of(state, at, to_right)
    message = channel[action.n]
    if action.repeats:
        return state._replace(repeats=state.repeats - 1), message
    rest = channel[: action.n] + channel[action.n + 1 :]
    return with_channel(state, at, to_right, rest), message


def _receive(setup: Setup, state: ChainState, action: Action) -> Step:
    to, stream = action.worker, action.stream
    at = boundary(to, other(stream))
    state, block = _take(state, action, at, to_right=stream == R)
    assert isinstance(block, Block)
    worker = state.workers[to]
    pairs = NO_PAIRS
    if setup.rules.in_turn(lanes(worker, stream)[0], block):
        worker, pairs = local.receive(worker, block, setup.content, setup.rules)
    answer = local.receipt(worker, block, setup.hints)
    return send(setup, with_worker(state, to, worker), at, answer), pairs


def _can_acknowledge(setup: Setup, state: ChainState) -> Iterator[Action]:
    for to, position, message in _arrivals(setup, state):
        if isinstance(message, Acknowledgement):
            yield from _deliveries(state, Action("acknowledge", to, message.stream, position))


def _acknowledge(setup: Setup, state: ChainState, action: Action) -> Step:
    to, stream = action.worker, action.stream
    state, ack = _take(state, action, boundary(to, stream), to_right=stream == S)
    assert isinstance(ack, Acknowledgement)
    worker = local.acknowledge(state.workers[to], ack, setup.rules, setup.hints)
    return with_worker(state, to, worker), NO_PAIRS


# ---------------------------------------------------------------------- dropping, hearing, losing


def _can_drop(setup: Setup, state: ChainState) -> Iterator[Action]:
    for at, worker in enumerate(state.workers):
        for stream in STREAMS:
            if local.droppable(worker, stream, setup.window_us, setup.content, setup.rules):
                yield Action("drop", at, stream)


def _drop(setup: Setup, state: ChainState, action: Action) -> Step:
    worker, stream = state.workers[action.worker], action.stream
    horizon_us = setup.rules.drop_wm_us(worker, stream) - setup.window_us
    worker = local.drop(worker, stream, horizon_us, setup.content)
    return with_worker(state, action.worker, worker), NO_PAIRS


def _can_hear(setup: Setup, state: ChainState) -> Iterator[Action]:
    if not setup.hints:
        return
    for at in range(len(state.workers) - 1):
        left, right = state.workers[at], state.workers[at + 1]
        if left.r.heard_us > right.r.heard_us:
            yield Action("hear", at + 1, R)
        if right.s.heard_us > left.s.heard_us:
            yield Action("hear", at, S)


def _hear(_setup: Setup, state: ChainState, action: Action) -> Step:
    _, to, stream, *_ = action
    neighbour, _ = lanes(state.workers[to - 1 if stream == R else to + 1], stream)
    worker = local.hear(state.workers[to], stream, neighbour.heard_us)
    return with_worker(state, to, worker), NO_PAIRS


def _can_cut(_setup: Setup, state: ChainState) -> Iterator[Action]:
    if state.cuts:
        for at, (right, left) in enumerate(zip(state.right, state.left, strict=True)):
            if right or left:
                yield Action("cut", at)


def _cut(setup: Setup, state: ChainState, action: Action) -> Step:
    """Lose everything on a connection; both sides send again what is not acknowledged."""
    at, rules = action.worker, setup.rules
    left, right = state.workers[at], state.workers[at + 1]
    again_r = tuple([rules.resent(copy, left) for copy in left.r.copies if copy.sent < 0])
    again_s = tuple([rules.resent(copy, right) for copy in right.s.copies if copy.sent < 0])
    state = with_channel(state, at, True, again_r)
    return with_channel(state, at, False, again_s)._replace(cuts=state.cuts - 1), NO_PAIRS


# ------------------------------------------------------------------ more and fewer workers


def can_merge(_setup: Setup, state: ChainState) -> Iterator[Action]:
    """Yield a merge for each pair of neighbours."""
    if state.changes and is_quiet(state):
        for at in range(len(state.workers) - 1):
            yield Action("merge", at)


def merge(setup: Setup, state: ChainState, action: Action) -> Step:
    """Merge two neighbours; R of the left worker and S of the right one meet now."""
    left, right = state.workers[action.worker], state.workers[action.worker + 1]
    pairs = setup.content.join(R, left.r.store, right.s.store)
    return _replace_workers(state, action.worker, 2, (merge_workers(left, right),)), pairs


def merge_workers(left: Worker, right: Worker) -> Worker:
    """Return two workers as one: older tuples of R lie further right, of S further left.

    What has been at one of them has been at the new worker, so the higher watermarks hold.
    """
    return Worker(
        left.r._replace(
            store=right.r.store + left.r.store, heard_us=max(left.r.heard_us, right.r.heard_us)
        ),
        right.s._replace(
            store=left.s.store + right.s.store, heard_us=max(left.s.heard_us, right.s.heard_us)
        ),
    )


def can_split(_setup: Setup, state: ChainState) -> Iterator[Action]:
    """Yield the splits of every worker: n of R go right and S stays, or R goes right with n of S.

    The tuples of R that go right are the oldest ones, those of S the newest.
    """
    if state.changes and is_quiet(state):
        for at, worker in enumerate(state.workers):
            for n in range(len(worker.r.store) + 1):
                yield Action("split", at, R, n)
            for n in range(1, len(worker.s.store) + 1):
                yield Action("split", at, S, n)


def split(setup: Setup, state: ChainState, action: Action) -> Step:
    """Split one worker into two; no r ends up left of an s that it met."""
    _, at, stream, n, _ = action
    r, s = state.workers[at].r.store, state.workers[at].s.store
    if stream == R:
        return _split_into(setup, state, at, (r[n:], s), (r[:n], s[:0])), NO_PAIRS
    kept = len(s) - n
    return _split_into(setup, state, at, (r[:0], s[:kept]), (r, s[kept:])), NO_PAIRS


def _split_into(
    setup: Setup, state: ChainState, at: int, left: tuple[Ranks, Ranks], right: tuple[Ranks, Ranks]
) -> ChainState:
    """Replace a worker by two with these stores of R and of S; both know what the worker knew.

    The watermark of a store that has not passed the other worker yet is lowered to its tuples.
    """
    worker, content = state.workers[at], setup.content
    parts = [
        Worker(worker.r._replace(store=r), worker.s._replace(store=s)) for r, s in (left, right)
    ]
    r_us = min(worker.r.wm_us, content.least_us(R, left[0]))
    s_us = min(worker.s.wm_us, content.least_us(S, right[1]))
    parts[0] = parts[0]._replace(s=parts[0].s._replace(wm_us=s_us))
    parts[1] = parts[1]._replace(r=parts[1].r._replace(wm_us=r_us))
    return _replace_workers(state, at, 1, tuple(parts))


def _replace_workers(state: ChainState, at: int, count: int, new: tuple[Worker, ...]) -> ChainState:
    workers = (*state.workers[:at], *new, *state.workers[at + count :])
    channels = ((),) * (len(workers) - 1)
    return state._replace(
        workers=tuple(Worker(_renumber(worker.r), _renumber(worker.s)) for worker in workers),
        right=channels,
        left=channels,
        changes=state.changes - 1,
    )


def _renumber(lane: Lane) -> Lane:
    return lane._replace(sent=0, received=0, neighbour=0)


def resize(setup: Setup, state: ChainState, workers: int) -> Step:
    """Merge or split evenly until there are so many workers (docs/join.md, section 14)."""
    before, found, changes, at = len(state.workers), NO_PAIRS, state.changes, 0
    for n in range(min(before, workers)):
        # The old workers that become this one, or the parts that this one becomes; one remains.
        large, small = max(before, workers), min(before, workers)
        for _ in range((n + 1) * large // small - n * large // small - 1):
            if workers < before:
                action = Action("merge", at)
            else:
                # All of R goes right and S stays, so the last part has R and the first one S.
                action = Action("split", at, R, len(state.workers[at].r.store))
            state, pairs = after(setup, state, action)
            found += pairs
            at += workers > before
        at += 1
    return state._replace(changes=changes), found


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
    "merge": Transition(can_merge, merge),
    "split": Transition(can_split, split),
}


def possible_actions(setup: Setup, state: ChainState) -> Iterator[Action]:
    """Yield every possible action."""
    for transition in (setup.table or TABLE).values():
        yield from transition.guard(setup, state)


def after(setup: Setup, state: ChainState, action: Action) -> Step:
    """Return the state that follows an action, and the pairs that were found on the way."""
    return (setup.table or TABLE)[action.what].effect(setup, state, action)
