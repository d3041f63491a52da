"""The actions of one worker of the chain, and when it sends blocks of which size.

Source: docs/join.md, sections 3 and 5.

Rules of this file:

* An action is a function that returns the next worker, the message that it sends and the pairs
  that it finds. There is no channel and no clock.
* The time and size of a block do not matter for safety: with ``Setup.free`` any block may be sent
  at any time. Knowledge about other workers is a hint; a wrong one costs time, not pairs.
"""

from collections.abc import Iterator

from model.join.rules import Rules, Setup
from model.join.state import (
    Acknowledgement,
    Block,
    Content,
    Copy,
    Lane,
    Pair,
    Ranks,
    Worker,
    lanes,
    with_lane,
)

# -------------------------------------------------------------------------------------- actions


def admit(
    worker: Worker, stream: str, tuples: Ranks, wm_us: int, content: Content
) -> tuple[Worker, tuple[Pair, ...]]:
    """InR, InS: admit tuples one after the other, and set the stream's watermark to ``wm_us``."""
    lane, opposite = lanes(worker, stream)
    pairs = content.join(stream, tuples, opposite.store)
    lane = lane._replace(store=lane.store + tuples, wm_us=wm_us, heard_us=wm_us)
    return with_lane(worker, stream, lane), pairs


def forward(
    worker: Worker, stream: str, n: int, content: Content, rules: Rules
) -> tuple[Worker, Block]:
    """FwdR, FwdS: send the oldest n tuples."""
    lane, opposite = lanes(worker, stream)
    leaving, staying = lane.store[:n], lane.store[n:]
    wm_us = min(lane.wm_us, content.least_us(stream, staying))
    number = lane.sent + 1 if rules.numbered else 0
    block = Block(stream, number, opposite.received, leaving, wm_us)
    lane = lane._replace(store=staying, copies=(*lane.copies, Copy(block)), sent=number)
    return with_lane(worker, stream, lane), block


def receive(
    worker: Worker, block: Block, content: Content, rules: Rules
) -> tuple[Worker, tuple[Pair, ...]]:
    """RecvR, RecvS: join and store a block; the acknowledgement is :func:`receipt`."""
    lane, opposite = lanes(worker, block.stream)
    met = opposite.store
    for copy in rules.visible(worker, block):
        met += copy.block.tuples
    pairs = content.join(block.stream, block.tuples, met)
    lane = lane._replace(
        store=lane.store + block.tuples,
        received=block.number,
        wm_us=max(lane.wm_us, block.wm_us),
    )
    return _release(with_lane(worker, block.stream, lane)), pairs


def receipt(worker: Worker, block: Block, with_size: bool) -> Acknowledgement:
    """Return the acknowledgement of a block that was received."""
    lane, opposite = lanes(worker, block.stream)
    size = len(lane.store) if with_size else 0
    return Acknowledgement(block.stream, block.number, opposite.sent, size)


def acknowledge(worker: Worker, ack: Acknowledgement, rules: Rules, with_size: bool) -> Worker:
    """RecvACK: mark a copy as acknowledged, and delete what no later tuple can need."""
    lane, _ = lanes(worker, ack.stream)
    lane = lane._replace(copies=rules.acknowledge(lane.copies, ack))
    if with_size:
        lane = lane._replace(neighbour=ack.size)
    return _release(with_lane(worker, ack.stream, lane))


def _release(worker: Worker) -> Worker:
    """Delete the copies that no later tuple can need.

    A copy of S waits until every block of R has come that was sent before its acknowledgement.
    """
    r, s = worker
    if r.copies:
        r = r._replace(copies=tuple([copy for copy in r.copies if copy.sent < 0]))
    if s.copies:
        kept = [copy for copy in s.copies if not 0 <= copy.sent <= r.received]
        s = s._replace(copies=tuple(kept))
    return Worker(r, s)


def droppable(worker: Worker, stream: str, window_us: int, content: Content, rules: Rules) -> Ranks:
    """Return the stored tuples of a stream that no later tuple can match."""
    lane, _ = lanes(worker, stream)
    horizon_us = rules.drop_wm_us(worker, stream) - window_us
    return content.split_at(stream, lane.store, horizon_us)[0]


def drop(worker: Worker, stream: str, horizon_us: int, content: Content) -> Worker:
    """DropR, DropS: remove what lies below the horizon from the store; copies stay as they are."""
    lane, _ = lanes(worker, stream)
    _, kept = content.split_at(stream, lane.store, horizon_us)
    return with_lane(worker, stream, lane._replace(store=kept))


def hear(worker: Worker, stream: str, heard_us: int) -> Worker:
    """Take a hint: the watermark of a stream at its source."""
    lane, _ = lanes(worker, stream)
    if heard_us <= lane.heard_us:
        return worker
    return with_lane(worker, stream, lane._replace(heard_us=heard_us))


def hear_size(worker: Worker, stream: str, size: int) -> Worker:
    """Take a hint: the size of the next worker's store of a stream."""
    lane, _ = lanes(worker, stream)
    return (
        worker
        if size == lane.neighbour
        else with_lane(worker, stream, lane._replace(neighbour=size))
    )


# -------------------------------------------------------------------------------------- sending


def sizes(setup: Setup, worker: Worker, stream: str) -> Iterator[int]:
    """Yield the sizes that the next block may have, in tuples."""
    lane, _ = lanes(worker, stream)
    most = min(setup.block_size, len(lane.store))
    if setup.free:
        yield from range(1, most + 1)
    elif most and (is_unbalanced(setup, lane) or is_overdue(setup, worker, stream)):
        yield most
    if setup.empty_blocks and not lane.copies:
        passing_us = min(lane.wm_us, setup.content.least_us(stream, lane.store))
        if passing_us > lane.announced_us:
            yield 0


def is_unbalanced(setup: Setup, lane: Lane) -> bool:
    """Return whether the next worker will have at least a block less of the stream."""
    size, zeta = len(lane.store), setup.block_size
    if size < zeta:
        return False
    under_way = sum([len(copy.block.tuples) for copy in lane.copies if copy.sent < 0])
    return size - (lane.neighbour + under_way) >= zeta


def is_overdue(setup: Setup, worker: Worker, stream: str) -> bool:
    """Return whether a stored tuple must move on: the other stream is known to have passed it."""
    lane, opposite = lanes(worker, stream)
    least_us = setup.content.least_us(stream, lane.store)
    return setup.rules.forces and least_us + setup.window_us < opposite.heard_us
