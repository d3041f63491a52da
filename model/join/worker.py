"""One worker of the chain: what each action does to it.

Source: docs/join.md, section 3.

Rules of this file:

* A worker is a value; an action is a function that returns the next one, with what it sends and
  the pairs it finds. No channel, no clock.
* A tuple is its rank. What it contains is asked of ``Content``.
* The two streams are two lanes of the same make. Where they differ, a rule says so.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from model.join.rules import Rules
from model.vocabulary.join import END_US, NO_WATERMARK_US, R, S

Ranks = tuple[int, ...]
Pair = tuple[int, int]
"""Rank in R, rank in S."""


class Block(NamedTuple):
    """Tuples on their way to the next worker."""

    stream: str
    number: int
    """1, 2, 3, ... within boundary and stream; 0 without numbers."""
    seen: int
    """Blocks of the other stream that the sender had received over this boundary."""
    tuples: Ranks
    wm_us: int
    """Every tuple of the stream below it has passed once this block is received."""


class Ack(NamedTuple):
    """A block was joined and stored."""

    stream: str
    number: int
    sent: int
    """Blocks of the other stream that the receiver had sent over this boundary."""
    size: int
    """Tuples of the stream in the receiver's store; a hint."""


Message = Block | Ack


class Copy(NamedTuple):
    """A block that was sent; ``sent`` is that of its acknowledgement, -1 before."""

    block: Block
    sent: int = -1


Copies = tuple[Copy, ...]


class Lane(NamedTuple):
    """What a worker holds of one stream."""

    store: Ranks = ()
    """Oldest first."""
    copies: Copies = ()
    sent: int = 0
    received: int = 0
    wm_us: int = NO_WATERMARK_US
    """Watermark that has passed."""
    heard_us: int = NO_WATERMARK_US
    """Watermark of the stream at its source, as last heard; a hint."""
    neighbour: int = 0
    """Store size of the next worker, as last heard; a hint."""
    told_us: int = NO_WATERMARK_US
    """Watermark of the last block sent, where empty blocks are in use."""
    waiting: tuple[Block, ...] = ()
    """Received in part: only planted bugs do that."""


class Worker(NamedTuple):
    """A worker of the chain."""

    r: Lane = Lane()
    s: Lane = Lane()


class Content(Protocol):
    """What is asked about the contents of tuples, which go by their ranks."""

    def join(self, stream: str, tuples: Ranks, met: Ranks) -> tuple[Pair, ...]:
        """Pairs of tuples of a stream with tuples of the other one."""
        ...

    def least_us(self, stream: str, ranks: Ranks) -> int:
        """Least event time; ``END_US`` of no tuples."""
        ...

    def parted(self, stream: str, ranks: Ranks, horizon_us: int) -> tuple[Ranks, Ranks]:
        """Those with an event time below the horizon, and the others, in their order."""
        ...


class Listed(NamedTuple):
    """The admitted tuples as lists: a join is a loop over both sides."""

    r_us: Sequence[int]
    """Event times."""
    s_us: Sequence[int]
    is_pair: Callable[[int, int], int]
    """How many queries a pair is a result of."""

    def join(self, stream: str, tuples: Ranks, met: Ranks) -> tuple[Pair, ...]:
        """Pairs of tuples of a stream with tuples of the other one."""
        if stream == R:
            return tuple([(r, s) for r in tuples for s in met if self.is_pair(r, s)])
        return tuple([(r, s) for s in tuples for r in met if self.is_pair(r, s)])

    def least_us(self, stream: str, ranks: Ranks) -> int:
        """Least event time; ``END_US`` of no tuples."""
        ts_us = self._ts_us(stream)
        return min([ts_us[rank] for rank in ranks], default=END_US)

    def parted(self, stream: str, ranks: Ranks, horizon_us: int) -> tuple[Ranks, Ranks]:
        """Those with an event time below the horizon, and the others, in their order."""
        ts_us = self._ts_us(stream)
        older = tuple([rank for rank in ranks if ts_us[rank] < horizon_us])
        return older, tuple([rank for rank in ranks if ts_us[rank] >= horizon_us])

    def _ts_us(self, stream: str) -> Sequence[int]:
        return self.r_us if stream == R else self.s_us


