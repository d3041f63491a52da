"""The state of a chain: messages, workers, channels, and access to them.

Source: docs/join.md, section 3.

Rules of this file:

* This file holds data and access to data, and imports no other module of the room. Decisions are
  in ``rules``, actions of a worker in ``worker``, all transitions in ``chain``.
* A worker and a state are values. A tuple is its rank; ``Content`` answers questions about it.
* The two streams are two lanes of the same kind. Where they differ, a rule says so.
* A channel is the tuple of messages in it, which all go one way over one boundary.
* A state does not contain the emitted pairs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from model.vocabulary.join import END_US, NO_WATERMARK_US, R, S

Ranks = tuple[int, ...]
Pair = tuple[int, int]
"""Rank in R, rank in S."""
NO_PAIRS: tuple[Pair, ...] = ()

# ------------------------------------------------------------------------------------- messages


class Block(NamedTuple):
    """Tuples on their way to the next worker."""

    stream: str
    number: int
    """Number 1, 2, 3, ... within boundary and stream; 0 without numbers."""
    seen: int
    """Number of blocks of the other stream that the sender had received over this boundary."""
    tuples: Ranks
    wm_us: int
    """Watermark: every tuple of the stream below it has passed once this block is received."""


class Acknowledgement(NamedTuple):
    """A message to a block's sender: the block was joined and stored."""

    stream: str
    number: int
    sent: int
    """Number of blocks of the other stream that the receiver had sent over this boundary."""
    size: int
    """Number of tuples of the stream in the receiver's store; a hint."""


Message = Block | Acknowledgement
Channel = tuple[Message, ...]

# -------------------------------------------------------------------------------------- workers


class Copy(NamedTuple):
    """A copy of a block that was sent."""

    block: Block
    sent: int = -1
    """Field ``sent`` of the block's acknowledgement; -1 before it has come."""


Copies = tuple[Copy, ...]


class Lane(NamedTuple):
    """The part of a worker that belongs to one stream."""

    store: Ranks = ()
    """Stored tuples, oldest first."""
    copies: Copies = ()
    sent: int = 0
    received: int = 0
    wm_us: int = NO_WATERMARK_US
    """Watermark that has passed."""
    heard_us: int = NO_WATERMARK_US
    """Watermark of the stream at its source, as last heard; a hint."""
    neighbour: int = 0
    """Store size of the next worker, as last heard; a hint."""
    announced_us: int = NO_WATERMARK_US
    """Watermark of the last block sent, if empty blocks are in use."""


class Worker(NamedTuple):
    """A worker of the chain."""

    r: Lane = Lane()
    s: Lane = Lane()


def lanes(worker: Worker, stream: str) -> tuple[Lane, Lane]:
    """Return the lane of a stream, and the other one."""
    return (worker.r, worker.s) if stream == R else (worker.s, worker.r)


def with_lane(worker: Worker, stream: str, lane: Lane) -> Worker:
    """Return the worker with another lane of a stream."""
    return Worker(lane, worker.s) if stream == R else Worker(worker.r, lane)


def other(stream: str) -> str:
    """Return the stream that this one is joined with."""
    return S if stream == R else R


def unacknowledged(lane: Lane) -> int:
    """Return the number of blocks that count against the credit."""
    return sum([copy.sent < 0 for copy in lane.copies])


class Content(Protocol):
    """Access to the contents of tuples, which are named by their ranks."""

    def join(self, stream: str, tuples: Ranks, met: Ranks) -> tuple[Pair, ...]:
        """Return the pairs of tuples of a stream with tuples of the other one."""

    def least_us(self, stream: str, ranks: Ranks) -> int:
        """Return the least event time; ``END_US`` if there is no tuple."""

    def split_at(self, stream: str, ranks: Ranks, horizon_us: int) -> tuple[Ranks, Ranks]:
        """Return the tuples with an event time below the horizon, and the others, in order."""


class Listed(NamedTuple):
    """Content with the admitted tuples in lists: a join is a loop over both sides."""

    r_us: Sequence[int]
    """Event times of R, by rank."""
    s_us: Sequence[int]
    """Event times of S, by rank."""
    is_pair: Callable[[int, int], int]
    """Return the number of queries that have a pair as a result."""

    def join(self, stream: str, tuples: Ranks, met: Ranks) -> tuple[Pair, ...]:
        """Return the pairs of tuples of a stream with tuples of the other one."""
        if stream == R:
            return tuple([(r, s) for r in tuples for s in met if self.is_pair(r, s)])
        return tuple([(r, s) for s in tuples for r in met if self.is_pair(r, s)])

    def least_us(self, stream: str, ranks: Ranks) -> int:
        """Return the least event time; ``END_US`` if there is no tuple."""
        ts_us = self._ts_us(stream)
        return min([ts_us[rank] for rank in ranks], default=END_US)

    def split_at(self, stream: str, ranks: Ranks, horizon_us: int) -> tuple[Ranks, Ranks]:
        """Return the tuples with an event time below the horizon, and the others, in order."""
        ts_us = self._ts_us(stream)
        older = tuple([rank for rank in ranks if ts_us[rank] < horizon_us])
        return older, tuple([rank for rank in ranks if ts_us[rank] >= horizon_us])

    def _ts_us(self, stream: str) -> Sequence[int]:
        return self.r_us if stream == R else self.s_us


