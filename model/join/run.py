"""A run of the model: a workload through a chain, epoch by epoch, in an order drawn from the seed.

Source: docs/join.md, as a whole.

Rules of this file:

* Every possible action may happen next; the seed alone decides. Blocks of any size are sent at any
  time, so runs with other seeds see other interleavings.
* An epoch ends when its arrivals are in and the chain is quiet, perhaps later.
* Before an epoch the chain takes the decision that is in force: it merges or splits its workers.
* A failed epoch would run again from the state before it, which is a value: so the model ignores
  faults.
* The recorder looks at actions that were taken and decides nothing. A worker numbers its own steps;
  there is no other order.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from model.join import chain
from model.join.control import decision_at
from model.join.oracle import Admission, admission, queries_of
from model.join.rules import Setup, SetupChanges, initial
from model.join.state import (
    IN_ORDER,
    Action,
    Block,
    ChainState,
    Lane,
    Listed,
    Pair,
    Worker,
    boundary,
    channel_of,
    is_quiet,
    lanes,
    other,
)
from model.vocabulary import JoinConfig, Step, System, Trace, Workload
from model.vocabulary.join import Ack, Admit, Drop, Forward, Match, Quiet, R, Receive, S

PRODUCER = "model"


def setup_of(config: JoinConfig, admitted: Admission) -> Setup:
    """Return the setup of a workload's chain; blocks of any size are sent at any time."""
    content = Listed(
        tuple(event.event_time_us for event in admitted.r.tuples),
        tuple(event.event_time_us for event in admitted.s.tuples),
        lambda r, s: len(queries_of(config, admitted, r, s)),
    )
    return Setup(
        config.workers,
        config.window_us,
        content,
        (admitted.r.wm_us, admitted.s.wm_us),
        config.block_size,
        config.credit,
        network=IN_ORDER,
        free=True,
    )


def next_epoch(state: ChainState) -> ChainState:
    """Return a quiet chain at the start of an epoch: blocks are numbered from 1 again."""
    return state._replace(
        workers=tuple(Worker(_renumbered(w.r), _renumbered(w.s)) for w in state.workers)
    )


def _renumbered(lane: Lane) -> Lane:
    return lane._replace(sent=0, received=0)


class SeededRun:
    """A chain in the middle of a workload; the workload's seed chooses the next action."""

    def __init__(self, workload: Workload, changes: SetupChanges) -> None:
        self.config = JoinConfig.from_json(workload.config)
        self.admitted = admission(workload)
        self.setup = replace(setup_of(self.config, self.admitted), **changes)
        self.state = initial(self.setup)
        self._draw = Random(workload.seed).randrange
        self.steps: list[Step] = list(self.admitted.rejected)

    def epoch(self, number: int, flush: bool) -> None:
        """Admit the tuples of the epoch, or flush, and continue until the chain is quiet."""
        limits = tuple(
            sum(epoch <= number for epoch in stream.epochs)
            for stream in (self.admitted.r, self.admitted.s)
        )
        self.state = next_epoch(self.state)
        if self.config.decisions:
            self._take_decision(number)
        if not flush:
            self.state = chain.raise_watermarks(self.state, self.admitted.floors_us[number])
        recorder = Recorder(number, self.setup)
        while (action := self._next(limits, flush)) is not None:
            before = self.state
            self.state, pairs = chain.after(self.setup, before, action)
            recorder.record(before, action, self.state, self._count(pairs))
            self._emit(pairs, number)
        recorder.quiet(self.state)
        self.steps.extend(recorder.steps)

    def _take_decision(self, epoch: int) -> None:
        """Change workers and block size; pairs that a merge joins belong to the epoch."""
        decided = decision_at(self.config, epoch)
        self.setup = replace(self.setup, block_size=decided.block_size)
        self.state, pairs = chain.resize(self.setup, self.state, decided.workers)
        self._emit(pairs, epoch)

    def _next(self, limits: Sequence[int], flush: bool) -> Action | None:
        """Return an action drawn at random; ``None`` if the epoch is over."""
        state = self.state
        is_over = (state.admitted_r, state.admitted_s) == tuple(limits) and state.ended == flush
        if is_over and not flush and is_quiet(state) and self._draw(2):
            return None
        transitions = list((self.setup.table or chain.TABLE).values())
        while transitions:
            transition = transitions.pop(self._draw(len(transitions)))
            possible = [
                action
                for action in transition.guard(self.setup, state)
                if self._may(action, limits, flush)
            ]
            if possible:
                return possible[self._draw(len(possible))]
        return None

    def _may(self, action: Action, limits: Sequence[int], flush: bool) -> bool:
        if action.what == "admit":
            admitted = self.state.admitted_r if action.stream == "R" else self.state.admitted_s
            return admitted < limits[action.stream != "R"]
        return flush or action.what != "end"

    def _count(self, pairs: Sequence[Pair]) -> int:
        return sum(len(queries_of(self.config, self.admitted, *pair)) for pair in pairs)

    def _emit(self, pairs: Sequence[Pair], epoch: int) -> None:
        for r, s in pairs:
            r_id, s_id = self.admitted.r.tuples[r].source_id, self.admitted.s.tuples[s].source_id
            for query in queries_of(self.config, self.admitted, r, s):
                self.steps.append(Match(query, r_id, s_id, epoch))


