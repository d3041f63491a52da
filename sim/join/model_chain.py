"""The model's chain as the machine of a simulated chain.

Source: docs/join.md, sections 2 to 7.

Rules of this file:

* The model's table (``model.join.chain``) decides and does every step; its gate
  (``model.join.oracle.Gate``) decides which tuples are admitted.
* The simulation carries messages. A message enters a channel of the model's state when a worker
  takes it from its queue; a message that the model puts into a channel is taken out at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal, NamedTuple

from model.join import chain
from model.join import worker as local
from model.join.oracle import Gate
from model.join.rules import Setup, initial
from model.join.run import Recorder, next_epoch
from model.join.state import (
    Acknowledgement,
    Action,
    Block,
    ChainState,
    Lane,
    Worker,
    channel_of,
    goes_right,
    is_quiet,
    lanes,
    with_channel,
    with_worker,
)
from model.vocabulary import Event, JoinConfig, Step
from model.vocabulary.join import NO_WATERMARK_US, STREAMS, R, S
from sim.join.content import Index, RankArray
from sim.join.machine import ChainGauges, FoundPairs, Sent, Service
from sim.join.tuning import ChainTuning

HINTS_A_WINDOW = 16


class Letter(NamedTuple):
    """A letter between neighbours: a message of the protocol, or none, and hints."""

    message: Block | Acknowledgement | None
    heard_us: int
    """Sender's view of the watermark of the stream that flows in the letter's direction."""
    size: int
    """Number of tuples that the sender holds of the stream in the other direction."""


class ModelChain:
    """A chain with the numbered protocol, which sends by docs/join.md, section 5."""

    def __init__(self, config: JoinConfig, tuning: ChainTuning) -> None:
        self._config = config
        self._records = tuning.record and not tuning.control.resizes
        self._index = Index(config)
        self._gate = gate = Gate(config)
        wm_us = (gate.admitted[R].wm_us, gate.admitted[S].wm_us)
        self._setup = Setup(
            config.workers,
            config.window_us,
            self._index,
            wm_us,
            config.block_size,
            config.credit,
        )
        lane = Lane(store=RankArray().as_ranks())
        workers = (Worker(lane, lane),) * config.workers
        self._state = self._kept = initial(self._setup)._replace(workers=workers)
        self._let_in = gate.mark()
        self._epoch = 0
        self._forwards = True  # False while an epoch comes to its end
        self._drains = tuning.drains
        self._recorder: Recorder | None = None
        self._known: dict[tuple[int, int], tuple[int, int]] = {}
        """Watermark and size known to a neighbour, by sender and neighbour."""

    # ---------------------------------------------------------------------------- an epoch

    def begin(self, epoch: int, *, flush: bool) -> None:
        """Begin an epoch with the state of the chain at the last commit."""
        self._gate.go_back(self._let_in)
        self._epoch = epoch
        floors_us = self._gate.begin_epoch()
        self._state = chain.raise_watermarks(next_epoch(self._kept), floors_us)
        self._recorder = Recorder(epoch, self._setup) if self._records else None
        self._forwards = True
        self._known.clear()
        if flush:
            self._state, _ = chain.after(self._setup, self._state, Action("end"))

    def end_intake(self) -> None:
        """Send no more blocks, except overdue ones if the chain drains, or all in a flush."""
        self._forwards = self._state.ended

    def is_over(self) -> bool:
        """Return whether the chain is quiet and, after a flush, empty."""
        if self._state.ended:
            return not any(self._held()) and is_quiet(self._state)
        return not self._forwards and is_quiet(self._state)

    def commit(self) -> Sequence[Step]:
        """Keep the state of the chain; return rejections and recorded steps of the epoch."""
        steps: list[Step] = list(self._gate.rejected[self._let_in.rejected :])
        if self._recorder is not None:
            self._recorder.quiet(self._state)
            steps += self._recorder.steps
        self._kept = self._state
        self._let_in = self._gate.mark()
        return steps

    def resize(self, workers: int) -> Service:
        """Change the number of workers: evenly, if the configuration has decisions.

        Otherwise split the fullest worker, or merge the emptiest neighbours, one by one.
        """
        state, moved = self._kept, 0
        if self._config.decisions:
            state, _ = chain.resize(self._setup, self._kept, workers)
            moved = _moved(self._kept, state)
        while len(state.workers) != workers:
            action, tuples = _change(state, grow=len(state.workers) < workers)
            state, _ = chain.after(self._setup, state, action)
            moved += tuples
        self._state = self._kept = state
        return Service(found=self._index.take(), tuples=moved)

    # ------------------------------------------------------------------------- settings, gauges

    def set_block_size(self, block_size: int) -> None:
        """Set the largest block, from the next one on."""
        if block_size != self._setup.block_size:
            self._setup = replace(self._setup, block_size=block_size)

    def gauges(self) -> ChainGauges:
        """Return the gauges of the chain."""
        workers = self._state.workers
        return ChainGauges(list(self._held()), min(workers[0].r.wm_us, workers[-1].s.wm_us))

    @property
    def _is_urgent(self) -> bool:
        """Return whether tuples are moving on by watermarks alone."""
        return self._state.ended or (self._drains and not self._forwards)

    def _held(self) -> Iterator[int]:
        return (len(r.store) + len(s.store) for r, s in self._state.workers)

    # -------------------------------------------------------------------------------- services

    def admit(self, worker: int, stream: str, events: Sequence[Event]) -> Service:
        """Admit arrivals of a stream or reject them; join the admitted ones."""
        admitted = self._gate.admitted[stream].tuples
        rank = len(admitted)
        self._gate.offer(stream, self._epoch, events)
        n = len(admitted) - rank
        before = self._index.comparisons
        found: list[FoundPairs] = []
        if n:
            self._index.add(stream, rank, admitted[rank:], self._epoch)
            found = self._step(Action("admit", worker, stream, n))
        return self._served(worker, before, found, n)

    def receive(self, worker: int, sender: int, message: object) -> Service:
        """Take a block or an acknowledgement, perhaps again, and the hints beside it."""
        assert isinstance(message, Letter)
        before = self._index.comparisons
        found: list[FoundPairs] = []
        tuples = 0
        block = message.message
        if block is not None:
            found = self._take(worker, block)
            tuples = len(block.tuples) if isinstance(block, Block) else 0
        self._hear(worker, sender, message)
        return self._served(worker, before, found, tuples)

    def look(self, worker: int) -> Service:
        """Drop and send all that a worker may, and send hints to its neighbours."""
        service = self._served(worker, self._index.comparisons, [], 0)
        return service._replace(sent=[*service.sent, *self._hints(worker)])

    def _served(self, worker: int, compared: int, found: list[FoundPairs], tuples: int) -> Service:
        """Drop and send all that a worker may; return the service."""
        tuples += self._drop(worker)
        self._forward(worker)
        sent = self._outbox(worker)
        if self._is_urgent:
            sent += self._hints(worker)  # at once: every worker waits for the end of both streams
        tuples += sum([each.tuples for each in sent])
        return Service(sent, found, tuples, self._index.comparisons - compared)

    def _step(self, action: Action, *, is_again: bool = False) -> list[FoundPairs]:
        """Take an action of the model; return the pairs found."""
        before = self._state
        self._state, _ = chain.after(self._setup, before, action)
        found = self._index.take()
        # Repeated messages are not recorded (docs/join.md, section 9).
        if self._recorder is not None and not is_again:
            pairs = sum([len(each.r_ids) for each in found])
            self._recorder.record(before, action, self._state, pairs)
        return found

    def _take(self, worker: int, message: Block | Acknowledgement) -> list[FoundPairs]:
        to_right = goes_right(message)
        boundary = worker - 1 if to_right else worker
        self._state = with_channel(self._state, boundary, to_right, (message,))
        lane, _ = lanes(self._state.workers[worker], message.stream)
        if isinstance(message, Block):
            assert message.number <= lane.received + 1, "links let no block overtake another one"
            is_again = not self._setup.rules.in_turn(lane, message)
            what = "receive"
        else:
            is_again = not any(
                copy.sent < 0 and copy.block.number == message.number for copy in lane.copies
            )
            what = "acknowledge"
        return self._step(Action(what, worker, message.stream), is_again=is_again)

    def _drop(self, worker: int) -> int:
        """Drop the tuples that a worker may drop; return their number."""
        setup, dropped = self._setup, 0
        for stream in STREAMS:
            held = self._state.workers[worker]
            if local.droppable(held, stream, setup.window_us, setup.content, setup.rules):
                self._step(Action("drop", worker, stream))
                before, after = (
                    lanes(each, stream)[0] for each in (held, self._state.workers[worker])
                )
                dropped += len(before.store) - len(after.store)
        return dropped

    def _forward(self, worker: int) -> None:
        setup = self._setup
        for stream in STREAMS if self._forwards or self._drains else ():
            if self._is_closed(worker, stream):
                continue
            while self._forwards or local.is_overdue(setup, self._state.workers[worker], stream):
                action = next(chain.forwards(setup, self._state, worker, stream), None)
                if action is None:
                    break
                self._step(action)

    def _is_closed(self, _worker: int, _stream: str) -> bool:
        """Return whether a worker may send no block of a stream, whatever the loads are."""
        return False

    # -------------------------------------------------------------------------------- messages

    def _outbox(self, worker: int) -> list[Sent]:
        """Take the messages of a worker out of the model's channels."""
        sent = []
        for boundary, to_right in ((worker - 1, False), (worker, True)):
            if not 0 <= boundary < len(self._state.right):
                continue
            channel = channel_of(self._state, boundary, to_right)
            if channel:
                self._state = with_channel(self._state, boundary, to_right, ())
                neighbour = worker + 1 if to_right else worker - 1
                heard_us, size = self._news(worker, neighbour)
                self._known[worker, neighbour] = heard_us, size
                for message in channel:
                    is_block = isinstance(message, Block)
                    kind: Literal["block", "ack"] = "block" if is_block else "ack"
                    tuples = len(message.tuples) if isinstance(message, Block) else 0
                    sent.append(Sent(neighbour, Letter(message, heard_us, size), kind, tuples))
        return sent

    def _news(self, worker: int, neighbour: int) -> tuple[int, int]:
        """Return a worker's hints for a neighbour: watermark that way, size of the other store."""
        r, s = self._state.workers[worker]
        return (r.heard_us, len(s.store)) if neighbour > worker else (s.heard_us, len(r.store))

    def _hear(self, worker: int, sender: int, letter: Letter) -> None:
        along, against = (R, S) if sender < worker else (S, R)
        before = self._state.workers[worker]
        after = local.hear_size(local.hear(before, along, letter.heard_us), against, letter.size)
        if after is not before:
            self._state = with_worker(self._state, worker, after)

    def _hints(self, worker: int) -> list[Sent]:
        """Return hints with news for the neighbours.

        News is a watermark that has moved by a part of the window (by anything, if tuples wait for
        it), or a store that has changed by a block.
        """
        step_us = 1 if self._is_urgent else self._config.window_us // HINTS_A_WINDOW + 1
        step = self._setup.block_size
        sent: list[Sent] = []
        for neighbour in (worker - 1, worker + 1):
            if not 0 <= neighbour < len(self._state.workers):
                continue
            heard_us, size = self._news(worker, neighbour)
            known_us, known = self._known.get((worker, neighbour), (NO_WATERMARK_US, 0))
            if heard_us - known_us >= step_us or abs(size - known) >= step:
                self._known[worker, neighbour] = heard_us, size
                sent.append(Sent(neighbour, Letter(None, heard_us, size), "hint"))
        return sent


def _moved(before: ChainState, after: ChainState) -> int:
    """Return how many tuples move if the largest part of each worker stays where it is."""
    few, many = sorted((before.workers, after.workers), key=len)
    held = [len(r.store) + len(s.store) for r, s in many]
    bounds = [n * len(many) // len(few) for n in range(len(few) + 1)]
    return sum(held) - sum(max(held[first:last]) for first, last in pairwise(bounds))


def _change(state: ChainState, grow: bool) -> tuple[Action, int]:
    """Return the split of the fullest worker in equal parts, or the merge of emptiest neighbours.

    The second value is the number of tuples that move.
    """
    sizes = [(len(r.store), len(s.store)) for r, s in state.workers]
    held = [r + s for r, s in sizes]
    if not grow:
        at = min(range(len(held) - 1), key=lambda n: held[n] + held[n + 1])
        return Action("merge", at), held[at + 1]
    at = max(range(len(held)), key=lambda n: held[n])
    (of_r, _), half = sizes[at], held[at] // 2
    if half <= of_r:
        return Action("split", at, R, half), half
    return Action("split", at, S, half - of_r), half
