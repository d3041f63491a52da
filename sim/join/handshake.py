"""A handshake join as the machine of a timed chain: the rival that S2J is measured against.

Source: J. Teubner and R. Mueller, "How soccer players would do stream joins", SIGMOD 2011.

Rules of this file:

* Tuples move one by one. A worker compares each with every tuple of the other stream that it
  holds; there is no index.
* A worker sends its oldest tuple on if it holds more tuples of the stream than its neighbour does,
  or if the other stream has moved past the tuple.
* R moves to the right, S to the left. A worker keeps a copy of a tuple of S that it has sent until
  the neighbour acknowledges it; tuples of R need no copy, because messages between two workers
  arrive in the order in which they were sent.
* A tuple is dropped where its stream leaves the chain, and nowhere else: it has then met every
  tuple of the other stream.
* Workers neither come nor go, and blocks have one tuple.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from model.join.oracle import Gate
from model.join.state import Ranks, other
from model.vocabulary import Event, JoinConfig, Step
from model.vocabulary.join import END_US, NO_WATERMARK_US, STREAMS, R, S
from model.vocabulary.settings import require
from sim.join.content import Index, RankArray
from sim.join.machine import ChainGauges, FoundPairs, Sent, Service
from sim.join.tuning import ChainTuning

EMPTY = RankArray()


class Message(NamedTuple):
    """A message between neighbours: a tuple that moves on, or the acknowledgement of one."""

    stream: str
    """Stream of the tuple that moves or that is acknowledged."""
    rank: int | None
    """Rank of the tuple that moves; ``None`` for an acknowledgement."""
    number: int
    """Number of the message among those from this worker to this neighbour."""
    heard_us: int
    """Sender's view of the watermark of the stream that moves in the message's direction."""
    size: int
    """Number of tuples that the sender holds of the stream in the other direction."""


class Core(NamedTuple):
    """A worker: what it holds, and what it knows of its neighbours."""

    store: dict[str, RankArray]
    """Tuples of each stream, the oldest first."""
    copies: RankArray
    """Tuples of S that were sent and are not acknowledged, the oldest first."""
    heard_us: dict[str, int]
    """Watermark of each stream, as far as the worker knows."""
    sizes: dict[str, int]
    """Number of tuples of each stream that the next worker in its direction holds."""
    sent: dict[int, int]
    """Number of messages sent, by neighbour."""
    received: dict[int, int]
    """Number of messages received, by neighbour."""

    def copy(self) -> "Core":
        """Return a copy that does not change with this one."""
        store, copies, heard_us, sizes, sent, received = self
        return Core(dict(store), copies, dict(heard_us), dict(sizes), dict(sent), dict(received))


class HandshakeChain:
    """A chain of workers that hold the windows and pass every tuple on, one by one.

    Raises ``ValueError`` with one sentence if workers are to come and go, or steps to be recorded.
    """

    def __init__(self, config: JoinConfig, tuning: ChainTuning) -> None:
        require(not tuning.control.scale, "scale", "yes", "no for a handshake join")
        require(not tuning.record, "record", "yes", "no for a handshake join")
        self._window_us = config.window_us
        self._index = Index(config, is_indexed=False)
        self._gate = Gate(config)
        self._cores = [
            Core(
                dict.fromkeys(STREAMS, EMPTY),
                EMPTY,
                dict.fromkeys(STREAMS, NO_WATERMARK_US),
                dict.fromkeys(STREAMS, 0),
                {},
                {},
            )
            for _ in range(config.workers)
        ]
        self._epoch, self._flushes, self._forwards = 0, False, True
        self._flying = 0  # number of messages sent and not received
        self._keep()

    # ---------------------------------------------------------------------------- an epoch

    def begin(self, epoch: int, *, flush: bool) -> None:
        """Begin an epoch with the state of the chain at the last commit."""
        self._gate.go_back(self._let_in)
        self._cores = [core.copy() for core in self._kept]
        for core in self._cores:
            core.sent.clear()
            core.received.clear()
        for stream, floor_us in self._gate.begin_epoch().items():
            heard_us = self._cores[0 if stream == R else -1].heard_us
            heard_us[stream] = max(heard_us[stream], floor_us)
        self._epoch, self._flushes, self._forwards = epoch, flush, True
        self._flying = 0

    def end_intake(self) -> None:
        """Move no more tuples for balance."""
        self._forwards = self._flushes

    def is_over(self) -> bool:
        """Return whether no message is on its way and, after a flush, nothing is held."""
        is_quiet = not self._flying
        return is_quiet and not (any(self._held()) if self._flushes else self._forwards)

    def commit(self) -> Sequence[Step]:
        """Keep the state of the chain; return the rejections of the epoch."""
        steps = self._gate.rejected[self._let_in.rejected :]
        self._keep()
        return steps

    def _keep(self) -> None:
        self._kept = [core.copy() for core in self._cores]
        self._let_in = self._gate.mark()

    def resize(self, workers: int) -> Service:
        """Refuse: the number of workers is fixed."""
        raise NotImplementedError(workers)

    def set_block_size(self, block_size: int) -> None:
        """Do nothing: a message has one tuple."""

    def gauges(self) -> ChainGauges:
        """Return the gauges of the chain."""
        lowest_us = min(self._cores[0].heard_us[R], self._cores[-1].heard_us[S])
        return ChainGauges(self._held(), lowest_us)

    def _held(self) -> list[int]:
        return [sum([len(store) for store in core.store.values()]) for core in self._cores]

    # -------------------------------------------------------------------------------- services

    def admit(self, worker: int, stream: str, events: Sequence[Event]) -> Service:
        """Admit arrivals of a stream or reject them; join the admitted ones."""
        tuples, watermarks_us, _ = self._gate.admitted[stream]
        first = len(tuples)
        self._gate.offer(stream, self._epoch, events)
        if len(tuples) > first:
            self._index.add(stream, first, tuples[first:], self._epoch)
            self._cores[worker].heard_us[stream] = watermarks_us[-1]
        return self._served(worker, stream, range(first, len(tuples)))

    def receive(self, worker: int, sender: int, message: object) -> Service:
        """Take a tuple or an acknowledgement; take none twice."""
        assert isinstance(message, Message)
        core = self._cores[worker]
        if message.number <= core.received.get(sender, 0):
            return Service()
        core.received[sender] = message.number
        self._flying -= 1
        along = R if sender < worker else S
        core.heard_us[along] = max(core.heard_us[along], message.heard_us)
        core.sizes[other(along)] = message.size
        if message.rank is None:
            self._cores[worker] = core._replace(copies=core.copies[1:])
            return self._served(worker, message.stream, ())
        return self._served(worker, message.stream, (message.rank,), acknowledge=sender)

    def look(self, worker: int) -> Service:
        """Let a worker drop and send what it may."""
        return self._served(worker, R, ())

    def _served(
        self, worker: int, stream: str, ranks: Sequence[int], acknowledge: int | None = None
    ) -> Service:
        """Join tuples with what a worker holds, one by one; then drop and send."""
        core, before = self._cores[worker], self._index.comparisons
        met = core.store[other(stream)]
        if stream == R:
            met += core.copies
        if ranks:
            self._index.join(stream, tuple(ranks), met.as_ranks())
            core.store[stream] += tuple(ranks)
        sent = []
        if acknowledge is not None and stream == S:
            sent.append(self._message(worker, acknowledge, S, None))
        moved = [self._forward(worker, each) for each in STREAMS]
        dropped = sum([self._drop(worker, each) for each in STREAMS])
        messages = [*sent, *moved[0], *moved[1]]
        tuples = len(ranks) + dropped + sum([each.tuples for each in messages])
        found: list[FoundPairs] = self._index.take()
        return Service(messages, found, tuples, self._index.comparisons - before)

    def _next(self, worker: int, stream: str) -> int | None:
        """Return the worker to which a stream moves on, or ``None`` where it leaves."""
        neighbour = worker + 1 if stream == R else worker - 1
        return neighbour if 0 <= neighbour < len(self._cores) else None

    def _forward(self, worker: int, stream: str) -> list[Sent]:
        """Send on what a worker may send, the oldest tuple first."""
        neighbour, core = self._next(worker, stream), self._cores[worker]
        sent = []
        while neighbour is not None and len(core.store[stream]):
            is_more = self._forwards and len(core.store[stream]) > core.sizes[stream]
            if not is_more and not self._is_past(core, stream):
                break
            rank, core.store[stream] = core.store[stream][0], core.store[stream][1:]
            core.sizes[stream] += 1
            if stream == S:
                core = core._replace(copies=core.copies + RankArray(np.array([rank])))
                self._cores[worker] = core
            sent.append(self._message(worker, neighbour, stream, rank))
        return sent

    def _drop(self, worker: int, stream: str) -> int:
        """Drop the tuples that leave the chain; return their number."""
        if self._next(worker, stream) is not None:
            return 0
        core = self._cores[worker]
        before = core.store[stream]
        _, core.store[stream] = map(
            _array, self._index.split_at(stream, before.as_ranks(), self._horizon_us(core, stream))
        )
        return len(before) - len(core.store[stream])

    def _horizon_us(self, core: Core, stream: str) -> int:
        """Return the event time below which no tuple of a stream can meet another one."""
        heard_us = core.heard_us[other(stream)]
        if self._flushes:
            return END_US
        return NO_WATERMARK_US if heard_us == NO_WATERMARK_US else heard_us - self._window_us

    def _is_past(self, core: Core, stream: str) -> bool:
        """Return whether the oldest tuple of a stream can meet none that is still to come."""
        oldest = core.store[stream][:1].as_ranks()
        return self._index.least_us(stream, oldest) < self._horizon_us(core, stream)

    def _message(self, worker: int, neighbour: int, stream: str, rank: int | None) -> Sent:
        core = self._cores[worker]
        along = R if neighbour > worker else S
        number = core.sent[neighbour] = core.sent.get(neighbour, 0) + 1
        self._flying += 1
        message = Message(stream, rank, number, core.heard_us[along], len(core.store[other(along)]))
        return Sent(neighbour, message, "ack" if rank is None else "block", int(rank is not None))


def _array(ranks: "RankArray | Ranks") -> RankArray:
    return ranks if isinstance(ranks, RankArray) else RankArray()
