"""Replay of a recorded run, which shows whether it is a behaviour of the protocol.

Source: docs/join.md, sections 3 and 9. Validation is that of Cirstea, Kuppe, Loillier, Merz,
"Validating Traces of Distributed Programs Against TLA+ Specifications"; no recorded step leaves a
choice, so there is one state to follow.

Rules of this file:

* Steps of one worker are in order; steps of two workers are ordered by messages alone. Taking a
  step when its messages are there loses nothing: a step of one worker never forbids one of another.
* Safety is checked, not the load: a block may be sent whenever credit and size allow. A watermark
  may be lower than it could be, never higher.
* No step tells of a merge or a split: an epoch begins with the workers of the decision in force.
* The first step that is not allowed is shown with what the protocol allows instead.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from model.checking.claims import Outcome, Verdict
from model.join import chain as protocol
from model.join import worker as local
from model.join.control import decision_at
from model.join.oracle import Admission, admission
from model.join.rules import Setup, initial, send
from model.join.run import next_epoch, setup_of
from model.join.state import (
    Acknowledgement,
    Action,
    Block,
    ChainState,
    Listed,
    Message,
    Pair,
    Ranks,
    boundary,
    channel_of,
    is_quiet,
    lanes,
    other,
    source,
    unacknowledged,
    with_channel,
    with_lane,
    with_worker,
)
from model.vocabulary import JoinConfig, Trace, Workload
from model.vocabulary.join import (
    END_US,
    PROTOCOL,
    STREAMS,
    Ack,
    Admit,
    Drop,
    Forward,
    Quiet,
    R,
    Receive,
    S,
)
from model.vocabulary.trace import kind_of

CLAIM = "the recorded steps are a behaviour of the protocol"
RecordedStep = Admit | Forward | Receive | Ack | Drop | Quiet


class Refused(Exception):  # noqa: N818 - not an error of the program
    """The reason why the protocol does not allow a step."""


class Unjoined(Listed):
    """Contents without pairs, for a replay that does not count them."""

    def join(self, stream: str, tuples: Ranks, met: Ranks) -> tuple[Pair, ...]:
        """Return no pairs."""
        return ()


class Position(NamedTuple):
    """The point that the replay of a recording has reached."""

    chain: ChainState
    epoch: int = -1
    done: tuple[int, ...] = ()
    """Workers that have ended the epoch."""
    counts: tuple[int, ...] = ()
    """Number of steps that each worker has taken in the epoch."""


# ------------------------------------------------------------------------------------------ order


def order_steps(trace: Trace) -> Iterator[RecordedStep]:
    """Yield the steps in an order that messages allow; steps that nothing allows come last."""
    by_worker: dict[tuple[int, int], list[RecordedStep]] = {}
    words: Iterable[type[RecordedStep]] = PROTOCOL
    for word in words:
        for step in trace.of(word):
            by_worker.setdefault((step.epoch, step.worker), []).append(step)
    for epoch in sorted({epoch for epoch, _ in by_worker}):
        queues = [
            sorted(by_worker[each], key=lambda step: step.number)
            for each in sorted(by_worker)
            if each[0] == epoch
        ]
        yield from _merged(queues)


def _merged(queues: list[list[RecordedStep]]) -> Iterator[RecordedStep]:
    positions = [0] * len(queues)
    known: set[tuple[str, int, str, int]] = set()
    moved = True
    while moved:
        moved = False
        for n, queue in enumerate(queues):
            while positions[n] < len(queue) and _is_there(queue[positions[n]], known):
                step = queue[positions[n]]
                if isinstance(step, Forward | Receive):
                    known.add((kind_of(type(step)), step.worker, step.stream, step.block))
                yield step
                positions[n] += 1
                moved = True
    for n, queue in enumerate(queues):
        yield from queue[positions[n] :]


def _is_there(step: RecordedStep, known: set[tuple[str, int, str, int]]) -> bool:
    """Return whether the message that a step takes was sent."""
    if isinstance(step, Receive):
        sender = step.worker - 1 if step.stream == R else step.worker + 1
        return ("forward", sender, step.stream, step.block) in known
    if isinstance(step, Ack):
        receiver = step.worker + 1 if step.stream == R else step.worker - 1
        return ("receive", receiver, step.stream, step.block) in known
    return True


# ------------------------------------------------------------------------------------------ steps


class Replay:
    """The protocol, which follows the recorded steps."""

    def __init__(self, workload: Workload, counts_pairs: bool) -> None:
        self.config = JoinConfig.from_json(workload.config)
        self.admitted: Admission = admission(workload)
        self.setup: Setup = setup_of(self.config, self.admitted)
        self.counts_pairs = counts_pairs
        assert isinstance(self.setup.content, Listed)
        self.content = self.setup.content
        if not counts_pairs:
            self.setup = replace(self.setup, content=Unjoined(*self.content))
        self.flush = sum(1 for _ in workload.batches()) if workload.flush else None

    def follow(self, at: Position, step: RecordedStep) -> Position:
        """Return the position after a step. Raise :class:`Refused` if the step is not allowed."""
        if step.epoch != at.epoch:
            at = self._next_epoch(at, step.epoch)
        workers = len(at.chain.workers)
        _require(0 <= step.worker < workers, f"there is no worker {step.worker}")
        _require(step.worker not in at.done, f"worker {step.worker} has said that it is quiet")
        count = at.counts[step.worker]
        _require(step.number == count, f"its next step is {count}, not {step.number}")
        chain = self._take(at.chain, step)
        done = (*at.done, step.worker) if isinstance(step, Quiet) else at.done
        counts = (*at.counts[: step.worker], count + 1, *at.counts[step.worker + 1 :])
        return Position(chain, at.epoch, done, counts)

    def finish(self, at: Position) -> None:
        """Raise :class:`Refused` if an epoch may not end at this position."""
        missing = sorted(set(range(len(at.chain.workers))) - set(at.done))
        _require(not missing, f"workers {missing} have not said that they are quiet")
        _require(is_quiet(at.chain), "a message is under way or a copy is kept")
        for stream, count in ((R, at.chain.admitted_r), (S, at.chain.admitted_s)):
            expected = self._expected(stream, at.epoch)
            _require(count == expected, f"{count} tuples of {stream} are admitted, not {expected}")
        if at.epoch == self.flush:
            held = sum(len(w.r.store) + len(w.s.store) for w in at.chain.workers)
            _require(not held, f"{held} tuples are held after the flush")

    def _expected(self, stream: str, epoch: int) -> int:
        return bisect_right(self.admitted.streams[stream].epochs, epoch)

    def _next_epoch(self, at: Position, epoch: int) -> Position:
        if at.epoch >= 0:
            self.finish(at)
        _require(epoch == at.epoch + 1, f"epoch {epoch} comes after epoch {at.epoch}")
        workers = decision_at(self.config, epoch).workers
        chain, _ = protocol.resize(self.setup, next_epoch(at.chain), workers)
        floors_us = dict.fromkeys(STREAMS, END_US)
        if epoch != self.flush:
            floors_us = dict(self.admitted.floors_us[epoch])
        chain = protocol.raise_watermarks(chain, floors_us)
        return Position(chain, epoch, counts=(0,) * workers)

    def _take(self, chain: ChainState, step: RecordedStep) -> ChainState:
        match step:
            case Admit():
                return self._admit(chain, step)
            case Forward():
                return self._forward(chain, step)
            case Receive():
                return self._receive(chain, step)
            case Ack():
                return self._ack(chain, step)
            case Drop():
                return self._drop(chain, step)
            case Quiet():
                return self._quiet(chain, step)

    def _admit(self, chain: ChainState, step: Admit) -> ChainState:
        stream = step.stream
        rank = chain.admitted_r if stream == R else chain.admitted_s
        _require(step.worker == source(chain, stream), f"{stream} does not enter there")
        _equal("rank", step.first, rank)
        last = step.first + step.tuples
        _require(
            step.tuples > 0 and last <= self._expected(stream, step.epoch),
            f"epoch {step.epoch} admits {stream} up to rank {self._expected(stream, step.epoch)}",
        )
        action = Action("admit", step.worker, stream, step.tuples)
        chain, pairs = protocol.after(self.setup, chain, action)
        self._pairs(step.pairs, pairs)
        return chain

    def _forward(self, chain: ChainState, step: Forward) -> ChainState:
        lane, _ = lanes(chain.workers[step.worker], step.stream)
        to = step.worker + (1 if step.stream == R else -1)
        _require(0 <= to < len(chain.workers), f"worker {step.worker} is the end of {step.stream}")
        largest = decision_at(self.config, step.epoch).block_size
        _require(step.tuples <= largest, f"a block of {step.tuples} is too large")
        _require(step.tuples <= len(lane.store), f"it has {len(lane.store)} tuples to send")
        _require(unacknowledged(lane) < self.setup.credit, "the credit is used up")
        worker, block = local.forward(
            chain.workers[step.worker],
            step.stream,
            step.tuples,
            self.setup.content,
            self.setup.rules,
        )
        ends = (block.tuples[0], block.tuples[-1]) if block.tuples else (-1, -1)
        _equal("block", step.block, block.number)
        _equal("seen", step.seen, block.seen)
        _equal("first and last rank", (step.first, step.last), ends)
        _require(step.wm_us <= block.wm_us, f"its watermark is {step.wm_us}, above {block.wm_us}")
        block = block._replace(wm_us=step.wm_us)
        lane, _ = lanes(worker, step.stream)
        copies = (*lane.copies[:-1], lane.copies[-1]._replace(block=block))
        worker = with_lane(worker, step.stream, lane._replace(copies=copies))
        chain = with_worker(chain, step.worker, worker)
        return send(self.setup, chain, boundary(step.worker, step.stream), block)

    def _receive(self, chain: ChainState, step: Receive) -> ChainState:
        at, to_right = boundary(step.worker, other(step.stream)), step.stream == R
        chain, block = self._taken(chain, at, to_right, step)
        assert isinstance(block, Block)
        before = chain.workers[step.worker]
        lane, _ = lanes(before, step.stream)
        _equal("block", step.block, lane.received + 1)
        _equal("number of copies", step.copies, len(self.setup.rules.visible(before, block)))
        worker, pairs = local.receive(before, block, self.setup.content, self.setup.rules)
        self._pairs(step.pairs, pairs)
        answer = local.receipt(worker, block, with_size=True)
        _equal("sent", step.sent, answer.sent)
        _equal("size", step.size, answer.size)
        return send(self.setup, with_worker(chain, step.worker, worker), at, answer)

    def _ack(self, chain: ChainState, step: Ack) -> ChainState:
        at, to_right = boundary(step.worker, step.stream), step.stream == S
        chain, ack = self._taken(chain, at, to_right, step)
        assert isinstance(ack, Acknowledgement)
        worker = chain.workers[step.worker]
        worker = local.acknowledge(worker, ack, self.setup.rules, with_size=False)
        return with_worker(chain, step.worker, worker)

    def _taken(
        self, chain: ChainState, at: int, to_right: bool, step: Receive | Ack
    ) -> tuple[ChainState, Message]:
        _require(0 <= at < len(chain.workers) - 1, "nothing comes from there")
        channel = channel_of(chain, at, to_right)
        for n, message in enumerate(channel):
            if message[:2] == (step.stream, step.block):  # one way there are only blocks of it
                return with_channel(chain, at, to_right, channel[:n] + channel[n + 1 :]), message
        raise Refused("no such message is under way")

    def _drop(self, chain: ChainState, step: Drop) -> ChainState:
        worker = chain.workers[step.worker]
        lane, opposite = lanes(worker, step.stream)
        horizon_us = opposite.wm_us - self.setup.window_us
        _require(
            step.horizon_us <= horizon_us, f"its horizon is {step.horizon_us}, above {horizon_us}"
        )
        before = len(lane.store)
        worker = local.drop(worker, step.stream, step.horizon_us, self.setup.content)
        kept = len(lanes(worker, step.stream)[0].store)
        _equal("number of tuples", step.tuples, before - kept)
        return with_worker(chain, step.worker, worker)

    def _quiet(self, chain: ChainState, step: Quiet) -> ChainState:
        r, s = chain.workers[step.worker]
        _equal("number of tuples held", (step.r_held, step.s_held), (len(r.store), len(s.store)))
        for name, claimed_us, lane in (("R", step.r_wm_us, r), ("S", step.s_wm_us, s)):
            _require(
                claimed_us <= lane.wm_us,
                f"its watermark of {name} is {claimed_us}, above {lane.wm_us}",
            )
        return chain

    def _pairs(self, recorded: int, pairs: tuple[Pair, ...]) -> None:
        if self.counts_pairs:
            _equal("number of pairs", recorded, sum(self.content.is_pair(*p) for p in pairs))


def _require(good: bool, reason: str) -> None:
    if not good:
        raise Refused(reason)


def _equal(what: str, recorded: object, expected: object) -> None:
    _require(recorded == expected, f"the {what} is {recorded}, not {expected}")


# ---------------------------------------------------------------------------------------- verdict


def validate_recording(workload: Workload, trace: Trace, counts_pairs: bool = True) -> Verdict:
    """Judge whether a recording is a behaviour of the protocol; if not, name its first bad step.

    With ``counts_pairs`` every join is made again, which takes time for large inputs. The verdict
    is undetermined without recorded steps.
    """
    replay = Replay(workload, counts_pairs)
    at, count = Position(initial(replay.setup)), 0
    for step in order_steps(trace):
        try:
            at = replay.follow(at, step)
        except Refused as reason:
            sentence = f"Step {count} is not allowed: {describe(step)}."
            why = f"{str(reason)[:1].upper()}{str(reason)[1:]}."
            return Verdict(CLAIM, Outcome.BROKEN, sentence, (why,))
        count += 1
    if not count:
        return Verdict(CLAIM, Outcome.UNDETERMINED, "Nothing was recorded.")
    try:
        replay.finish(at)
    except Refused as reason:
        sentence = f"The recording ends in epoch {at.epoch} too early: {reason}."
        return Verdict(CLAIM, Outcome.BROKEN, sentence)
    return Verdict(CLAIM, Outcome.HOLDS, f"All {count:,} recorded steps are allowed.")


def describe(step: RecordedStep) -> str:
    """Return a recorded step as a phrase."""
    fields = step._asdict()
    where = f"epoch {fields.pop('epoch')}, worker {fields.pop('worker')}, {fields.pop('number')}"
    rest = ", ".join(f"{name} {value}" for name, value in fields.items())
    return f"{where}: {kind_of(type(step))} {rest}"