# ------------------------------------------------------------------------------------- channels


@dataclass(frozen=True, slots=True)
class Network:
    """The behaviour of channels: which messages may be taken out of them next.

    A block whose number was received before is a repeat; a block that comes too early waits.
    """

    order: str = "fifo"
    """``fifo`` or ``none``."""
    repeats: int = 0
    """Number of times that a message may be delivered and still stay in the channel."""
    cuts: int = 0
    """Number of times that a connection may be lost with everything in it, both ways."""

    def put(self, channel: Channel, message: Message) -> Channel:
        """Return the channel with one more message."""
        longer = (*channel, message)
        return longer if self.order != "none" else tuple(sorted(longer, key=_sort_key))

    def deliverable(self, channel: Channel) -> tuple[int, ...]:
        """Return the positions of messages that may come next; the first of equal messages."""
        if self.order == "fifo":
            return (0,) if channel else ()
        return tuple(n for n, each in enumerate(channel) if each not in channel[:n])


def _sort_key(message: Message) -> tuple[object, ...]:
    # Channels without order are equal if their messages are: any fixed order serves.
    return isinstance(message, Block), *message


IN_ORDER = Network()
UNORDERED = Network(order="none")
REPEATING = Network(order="none", repeats=1)
CUT = Network(cuts=1)

# ---------------------------------------------------------------------------------- the whole chain


class ChainState(NamedTuple):
    """The whole chain at one moment."""

    workers: tuple[Worker, ...]
    right: tuple[Channel, ...]
    """Channel with blocks of R and acknowledgements of S, by boundary."""
    left: tuple[Channel, ...]
    """Channel with blocks of S and acknowledgements of R, by boundary."""
    admitted_r: int = 0
    admitted_s: int = 0
    ended: bool = False
    repeats: int = 0
    """Number of messages that the network may still repeat."""
    cuts: int = 0
    """Number of connections that the network may still cut."""
    changes: int = 0
    """Number of merges and splits that may still happen."""
    phase: str = ""
    """Progress of a change at the right end (``live``); the two queues belong to it."""
    queue: Ranks = ()
    """Tuples of S between the source and the worker that was the end at the start."""
    new_queue: Ranks = ()
    """Tuples of S between the source and the worker that is the end after the change."""


class Action(NamedTuple):
    """A possible action, with its place."""

    what: str
    worker: int = -1
    """Worker where it happens; the worker left of the boundary for a cut."""
    stream: str = ""
    n: int = 0
    """Tuples of a block, or admitted at once (0: one); position of a message in its channel."""
    repeats: bool = False
    """True if the network delivers the message and keeps it."""


def is_quiet(state: ChainState) -> bool:
    """Return whether no message is under way and no copy is kept."""
    is_copied = any(worker.r.copies or worker.s.copies for worker in state.workers)
    return not (is_copied or any(state.right) or any(state.left))


def boundary(worker: int, stream: str) -> int:
    """Return the boundary over which a worker sends a stream."""
    return worker if stream == R else worker - 1


def source(state: ChainState, stream: str) -> int:
    """Return the worker at which a stream enters."""
    return 0 if stream == R else len(state.workers) - 1


def sends(state: ChainState, worker: int, stream: str) -> bool:
    """Return whether there is a boundary over which a worker sends a stream."""
    return worker < len(state.workers) - 1 if stream == R else worker > 0


def goes_right(message: Message) -> bool:
    """Return whether a message is a block of R or an acknowledgement of S."""
    return (message.stream == R) == isinstance(message, Block)


def channel_of(state: ChainState, at: int, to_right: bool) -> Channel:
    """Return one of the two channels of a boundary."""
    return (state.right if to_right else state.left)[at]


def with_channel(state: ChainState, at: int, to_right: bool, channel: Channel) -> ChainState:
    """Return the state with another channel."""
    channels = state.right if to_right else state.left
    changed = (*channels[:at], channel, *channels[at + 1 :])
    workers, right, left = state[:3]
    # Twice as fast as ``_replace``, and the most frequent call of a long run.
    if to_right:
        return ChainState(workers, changed, left, *state[3:])
    return ChainState(workers, right, changed, *state[3:])


def with_worker(state: ChainState, number: int, worker: Worker) -> ChainState:
    """Return the state with another worker."""
    workers = state.workers
    return ChainState((*workers[:number], worker, *workers[number + 1 :]), *state[1:])