def lanes(worker: Worker, stream: str) -> tuple[Lane, Lane]:
    """The lane of a stream, and the other one."""
    return (worker.r, worker.s) if stream == R else (worker.s, worker.r)


def with_lane(worker: Worker, stream: str, lane: Lane) -> Worker:
    """The worker with another lane of a stream."""
    return Worker(lane, worker.s) if stream == R else Worker(worker.r, lane)


def other(stream: str) -> str:
    """The stream that this one is joined with."""
    return S if stream == R else R


def unacknowledged(lane: Lane) -> int:
    """Blocks that count against the credit."""
    return sum([copy.sent < 0 for copy in lane.copies])


# -------------------------------------------------------------------------------------- actions


def admit(
    worker: Worker, stream: str, tuples: Ranks, wm_us: int, content: Content
) -> tuple[Worker, tuple[Pair, ...]]:
    """InR, InS: tuples enter one after the other; the watermark of the stream is then ``wm_us``."""
    lane, opposite = lanes(worker, stream)
    pairs = content.join(stream, tuples, opposite.store)
    lane = lane._replace(store=lane.store + tuples, wm_us=wm_us, heard_us=wm_us)
    return with_lane(worker, stream, lane), pairs


def forward(
    worker: Worker, stream: str, n: int, content: Content, rules: Rules
) -> tuple[Worker, Block]:
    """FwdR, FwdS: the oldest n tuples leave."""
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
    """RecvR, RecvS, without the acknowledgement."""
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
    return _release(with_lane(worker, block.stream, lane), rules), pairs


def receipt(worker: Worker, block: Block, with_size: bool) -> Ack:
    """The acknowledgement of a block that was received."""
    lane, opposite = lanes(worker, block.stream)
    size = len(lane.store) if with_size else 0
    return Ack(block.stream, block.number, opposite.sent, size)


def acknowledged(worker: Worker, ack: Ack, rules: Rules, with_size: bool) -> Worker:
    """RecvACK: a copy has done its duty, or will have when blocks of R have come."""
    lane, _ = lanes(worker, ack.stream)
    lane = lane._replace(copies=rules.acknowledge(lane.copies, ack))
    if with_size:
        lane = lane._replace(neighbour=ack.size)
    return _release(with_lane(worker, ack.stream, lane), rules)


def _release(worker: Worker, rules: Rules) -> Worker:
    """Without the copies that nothing can ask for any more."""
    r, s = worker
    if r.copies and any(copy.sent >= 0 for copy in r.copies):
        r = r._replace(copies=tuple([copy for copy in r.copies if copy.sent < 0]))
    if s.copies:
        kept = [copy for copy in s.copies if not rules.is_released(copy, r.received)]
        s = s._replace(copies=tuple(kept))
    return Worker(r, s)


def can_be_dropped(
    worker: Worker, stream: str, window_us: int, content: Content, rules: Rules
) -> Ranks:
    """Stored tuples of a stream that nothing to come can match."""
    lane, _ = lanes(worker, stream)
    horizon_us = rules.drop_wm_us(worker, stream) - window_us
    return content.parted(stream, lane.store, horizon_us)[0]


def drop(worker: Worker, stream: str, horizon_us: int, content: Content) -> Worker:
    """DropR, DropS: what lies below the horizon leaves the store; copies stay as they are."""
    lane, _ = lanes(worker, stream)
    _, kept = content.parted(stream, lane.store, horizon_us)
    return with_lane(worker, stream, lane._replace(store=kept))


def hear(worker: Worker, stream: str, heard_us: int) -> Worker:
    """The watermark of a stream at its source has come by as a hint."""
    lane, _ = lanes(worker, stream)
    if heard_us <= lane.heard_us:
        return worker
    return with_lane(worker, stream, lane._replace(heard_us=heard_us))


def told(worker: Worker, stream: str, size: int) -> Worker:
    """The size of the next worker's store of a stream has come by as a hint."""
    lane, _ = lanes(worker, stream)
    return (
        worker
        if size == lane.neighbour
        else with_lane(worker, stream, lane._replace(neighbour=size))
    )
