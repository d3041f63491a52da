"""Workers of a chain on their stations, with links between them.

Source: docs/join.md, sections 3 to 5.

Rules of this file:

* What happens is decided and done by the table of the model (``model.join.chain``); here is when,
  and what it costs. The model's channels say what is in a message, links when it comes.
* A worker takes what stands in its queue, then drops and sends what it may: one service. Its
  messages leave at the end, its pairs come out then.
* What was under way when a worker failed belongs to an earlier ``life`` and has no effect.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import simpy

from model.join import chain
from model.join import worker as local
from model.join.recording import Recorder
from model.join.state import Action, Setup, State, channel_of, with_worker
from model.join.worker import Block, lanes
from model.vocabulary.join import NO_WATERMARK_US, STREAMS, R, S
from sim.join.content import Found, Index
from sim.join.crew import Crew
from sim.kernel.distributions import Constant
from sim.kernel.link import Link
from sim.kernel.station import Station, Worker

NOTHING = Constant(0.0)
HINTS_A_WINDOW = 16


class Sent(NamedTuple):
    """A message that leaves a worker: by which link, and how large."""

    link: Link["Task"]
    task: "Task"
    n_bytes: int


class Task:
    """What stands in a worker's queue: an intake, a message, or a nudge to look what may be done.

    ``what`` is an action of the model, ``hint`` or ``look``.
    """

    __slots__ = ("found", "heard_us", "life", "n", "outbox", "size", "stream", "to_right", "what")

    def __init__(self, what: str, stream: str = "", n: int = 0) -> None:
        self.what = what
        self.stream = stream
        self.n = n
        """Tuples that are admitted."""
        self.life = 0
        self.to_right: bool | None = None
        """Where a message goes."""
        self.heard_us: int | None = None
        """Watermark at the source from which the message comes: of R to the right, else of S."""
        self.size: int | None = None
        """Tuples in the sender's store of the stream that comes the other way."""
        self.outbox: list[Sent] = []
        self.found: list[Found] = []


class Traffic:
    """What went over the boundaries."""

    __slots__ = ("acks", "blocks", "hints", "tuples")

    def __init__(self) -> None:
        self.tuples = self.blocks = self.acks = self.hints = 0


