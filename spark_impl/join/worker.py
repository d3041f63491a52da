"""One worker of the chain: the numbered protocol of docs/join.md, sections 3 to 6.

Rules of this file:

* No socket, no thread, no clock. Messages to neighbours go to an outbox; whoever runs the worker
  carries them.
* A method is one action, or several after one another; none waits for anything.
* The two streams are treated alike in all but one thing: copies of blocks of S are joined with
  what comes in, copies of blocks of R never are.
* Messages may be lost with their connection (:meth:`Worker.reconnect` sends them again), come
  twice, or in another order.
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
    Rejected,
    S,
)
from model.vocabulary.trace import Step
from spark_impl.join.admission import Admitted, Arrivals, Intake
from spark_impl.join.checkpoint import WorkerState
from spark_impl.join.lane import (
    Copy,
    Lane,
    block_watermark,
    blocks_to_send,
    can_forward,
    is_overdue,
    room,
)
from spark_impl.join.matching import Pairs, Tuples
from spark_impl.join.messages import Block, BlockAck, End, Hint, Message
from spark_impl.join.side import Found, Matcher, Side
from spark_impl.runtime.arrays import Ints


class Recorder:
    """Numbers the steps of one worker in one epoch and hands them on; silent without ``sink``."""

    def __init__(self, epoch: int, worker: int, sink: Callable[[Step], None] | None) -> None:
        self._who = (epoch, worker)
        self._sink = sink
        self._steps = 0
        self._admit: Admit | None = None

    def admit(self, stream: str, first: int, tuples: int, pairs: int) -> None:
        """Consecutive admissions of one stream are one step, handed on before the next one."""
        step = self._admit
        if step is None or step.stream != stream:
            self._close()
            step = Admit(*self._who, 0, stream, first, 0, 0)
        self._admit = step._replace(tuples=step.tuples + tuples, pairs=step.pairs + pairs)

    def step(self, word: Callable[..., Step], *values: object) -> None:
        """Any other step, from what follows its number."""
        self._close()
        self._hand_on(word(*self._who, self._steps, *values))

    def _close(self) -> None:
        if self._admit is not None:
            step, self._admit = self._admit, None
            self._hand_on(step._replace(number=self._steps))

    def _hand_on(self, step: Step) -> None:
        self._steps += 1
        if self._sink is not None:
            self._sink(step)


_LAST_SEQ = END_US
_PATIENCE = 64
"""Tuples are dropped when some have outlived the window by this part of it."""


class Worker:
    """One worker in one epoch.

    ``record`` is called with every step of the protocol, in order, ``keep`` with all tuples that
    are admitted here. With ``flush`` the epoch admits nothing and ends with empty stores.
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
    ) -> None:
        self._config = config
        self._matcher = matcher
        self._recorder = Recorder(epoch, number, record)
        self._keep = keep
        self._is_quiet = False
        self.number = number
        self.epoch = epoch
        self.outbox: list[tuple[int, Message]] = []
        """Messages to send, in order, with the neighbour that each is for."""
        self.found: list[list[Pairs]] = found or [[] for _ in config.queries]
        """Pairs by query, with those from before the first step; :meth:`take_found` takes them."""
        self.pairs_held = sum(len(pairs.r_id) for own in self.found for pairs in own)
        self.rejected: list[Rejected] = []
        left = number - 1 if number > 0 else None
        right = number + 1 if number < config.workers - 1 else None
        self.lanes = {
            R: self._lane(R, left, right, state.r, state.r_wm_us, state.r_intake),
            S: self._lane(S, right, left, state.s, state.s_wm_us, state.s_intake),
        }
        """What it keeps, by stream."""
        for lane in self.lanes.values():
            if lane.behind is None:
                self._begin_source(lane, flush)

    # ------------------------------------------------------------------ what a runner calls

    def admit(self, stream: str, arrivals: Arrivals, next_seq: int) -> None:
        """InR or InS for some arrivals in order; ``next_seq`` is that of the arrival behind."""
        lane, other = self._both(stream)
        intake = lane.intake
        if intake is None or lane.over:
            msg = f"worker {self.number} does not take in stream {stream!r}"
            raise ValueError(msg)
        tuples, rejected = intake.admit(arrivals)
        self.rejected.extend(rejected)
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
        """No arrival of the stream follows in this epoch."""
        lane, _ = self._both(stream)
        lane.next_seq = _LAST_SEQ
        lane.over = True
        self._send_hint(lane)

    def room(self, stream: str, seqs: Ints, position: int) -> int:
        """How many arrivals from ``position`` on may be admitted now, for the sake of pace.

        The stream whose next arrival is the earlier one never waits for the other.
        """
        return room(*self._both(stream), self._config, seqs, position)

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
        """Drop and forward whatever there is to drop and to forward, then see whether all is over.

        This is the policy of section 5; :meth:`forward` alone is what the protocol permits.
        """
        for lane in self.lanes.values():
            self.drop(lane.stream)
        for lane in self.lanes.values():
            while blocks := blocks_to_send(*self._both(lane.stream), self._config):
                self.forward(lane.stream, blocks)
            self._end(lane)
        if self._all_over() and not self._is_quiet:
            self._is_quiet = True
            self._recorder.step(
                Quiet,
                len(self.lanes[R].store),
                len(self.lanes[S].store),
                self.lanes[R].passed_us,
                self.lanes[S].passed_us,
            )

    def can_forward(self, stream: str) -> bool:
        """The protocol permits to send a block, whatever the policy says."""
        return can_forward(self.lanes[stream], self._config)

    def forward(self, stream: str, blocks: int = 1) -> None:
        """FwdR or FwdS, for :meth:`can_forward`, some times in a row.

        All but the last of several blocks are full.
        """
        lane, other = self._both(stream)
        if lane.ahead is None:
            msg = f"stream {stream!r} ends at worker {self.number}"
            raise ValueError(msg)
        zeta = self._config.block_size
        wanted = min(blocks * zeta, len(lane.store))
        numbers = lane.sent + 1 + np.arange(wanted) // zeta
        tuples = lane.store.send_oldest(wanted, numbers if stream == S else None)
        wm_us = block_watermark(lane)
        left_us = np.minimum.accumulate(np.append(tuples.ts, wm_us)[::-1])[::-1].tolist()
        for begin in range(0, max(wanted, 1), zeta):
            end = min(begin + zeta, wanted)
            lane.sent += 1
            part = tuples.take(slice(begin, end))
            block = Block(stream, lane.sent, other.received, left_us[end], part)
            lane.sent_wm_us = max(lane.sent_wm_us, block.wm_us)
            lane.copies[block.number] = Copy(block)
            self.outbox.append((lane.ahead, block))
            first, last = (int(part.rank[0]), int(part.rank[-1])) if end else (-1, -1)
            self._recorder.step(
                Forward, stream, block.number, block.seen, first, last, end - begin, block.wm_us
            )
        lane.unacknowledged += max(1, -(-wanted // zeta))
        lane.on_the_way += wanted

    def drop(self, stream: str) -> None:
        """DropR or DropS, unless too little time has passed to be worth it."""
        lane, other = self._both(stream)
        window_us = self._config.window_us
        horizon_us = other.passed_us - window_us
        patience_us = 0 if self._draining else window_us // _PATIENCE
        if len(lane.store) and lane.store.least_ts() + patience_us < horizon_us:
            dropped = lane.store.drop_below(horizon_us)
            self._recorder.step(Drop, stream, horizon_us, dropped)

    def reconnect(self, neighbour: int) -> None:
        """The connection to a neighbour is a new one: send again what the old one may have lost."""
        for lane in self.lanes.values():
            if lane.ahead == neighbour:
                self._send_hint(lane)
                for copy in lane.copies.values():
                    if copy.needed is None:
                        self.outbox.append((neighbour, copy.block))
                if lane.ended:
                    self.outbox.append((neighbour, End(lane.stream, lane.sent)))

    @property
    def compared(self) -> int:
        """Pairs of tuples that were compared, after an index had selected them."""
        return self._matcher.compared

    def take_found(self) -> list[list[Pairs]]:
        """The pairs found since they were taken the last time, by query."""
        taken, self.found = self.found, [[] for _ in self.found]
        self.pairs_held = 0
        return taken

    @property
    def finished(self) -> bool:
        """The worker's part of the epoch is over: it holds no copy, and nothing new will come."""
        return self._is_quiet

    def state(self) -> WorkerState:
        """What is left, once the worker has finished."""
        r, s = self.lanes[R], self.lanes[S]
        return WorkerState(
            r.store.snapshot(),
            s.store.snapshot(),
            r.passed_us,
            s.passed_us,
            None if r.intake is None else r.intake.checkpoint(),
            None if s.intake is None else s.intake.checkpoint(),
        )

    # -------------------------------------------------------------------------- beginning

    def _lane(
        self,
        stream: str,
        behind: int | None,
        ahead: int | None,
        tuples: Tuples,
        passed_us: int,
        admitted: Admitted | None,
    ) -> Lane:
        store = Side(self._matcher, stream)
        store.append(tuples)
        intake = None
        if behind is None:
            intake = Intake(stream, self._config.lateness_us, admitted or Admitted())
        return Lane(stream, behind, ahead, store, passed_us, intake)

    def _begin_source(self, lane: Lane, flush: bool) -> None:
        if flush:
            lane.passed_us = END_US
        lane.source_us = lane.passed_us
        if flush:
            self.end_intake(lane.stream)

    # -------------------------------------------------------------------------- receiving

    def _take_in(self, sender: int, blocks: Sequence[Block]) -> None:
        """RecvR or RecvS for blocks of a stream and those that waited for them, or Again."""
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
        """RecvR or RecvS: join, store, acknowledge, in one step for each block.

        Nothing changes the other store in between, so that it is searched once for all.
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
        """RecvACK; nothing if the copy was acknowledged before."""
        lane, _ = self._both(ack.stream)
        copy = lane.copies.get(ack.number)
        if copy is None or copy.needed is not None:
            return
        copy.needed = ack.sent_opposite
        lane.unacknowledged -= 1
        lane.on_the_way -= len(copy.block.tuples)
        lane.est = ack.size
        self._recorder.step(Ack, ack.stream, ack.number)
        self._release(lane)

    def _release(self, lane: Lane) -> None:
        """Remove the copies that nobody needs any more; those of R serve no joins."""
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
        """Say that no block follows, once that is so."""
        if lane.ended or not self._draining or not lane.complete:
            return
        if lane.ahead is not None:
            if (
                is_overdue(*self._both(lane.stream), self._config)
                or block_watermark(lane) > lane.sent_wm_us
            ):
                return  # it waits for credit
            self.outbox.append((lane.ahead, End(lane.stream, lane.sent)))
        lane.ended = True

    def _all_over(self) -> bool:
        return all(lane.ended and lane.complete and not lane.copies for lane in self.lanes.values())

    @property
    def _draining(self) -> bool:
        """Both intakes have ended: the watermarks of the streams are final."""
        return all(lane.over for lane in self.lanes.values())

    def _send_hint(self, lane: Lane) -> None:
        if lane.ahead is not None:
            hint = Hint(lane.stream, lane.source_us, lane.next_seq, lane.over)
            self.outbox.append((lane.ahead, hint))

    # ---------------------------------------------------------------------------- finding

    def _both(self, stream: str) -> tuple[Lane, Lane]:
        """The lane of a stream, and that of the other one."""
        return self.lanes[stream], self.lanes[S if stream == R else R]

    def _emit(self, found: Sequence[Found]) -> Ints:
        """Keep pairs of every query; for each of them where its probing tuple was."""
        for kept, each in zip(self.found, found, strict=True):
            if len(each.at):
                kept.append(each.pairs)
                self.pairs_held += len(each.at)
        return np.concatenate([each.at for each in found])
