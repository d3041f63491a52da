"""Worker of scripts that serves tuples and messages, records findings, and sends results.

Rules of this file:

* The machine is asked when the work of an item has been done. Its findings are more work on the
  same item: results are computed one by one, before the next item is served. A result can be seen,
  and is sent to its readers, when it has been computed.
* After a failure the worker repeats all work since its last mark, and sends the results again. The
  record takes back the steps since that mark: a step counts once.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Annotated, NamedTuple, TypeAlias

import simpy

from model.script.silence import NO_FLOORS
from model.vocabulary import Event, Step
from model.vocabulary.script.config import END_US
from model.vocabulary.settings import Setting, Settings, require
from sim.kernel.plan import Plan, Worker
from sim.kernel.recorder import Level
from sim.kernel.station import Station
from sim.script.machine import Finding, Message, ScriptMachine
from sim.script.placements import PLACEMENTS, PLAN
from sim.timed_room import Checkpoint, Revocable


@dataclass(frozen=True, slots=True)
class ScriptTuning(Settings):
    """Settings of a plan that only this room has."""

    placement: Annotated[
        str, Setting("rule that places computations on workers", choices=PLACEMENTS)
    ] = PLAN
    result_us: Annotated[
        float,
        Setting("work of a result at speed 1: to compute it, or to take it in", at_least=0),
    ] = 100.0
    result_bytes: Annotated[
        int, Setting("size of a result, or of a notice that there is none, on a link", above=0)
    ] = 100
    filters: Annotated[
        bool,
        Setting("drop tuples that no script asks for at the log; otherwise a worker drops them"),
    ] = True
    period_us: int | None = None
    """Time (us) for which sensors should send, from the start of the run; ``None``: unknown, and no
    number of sent tuples is compared with their rates."""

    def _check_together(self) -> None:
        good = self.period_us is None or self.period_us > 0
        require(good, "period_us", self.period_us, "above 0, or None")


# ---------------------------------------------------------------------------------------- records


class Result(NamedTuple):
    """A result: its stamp, and when (us since the start) its worker had computed it."""

    stamp_us: int
    at_us: float
    is_last: bool
    """True if only the end of the stream made the result known."""


class WorkerRecord(Revocable):
    """The record of one worker so far."""

    __slots__ = ("_known_us", "_start_us", "known_us", "results", "steps", "waited_us")

    def __init__(self, start_us: int) -> None:
        self.waited_us: list[float] = []
        """Time from the arrival of each served tuple in the log until it was served."""
        self.steps: list[Step] = []
        self.results: list[Result] = []
        self.known_us = Level()
        """Stamp before which the worker had all results, since the start of the run; infinite after
        the last one."""
        self._start_us = start_us
        self._known_us: int | None = None
        super().__init__(self.waited_us, self.steps, self.results)

    def add(self, finding: Finding, now_us: float) -> None:
        """Add a finding that the worker makes now."""
        self.steps += finding.steps
        if finding.stamp_us is not None:
            self.results.append(Result(finding.stamp_us, now_us, finding.is_last))

    def gauge(self, known_us: int, now_us: float) -> None:
        """Record the stamp before which the worker has all results now."""
        if known_us != self._known_us:
            self._known_us = known_us
            since_us = inf if known_us == END_US else float(known_us - self._start_us)
            self.known_us.set(since_us, now_us)


class Sent(NamedTuple):
    """A message from one worker to another."""

    sender: int
    reader: int
    stamps_us: tuple[int, ...]
    """Stamps of the results in the message."""
    at_us: float


# ---------------------------------------------------------------------------------------- workers


class Arrival(NamedTuple):
    """A tuple on its way through the cluster."""

    event: Event
    work_us: float
    floor_us: int = 0
    """Least watermark of its sensor, because the sensor was silent before."""
    is_asked_for: bool = True


class Mark(NamedTuple):
    """The end of a batch, or of the stream."""

    batch: int
    is_flush: bool
    tuples: int
    """Number of tuples in the log at the end of the batch."""
    floors_us: Mapping[str, int] = NO_FLOORS
    """Least watermarks of sensors that are idle at the end of the batch."""
    is_from_log: bool = True


Item: TypeAlias = Arrival | Mark | Message
Way: TypeAlias = Callable[[Item, float], object]
"""Function that sends an item, with its size in bits, to a worker."""


class Host:
    """One worker: its machine on its station, and its record."""

    def __init__(
        self,
        env: simpy.Environment,
        plan: Plan,
        tuning: ScriptTuning,
        number: int,
        machine: ScriptMachine,
    ) -> None:
        self.number = number
        self.name = f"worker-{number}"
        self.worker: Worker = plan.cluster.worker(number)
        self.machine = machine
        self.record = WorkerRecord(plan.epoch_us)
        self.record.gauge(machine.known_us, 0.0)
        self.ways: dict[int, Way] = {}
        """Ways to other workers, by their numbers."""
        self.onward: dict[str, list[int]] = {}
        """Numbers of the workers to which this worker sends tuples on, by sensor."""
        self.fed: list[Way] = []
        """Ways to the workers to which this worker sends tuples on."""
        self.feeders = 1
        """Number of ways by which tuples and marks come, from the log or from other workers."""
        self.expected = 0
        """Number of tuples on their way to this worker."""
        self.came_us: list[float] = []
        """Time at which each tuple came in, since the start of the run."""
        self.sent: list[Sent] = []
        self.checkpoint = Checkpoint(plan, self.name, machine, self.record)
        self._env, self._start_us = env, plan.epoch_us
        self._tuple_bits = 8.0 * plan.cluster.tuple_bytes
        self._result_bits = 8.0 * tuning.result_bytes
        self._result_us = tuning.result_us
        self._marks = Counter[int]()  # that have come, by batch
        self._left: Iterator[Finding] | None = None  # findings about the item in service
        self._computing: Finding | None = None
        self.station = Station[Item](
            env,
            self.worker,
            self._end,
            restart=self._restart if self.checkpoint.is_kept else None,
            more=self._work_on,
        )

    def take_in(self, item: Item, entered: Callable[[], object] | None = None) -> bool:
        """Queue an item; return whether it waits at the door."""
        work_us = 0.0
        if isinstance(item, Arrival):
            self.expected -= 1
            self.came_us.append(self._env.now)
            for number in self.onward.get(item.event.key, ()):
                self.ways[number](item, self._tuple_bits)
            work_us = item.work_us
        elif isinstance(item, Message):
            work_us = self._result_us
        else:
            return self._take_in_mark(item, entered)
        return self.station.offer(item, work_us, entered)

    def _take_in_mark(self, mark: Mark, entered: Callable[[], object] | None) -> bool:
        """Queue a mark that has come on every way; send on a mark from the log."""
        if mark.is_from_log:
            for way in self.fed:
                way(mark._replace(is_from_log=False), 0.0)
        self._marks[mark.batch] += 1
        if self._marks[mark.batch] < self.feeders:
            return False
        return self.station.offer(mark, 0.0, entered)

    def _work_on(self, item: Item) -> float | None:
        """Ask the machine what follows from an item; return the work of the next result."""
        if self._left is None:
            found = self._ask(item)
            if not found:
                return None
            self._left = iter(found)
        elif self._computing is not None:
            self._publish(self._computing)
        for finding in self._left:
            if finding.stamp_us is not None:
                self._computing = finding
                return self._result_us
            self._publish(finding)
        self._left = self._computing = None
        return None

    def _ask(self, item: Item) -> Sequence[Finding]:
        if isinstance(item, Arrival):
            if not item.is_asked_for:
                return ()
            event = item.event
            arrived_us = event.arrival_us - self._start_us
            self.record.waited_us.append(self._env.now - arrived_us)
            return self.machine.take(event, item.floor_us)
        if isinstance(item, Message):
            return self.machine.hear(item.content)
        if item.is_flush:
            return self.machine.flush()
        return self.machine.end_batch(item.floors_us, item.tuples)

    def _publish(self, finding: Finding) -> None:
        """Record a finding, and send its messages."""
        now = self._env.now
        self.record.add(finding, now)
        for message in finding.messages:
            self.sent.append(Sent(self.number, message.reader, message.stamps_us, now))
            bits = self._result_bits * max(1, len(message.stamps_us))
            self.ways[message.reader](message, bits)

    def _end(self, item: Item, _arrived_us: float, _started_us: float) -> None:
        """End the service of an item; a mark is a checkpoint."""
        self.record.gauge(self.machine.known_us, self._env.now)
        if isinstance(item, Mark):
            self.station.checkpoint()
            self.checkpoint.save(item.batch, is_flush=item.is_flush)

    def _restart(self) -> None:
        """Restart from the last mark after a failure."""
        self._left = self._computing = None
        self.checkpoint.restore()
        self.record.gauge(self.machine.known_us, self._env.now)
