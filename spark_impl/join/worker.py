"""One worker of the chain: the numbered protocol of docs/join.md, sections 3 to 6.

Rules of this file:

* No socket, no thread, no clock. Messages to neighbours go to an outbox; the runner of the worker
  carries them.
* A method is one action, or several actions in a row. No method waits.
* The two streams are treated alike except in one point: blocks that come in are joined with copies
  of blocks of S, never with copies of blocks of R.
* Messages may come twice, or in another order. What is lost with a connection ends the epoch.
"""

from collections.abc import Callable, Sequence

import numpy as np

from model.vocabulary.join import (
    END_US,
    Ack,
    Admit,
    Drop,
    Forward,
    JoinConfig,
    Quiet,
    R,
    Receive,
    S,
)
from model.vocabulary.trace import Step
from spark_impl.join import lane as lanes
from spark_impl.join.admission import Arrivals, Rejections
from spark_impl.join.checkpoint import StreamState, WorkerState
from spark_impl.join.control import NO_FLOORS
from spark_impl.join.lane import Copy, Lane
from spark_impl.join.matching import Counts, Pairs, Tuples
from spark_impl.join.messages import Block, BlockAck, End, Hint, Message
from spark_impl.join.side import Found, Matcher
from spark_impl.runtime.arrays import Ints

_PATIENCE = 64
"""Tuples are dropped once some of them are older than the window by this fraction of it."""


class Recorder:
    """Numbers the steps of one worker in one epoch and passes them to ``sink``, if there is one."""

    def __init__(self, epoch: int, worker: int, sink: Callable[[Step], None] | None) -> None:
        self._who = (epoch, worker)
        self._sink = sink
        self._steps = 0
        self._admit: Admit | None = None

    def admit(self, stream: str, first: int, tuples: int, pairs: int) -> None:
        """Record admissions. Consecutive ones of a stream become one step, before the next step."""
        step = self._admit
        if step is None or step.stream != stream:
            self._close()
            step = Admit(*self._who, 0, stream, first, 0, 0)
        self._admit = step._replace(tuples=step.tuples + tuples, pairs=step.pairs + pairs)

    def step(self, word: Callable[..., Step], *values: object) -> None:
        """Record any other step; ``values`` are its fields behind the number."""
        self._close()
        self._emit(word(*self._who, self._steps, *values))

    def _close(self) -> None:
        if self._admit is not None:
            step, self._admit = self._admit, None
            self._emit(step._replace(number=self._steps))

    def _emit(self, step: Step) -> None:
        self._steps += 1
        if self._sink is not None:
            self._sink(step)