def run(workload: Workload, changes: SetupChanges | None = None) -> Trace:
    """Return the reference trace of a workload: results and protocol steps.

    ``changes`` replace fields of the chain's ``Setup``. Raises ``ValueError`` with one sentence if
    the configuration is invalid.
    """
    under_way = SeededRun(workload, changes or {})
    batches = sum(1 for _ in workload.batches())
    for number in range(batches):
        under_way.epoch(number, flush=False)
    if workload.flush:
        under_way.epoch(batches, flush=True)
    return Trace(PRODUCER, under_way.steps)


def make_system() -> System:
    """Return the reference as a System."""
    return run


class Recorder:
    """Records the protocol steps of one epoch, from the states before and after each action."""

    def __init__(self, epoch: int, setup: Setup) -> None:
        self.epoch = epoch
        self.setup = setup
        self.steps: list[Step] = []
        self.counts: dict[int, int] = {}

    def record(self, before: ChainState, action: Action, after: ChainState, pairs: int) -> None:
        """Record an action, if its kind is recorded."""
        at, stream = action.worker, action.stream
        if action.what == "admit":
            rank = before.admitted_r if stream == R else before.admitted_s
            self.steps.append(Admit(*self._at(at), stream, rank, action.n or 1, pairs))
        elif action.what == "forward":
            self._forward(after, action)
        elif action.what == "receive":
            self._receive(before, after, action, pairs)
        elif action.what == "acknowledge":
            message = channel_of(before, boundary(at, stream), stream == S)[action.n]
            self.steps.append(Ack(*self._at(at), stream, message.number))
        elif action.what == "drop":
            self._drop(before, after, action)

    def quiet(self, state: ChainState) -> None:
        """Record what every worker holds."""
        for at, (r, s) in enumerate(state.workers):
            held = len(r.store), len(s.store)
            self.steps.append(Quiet(*self._at(at), *held, r.wm_us, s.wm_us))

    def _at(self, worker: int) -> tuple[int, int, int]:
        number = self.counts.get(worker, 0)
        self.counts[worker] = number + 1
        return self.epoch, worker, number

    def _forward(self, after: ChainState, action: Action) -> None:
        lane, _ = lanes(after.workers[action.worker], action.stream)
        block = lane.copies[-1].block
        self.steps.append(
            Forward(
                *self._at(action.worker),
                action.stream,
                block.number,
                block.seen,
                block.tuples[0],
                block.tuples[-1],
                len(block.tuples),
                block.wm_us,
            )
        )

    def _receive(self, before: ChainState, after: ChainState, action: Action, pairs: int) -> None:
        to, stream = action.worker, action.stream
        channel = channel_of(before, boundary(to, other(stream)), stream == R)
        block = channel[action.n]
        assert isinstance(block, Block)
        copies = len(self.setup.rules.visible(before.workers[to], block))
        lane, opposite = lanes(after.workers[to], stream)
        at = self._at(to)
        self.steps.append(
            Receive(*at, stream, block.number, copies, pairs, opposite.sent, len(lane.store))
        )

    def _drop(self, before: ChainState, after: ChainState, action: Action) -> None:
        at, stream = action.worker, action.stream
        horizon_us = self.setup.rules.drop_wm_us(before.workers[at], stream) - self.setup.window_us
        gone = len(lanes(before.workers[at], stream)[0].store) - len(
            lanes(after.workers[at], stream)[0].store
        )
        self.steps.append(Drop(*self._at(at), stream, horizon_us, gone))