class Line:
    """The workers of a chain and the links between them.

    ``done(worker, task)`` is called after every service, ``idle()`` when nothing is under way;
    ``emit(found)`` when pairs come out.
    """

    def __init__(
        self,
        env: simpy.Environment,
        setup: Setup,
        index: Index,
        crew: Crew,
        done: Callable[[int, Task], object],
        idle: Callable[[], object],
        emit: Callable[[Found], object],
    ) -> None:
        self.setup = setup
        self.index = index
        self.crew = crew
        self.traffic = Traffic()
        self.stations: list[Station[Task]] = []
        self.right: list[Link[Task]] = []
        self.left: list[Link[Task]] = []
        self.state: State
        self.recorder: Recorder | None = None
        self.forwards = True
        """Whether blocks are sent; not while an epoch comes to its end."""
        self.under_way = 0
        """Tasks in queues and on links."""
        self._env = env
        self._done, self._idle, self._emit = done, idle, emit
        self._life = 0
        self._told: dict[tuple[int, bool], tuple[int, int]] = {}
        """By boundary and direction: watermark and store size that a neighbour knows."""

    # ------------------------------------------------------------------------------ its parts

    def begin(self, state: State, recorder: Recorder | None) -> None:
        """Go on from a quiet chain; whatever is still under way is void."""
        self.state, self.recorder = state, recorder
        self._life += 1
        self.under_way = 0
        self.forwards = True
        self.index.take()
        self._told.clear()
        while len(self.stations) < len(state.workers):
            self._add_worker()

    def _add_worker(self) -> None:
        at = len(self.stations)
        worker = Worker(NOTHING, speed=self.crew.speeds[at % len(self.crew.speeds)])
        station = Station[Task](
            self._env,
            worker,
            lambda task, _arrived_us, _started_us: self._finish(at, task),
            work=lambda task: self._take(at, task),
        )
        self.stations.append(station)
        if at:
            tier = self.crew.tiers[(at - 1) % len(self.crew.tiers)]
            self.right.append(Link(self._env, tier, lambda task: self._deliver(at, task)))
            self.left.append(Link(self._env, tier, lambda task: self._deliver(at - 1, task)))

    @property
    def workers(self) -> Sequence[local.Worker]:
        """The workers as the model sees them."""
        return self.state.workers

    def set_block_size(self, block_size: int) -> None:
        """Blocks are at most so large from now on."""
        if block_size != self.setup.block_size:
            self.setup = replace(self.setup, block_size=block_size)

    # --------------------------------------------------------------------------------- to it

    def offer(self, at: int, task: Task) -> None:
        """Put something into a worker's queue."""
        task.life = self._life
        self.under_way += 1
        self.stations[at].offer(task, 0.0)

    def hint(self, eager: bool = False) -> int:
        """Let workers send hints where there is news; returns how many were sent.

        News is a watermark that has moved by a part of the window, or a store that has changed by
        a block since the neighbour heard of it; ``eager``: by anything.
        """
        step_us = 1 if eager else self.setup.window_us // HINTS_A_WINDOW + 1
        size = 1 if eager else self.setup.block_size
        boundaries = range(len(self.workers) - 1)
        directions = [(at, to_right) for at in boundaries for to_right in (True, False)]
        return sum([self._hint_over(*each, step_us, size) for each in directions])

    def _hint_over(self, boundary: int, to_right: bool, step_us: int, step_size: int) -> bool:
        worker = self.workers[boundary if to_right else boundary + 1]
        heard_us = (worker.r if to_right else worker.s).heard_us
        size = len((worker.s if to_right else worker.r).store)
        told_us, told_size = self._told.get((boundary, to_right), (NO_WATERMARK_US, 0))
        if heard_us - told_us < step_us and abs(size - told_size) < step_size:
            return False
        self._told[boundary, to_right] = (heard_us, size)
        task = Task("hint")
        task.heard_us, task.size, task.to_right = heard_us, size, to_right
        self.traffic.hints += 1
        self._send(Sent(self._link(boundary, to_right), task, self.crew.costs.header_bytes))
        return True

    def _link(self, boundary: int, to_right: bool) -> Link[Task]:
        return (self.right if to_right else self.left)[boundary]

    def _send(self, sent: Sent) -> None:
        sent.task.life = self._life
        self.under_way += 1
        sent.link.send(sent.task, 8 * sent.n_bytes)

    def _deliver(self, at: int, task: Task) -> None:
        if task.life == self._life:
            self.stations[at].offer(task, 0.0)

    # ---------------------------------------------------------------------------- one service

    def _take(self, at: int, task: Task) -> float:
        """Do what the task asks and what is possible then; returns the work."""
        if task.life != self._life:
            return 0.0
        before = self.index.comparisons
        tuples = self._act(at, task)
        self._hear(at, task)
        tuples += self._drop(at, task)
        if self.forwards:
            tuples += self._forward(at, task)
        costs = self.crew.costs
        results = sum([len(found.r) for found in task.found])
        comparisons = self.index.comparisons - before
        return (
            costs.message_us * (1 + len(task.outbox))
            + costs.tuple_us * tuples
            + costs.comparison_us * comparisons
            + costs.result_us * results
        )

    def _act(self, at: int, task: Task) -> int:
        """The action that the task is; returns how many tuples it has."""
        stream = task.stream
        if task.what == "admit":
            self._step(Action("admit", at, stream, task.n), task)
            return task.n
        if task.what == "acknowledge":
            self._step(Action("acknowledge", at, stream), task)
        if task.what != "receive":
            return 0
        boundary = at - 1 if stream == R else at
        block = channel_of(self.state, boundary, stream == R)[0]
        assert isinstance(block, Block)
        self._step(Action("receive", at, stream), task)
        self._reply(at, boundary, Task("acknowledge", stream), task)
        return len(block.tuples)

    def _step(self, action: Action, task: Task) -> None:
        before = self.state
        self.state, _ = chain.after(self.setup, before, action)
        found = self.index.take()
        task.found += found
        if self.recorder is not None:
            pairs = sum([len(each.r) for each in found])
            self.recorder.record(before, action, self.state, pairs)

    def _reply(self, at: int, boundary: int, message: Task, task: Task, tuples: int = 0) -> None:
        """Put a message into the outbox, with what its sender has heard."""
        message.to_right = boundary == at
        worker = self.workers[at]
        message.heard_us = (worker.r if message.to_right else worker.s).heard_us
        # The neighbour sends us the stream that comes from there: that store's size matters to it.
        # An acknowledgement says the same by itself.
        message.size = len((worker.s if message.to_right else worker.r).store)
        self._told[boundary, message.to_right] = (message.heard_us, message.size)
        costs = self.crew.costs
        n_bytes = costs.header_bytes + costs.tuple_bytes * tuples
        task.outbox.append(Sent(self._link(boundary, message.to_right), message, n_bytes))
        if message.what == "receive":
            self.traffic.blocks += 1
            self.traffic.tuples += tuples
        else:
            self.traffic.acks += 1

    def _hear(self, at: int, task: Task) -> None:
        if task.heard_us is None:
            return
        before = self.workers[at]
        worker = local.hear(before, R if task.to_right else S, task.heard_us)
        if task.size is not None:
            worker = local.told(worker, S if task.to_right else R, task.size)
        if worker is not before:
            self.state = with_worker(self.state, at, worker)

    def _drop(self, at: int, task: Task) -> int:
        """Drop what may be dropped; returns how many tuples that were."""
        setup, dropped = self.setup, 0
        for stream in STREAMS:
            worker = self.workers[at]
            if local.can_be_dropped(worker, stream, setup.window_us, setup.content, setup.rules):
                self._step(Action("drop", at, stream), task)
                before, after = (lanes(each, stream)[0] for each in (worker, self.workers[at]))
                dropped += len(before.store) - len(after.store)
        return dropped

    def _forward(self, at: int, task: Task) -> int:
        """Send what may be sent; returns how many tuples that were."""
        tuples = 0
        for stream in STREAMS:
            boundary = at if stream == R else at - 1
            while action := next(chain.forwards(self.setup, self.state, at, stream), None):
                self._step(action, task)
                self._reply(at, boundary, Task("receive", stream), task, action.n)
                tuples += action.n
        return tuples

    def _finish(self, at: int, task: Task) -> None:
        """The service is over: messages leave, pairs come out."""
        if task.life != self._life:
            return
        for sent in task.outbox:
            self._send(sent)
        for found in task.found:
            self._emit(found)
        self.under_way -= 1
        self._done(at, task)
        if not self.under_way and task.life == self._life:
            self._idle()