class Worker:
    """One worker in one epoch, whose decision ``config`` has.

    The worker calls ``record`` with every step of the protocol, in order, and ``keep`` with all
    tuples that it admits. With ``flush`` the epoch admits nothing and ends with empty stores.
    ``found`` holds pairs that were found before the first step, by query. ``floors_us`` are the
    least watermarks of the streams, for the workers where they enter.
    """

    def __init__(
        self,
        config: JoinConfig,
        number: int,
        matcher: Matcher,
        state: WorkerState,
        epoch: int,
        *,
        flush: bool = False,
        record: Callable[[Step], None] | None = None,
        keep: Callable[[str, Tuples], None] | None = None,
        found: list[list[Pairs]] | None = None,
        floors_us: Counts = NO_FLOORS,
    ) -> None:
        self._config = config
        self._matcher = matcher
        self._recorder = Recorder(epoch, number, record)
        self._keep = keep
        self.finished = False
        """True if this worker is quiet: it holds no copy, and nothing new will come."""
        self.number = number
        self.epoch = epoch
        self.outbox: list[tuple[int, Message]] = []
        """Messages to send, in order, each with the neighbour that receives it."""
        self.found: list[list[Pairs]] = found or [[] for _ in config.queries]
        """Pairs not yet taken by :meth:`take_found`, by query."""
        self.pairs_held = sum(len(pairs.r_id) for own in self.found for pairs in own)
        self.rejections: list[Rejections] = []
        left = number - 1 if number > 0 else None
        right = number + 1 if number < config.workers - 1 else None
        self.lanes = {
            R: lanes.open_lane(R, left, right, config, matcher, state.r, floors_us.r),
            S: lanes.open_lane(S, right, left, config, matcher, state.s, floors_us.s),
        }
        """The state of each stream here."""
        for lane in self.lanes.values():
            if lane.behind is None:
                if flush:
                    lane.passed_us = END_US
                lane.source_us = lane.passed_us
                if flush:
                    self.end_intake(lane.stream)

    # ------------------------------------------------------------------ called by the runner

    def admit(self, stream: str, arrivals: Arrivals, next_seq: int) -> None:
        """Take in arrivals of a stream, in order (InR, InS).

        ``next_seq`` is the arrival number that follows them. The stream enters here, and its intake
        has not ended.
        """
        lane, other = self._both(stream)
        intake = lane.intake
        assert intake is not None
        assert not lane.over
        tuples, rejected = intake.admit(arrivals)
        if len(rejected.seq):
            self.rejections.append(rejected)
        if len(tuples):
            found = self._emit(other.store.probe(tuples))
            lane.store.append(tuples)
            self._recorder.admit(stream, int(tuples.rank[0]), len(tuples), len(found))
            if self._keep is not None:
                self._keep(stream, tuples)
        lane.passed_us = lane.source_us = max(lane.source_us, intake.watermark_us)
        lane.next_seq = next_seq
        self._send_hint(lane)

    def end_intake(self, stream: str) -> None:
        """End the intake of a stream for this epoch."""
        lane, _ = self._both(stream)
        lane.next_seq = END_US
        lane.over = True
        self._send_hint(lane)

    def arrivals_to_admit(self, stream: str, arrivals: Arrivals, position: int) -> int:
        """Return how many of the epoch's arrivals to admit now, from ``position`` on."""
        return lanes.arrivals_to_admit(*self._both(stream), self._config, arrivals, position)

    def receive(self, sender: int, *given: Message) -> None:
        """Take messages from a neighbour, blocks first: the protocol needs no order."""
        blocks = [message for message in given if isinstance(message, Block)]
        if blocks:
            self._take_in(sender, blocks)
        for message in given:
            if isinstance(message, BlockAck):
                self._acknowledged(message)
            elif isinstance(message, Hint):
                self._hear(message)
            elif isinstance(message, End):
                self.lanes[message.stream].promised = message.blocks

    def work(self) -> None:
        """Drop and forward at the pace of section 5, then check whether this worker is quiet.

        The protocol itself permits every :meth:`forward`.
        """
        for lane in self.lanes.values():
            self.drop(lane.stream)
        for lane in self.lanes.values():
            while blocks := lanes.blocks_to_send(*self._both(lane.stream), self._config):
                self.forward(lane.stream, blocks)
            self._end(lane)
        both = self.lanes[R], self.lanes[S]
        is_over = all(each.ended and each.complete and not each.copies for each in both)
        if is_over and not self.finished:
            self.finished = True
            sizes, passed_us = zip(
                *((len(each.store), each.passed_us) for each in both), strict=True
            )
            self._recorder.step(Quiet, *sizes, *passed_us)

    def can_forward(self, stream: str) -> bool:
        """Return whether the protocol permits to send a block now, whatever the pace."""
        return lanes.can_forward(self.lanes[stream], self._config)

    def forward(self, stream: str, blocks: int) -> None:
        """Send blocks of a stream (FwdR, FwdS), all but the last one full.

        The caller has asked :meth:`can_forward`.
        """
        lane, other = self._both(stream)
        assert lane.ahead is not None
        zeta = self._config.block_size
        wanted = min(blocks * zeta, len(lane.store))
        numbers = lane.sent + 1 + np.arange(wanted) // zeta
        tuples = lane.store.send_oldest(wanted, numbers if stream == S else None)
        wm_us = lanes.block_watermark(lane)
        left_us = np.minimum.accumulate(np.append(tuples.ts, wm_us)[::-1])[::-1].tolist()
        for begin in range(0, max(wanted, 1), zeta):
            end = min(begin + zeta, wanted)
            lane.sent += 1
            part = tuples.take(slice(begin, end))
            block = Block(stream, lane.sent, other.received, left_us[end], part)
            lane.sent_wm_us = max(lane.sent_wm_us, block.wm_us)
            lane.copies[block.number] = Copy(len(part))
            self.outbox.append((lane.ahead, block))
            first, last = (int(part.rank[0]), int(part.rank[-1])) if end else (-1, -1)
            self._recorder.step(
                Forward, stream, block.number, block.seen, first, last, end - begin, block.wm_us
            )
        lane.unacknowledged += max(1, -(-wanted // zeta))
        lane.on_the_way += wanted

    def drop(self, stream: str) -> None:
        """Drop expired tuples of a stream (DropR, DropS), once enough time has passed."""
        lane, other = self._both(stream)
        window_us = self._config.window_us
        horizon_us = other.passed_us - window_us
        patience_us = 0 if self._draining else window_us // _PATIENCE
        if lane.store.least_ts() + patience_us < horizon_us:
            dropped = lane.store.drop_below(horizon_us)
            self._recorder.step(Drop, stream, horizon_us, dropped)

    def take_found(self) -> list[list[Pairs]]:
        """Return the pairs found since the last call, by query."""
        taken, self.found = self.found, [[] for _ in self.found]
        self.pairs_held = 0
        return taken

    def state(self) -> WorkerState:
        """Return what the worker holds, once it has finished."""
        found = []
        for lane in (self.lanes[R], self.lanes[S]):
            intake = None if lane.intake is None else lane.intake.checkpoint()
            found.append(StreamState(lane.store.snapshot(), lane.passed_us, intake))
        return WorkerState(*found)

    # -------------------------------------------------------------------------- receiving

    def _take_in(self, sender: int, blocks: Sequence[Block]) -> None:
        """Receive blocks of one stream and early ones that are due now (RecvR, RecvS, Again)."""
        lane, other = self._both(blocks[0].stream)
        for block in blocks:
            if block.number > lane.received:
                lane.early[block.number] = block
            else:
                again = BlockAck(block.stream, block.number, other.sent, len(lane.store))
                self.outbox.append((sender, again))
        ready: list[Block] = []
        while lane.received + 1 + len(ready) in lane.early:
            ready.append(lane.early.pop(lane.received + 1 + len(ready)))
        if ready:
            self._join_in(sender, lane, other, ready)

    def _join_in(self, sender: int, lane: Lane, other: Lane, blocks: Sequence[Block]) -> None:
        """Join, store and acknowledge blocks, in one step each (RecvR, RecvS).

        Nothing changes the other store in between, so one search serves all blocks.
        """
        tuples = Tuples.concat([block.tuples for block in blocks])
        sizes = [len(block.tuples) for block in blocks]
        meets_copies = lane.stream == R
        found = self._emit(
            other.store.probe(tuples, np.repeat([block.seen for block in blocks], sizes))
            if meets_copies
            else other.store.probe(tuples)
        )
        ends = np.cumsum(sizes)
        pairs = np.bincount(np.searchsorted(ends, found, "right"), minlength=len(blocks)).tolist()
        size = len(lane.store)
        lane.store.append(tuples)
        for place, block in enumerate(blocks):
            copies = sum(number > block.seen for number in other.copies) if meets_copies else 0
            lane.received += 1
            lane.passed_us = max(lane.passed_us, block.wm_us)
            size += sizes[place]
            ack = BlockAck(lane.stream, block.number, other.sent, size)
            self.outbox.append((sender, ack))
            self._recorder.step(
                Receive,
                lane.stream,
                block.number,
                copies,
                pairs[place],
                ack.sent_opposite,
                ack.size,
            )
            self._release(other)

    def _acknowledged(self, ack: BlockAck) -> None:
        """Note an acknowledgement (RecvACK), unless it has come before."""
        lane, _ = self._both(ack.stream)
        copy = lane.copies.get(ack.number)
        if copy is None or copy.needed is not None:
            return
        copy.needed = ack.sent_opposite
        lane.unacknowledged -= 1
        lane.on_the_way -= copy.tuples
        lane.est = ack.size
        self._recorder.step(Ack, ack.stream, ack.number)
        self._release(lane)

    def _release(self, lane: Lane) -> None:
        """Remove copies that nobody needs any more; copies of R serve no joins."""
        received = self.lanes[R].received
        done = [
            number
            for number, copy in lane.copies.items()
            if copy.needed is not None and (lane.stream == R or received >= copy.needed)
        ]
        for number in done:
            del lane.copies[number]
            if lane.stream == S:
                lane.store.release(number)

    def _hear(self, hint: Hint) -> None:
        lane, _ = self._both(hint.stream)
        news = (
            max(lane.source_us, hint.source_wm_us),
            max(lane.next_seq, hint.next_seq),
            lane.over or hint.over,
        )
        if news != (lane.source_us, lane.next_seq, lane.over):
            lane.source_us, lane.next_seq, lane.over = news
            self._send_hint(lane)

    # ---------------------------------------------------------------------------- sending

    def _end(self, lane: Lane) -> None:
        """Announce the end of a stream, once no block will follow."""
        if lane.ended or not self._draining or not lane.complete:
            return
        if lane.ahead is not None:
            if (
                lanes.is_overdue(*self._both(lane.stream), self._config)
                or lanes.block_watermark(lane) > lane.sent_wm_us
            ):
                return  # a block waits for credit
            self.outbox.append((lane.ahead, End(lane.stream, lane.sent)))
        lane.ended = True

    @property
    def _draining(self) -> bool:
        """Return whether both intakes have ended: the watermarks of the streams are final."""
        return all(lane.over for lane in self.lanes.values())

    def _send_hint(self, lane: Lane) -> None:
        if lane.ahead is not None:
            hint = Hint(lane.stream, lane.source_us, lane.next_seq, lane.over)
            self.outbox.append((lane.ahead, hint))

    # ---------------------------------------------------------------------------- shared

    def _both(self, stream: str) -> tuple[Lane, Lane]:
        """Return the lane of a stream, then the lane of the other stream."""
        return self.lanes[stream], self.lanes[S if stream == R else R]

    def _emit(self, found: Sequence[Found]) -> Ints:
        """Keep the pairs of all queries; return the position of the probing tuple of each pair."""
        for kept, each in zip(self.found, found, strict=True):
            if len(each.at):
                kept.append(each.pairs)
                self.pairs_held += len(each.at)
        return np.concatenate([each.at for each in found])
