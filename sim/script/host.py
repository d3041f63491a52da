"""A worker that serves what it is sent, and sends on what it finds out.

Rules of this file:

* The machine is asked when the work of an item has been done. What it finds out is more work on the
  same item: results are computed one by one, before anything else is served, and can be seen and
  are sent to their readers when they have been computed.
* What a failure interrupts is done again from the last mark on, and so is sent again.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import simpy

from model.vocabulary import Event
from model.vocabulary.settings import require
from sim.kernel.faults import Fail
from sim.kernel.plan import Plan, Worker
from sim.kernel.station import Offer, Station
from sim.script.machine import Finding, Machine, Message
from sim.script.record import WorkerRecord
from sim.script.tuning import ScriptTuning


class Sent(NamedTuple):
    """A message that a worker sent another one."""

    sender: int
    reader: int
    stamps_us: tuple[int, ...]
    """Of the results in it."""
    at_us: float


class Arrival(NamedTuple):
    """A tuple on its way through the cluster."""

    event: Event
    work_us: float


class Mark(NamedTuple):
    """The end of a batch, or of the stream."""

    batch: int
    is_flush: bool
    is_from_log: bool = True


Item: TypeAlias = Arrival | Mark | Message
Way: TypeAlias = Callable[[Item, float], object]
"""Takes something with its size in bits to a worker."""


class Host:
    """One worker: its machine on its station, and what was seen of it."""

    def __init__(
        self,
        env: simpy.Environment,
        plan: Plan,
        tuning: ScriptTuning,
        number: int,
        machine: Machine,
    ) -> None:
        self.number = number
        self.name = f"worker-{number}"
        self.worker: Worker = plan.cluster.worker(number)
        require(self.worker.servers == 1, "servers of a worker", self.worker.servers, "1")
        self.machine = machine
        self.record = WorkerRecord(plan.epoch_us)
        self.record.gauge(machine.known_us, 0.0)
        self.ways: dict[int, Way] = {}
        """Ways to other workers, by their numbers."""
        self.onward: dict[str, list[int]] = {}
        """By sensor whose tuples it sends on: the workers that are sent them."""
        self.fed: list[Way] = []
        """Ways to the workers that it sends tuples on to."""
        self.feeders = 1
        """Ways by which tuples, and so marks, come: from the log, and from those who send on."""
        self.expected = 0
        """Tuples that are on their way to here."""
        self.came_us: list[float] = []
        """When each tuple came in."""
        self.heard = 0
        """Results, and notices that there is none, that came in from other workers."""
        self.sent: list[Sent] = []
        self.batch = 0
        """The micro-batch, or the flush, that the worker is at."""
        self.interrupted: set[int] = set()
        """Micro-batches in which the worker failed."""
        self._env, self._start_us = env, plan.epoch_us
        self._tuple_bits = 8.0 * plan.cluster.tuple_bytes
        self._result_bits = 8.0 * tuning.result_bytes
        self._result_us = tuning.result_us
        self._saves = any(
            isinstance(each, Fail) and each.worker == self.name for each in plan.faults
        )
        self._saved = machine.saved() if self._saves else None
        self._marks = Counter[int]()  # that have come, by batch
        self._is_over = False
        self._left: Iterator[Finding] | None = None  # of what was found in the item in service
        self._computing: Finding | None = None
        self.station = Station[Item](
            env,
            self.worker,
            self._end,
            restart=self._restart if self._saves else None,
            more=self._work_on,
        )

    def admits(self) -> bool:
        """Say whether there is room, for a tuple that may be shed."""
        worker, station = self.worker, self.station
        if worker.when_full == "block" or worker.queue_limit is None:
            return True
        waiting = station.waiting + self.expected
        return waiting < worker.queue_limit or station.inside.value + self.expected == 0

    def take_in(self, item: Item, entered: Callable[[], object] | None = None) -> Offer:
        """Queue what comes in; what the log has taken in is not dropped."""
        work_us = 0.0
        if isinstance(item, Arrival):
            self.expected -= 1
            self.came_us.append(self._env.now)
            for number in self.onward.get(item.event.key, ()):
                self.ways[number](item, self._tuple_bits)
            work_us = item.work_us
        elif isinstance(item, Message):
            self.heard += max(1, len(item.stamps_us))
            work_us = self._result_us
        else:
            return self._take_in_mark(item, entered)
        return self.station.offer(item, work_us, entered, must=True)

    def _take_in_mark(self, mark: Mark, entered: Callable[[], object] | None) -> Offer:
        """Queue a mark that has come on every way; send on one that comes from the log."""
        if mark.is_from_log:
            for way in self.fed:
                way(mark._replace(is_from_log=False), 0.0)
        self._marks[mark.batch] += 1
        if self._marks[mark.batch] < self.feeders:
            return Offer.ENTERED
        return self.station.offer(mark, 0.0, entered, must=True)

    def _work_on(self, item: Item) -> float | None:
        """Ask the machine what follows from an item; return the work of its next result."""
        if self._left is None:
            found = self._ask(item)
            if not found:
                return None
            self._left = iter(found)
        elif self._computing is not None:
            self._tell(self._computing)
        for finding in self._left:
            if finding.stamp_us is not None:
                self._computing = finding
                return self._result_us
            self._tell(finding)
        self._left = self._computing = None
        return None

    def _ask(self, item: Item) -> Sequence[Finding]:
        if isinstance(item, Arrival):
            event = item.event
            arrived_us = event.arrival_us - self._start_us
            self.record.waited_us.append(self._env.now - arrived_us)
            return self.machine.take(event)
        if isinstance(item, Message):
            return self.machine.hear(item.content)
        return self.machine.flush() if item.is_flush else self.machine.end_batch()

    def _tell(self, finding: Finding) -> None:
        """Note what was found out, and send it to those who read it."""
        now = self._env.now
        self.record.saw(finding, now)
        for message in finding.messages:
            self.sent.append(Sent(self.number, message.reader, message.stamps_us, now))
            bits = self._result_bits * max(1, len(message.stamps_us))
            self.ways[message.reader](message, bits)

    def _end(self, item: Item, _arrived_us: float, _started_us: float) -> None:
        """End the service of an item; a mark is a checkpoint."""
        self.record.gauge(self.machine.known_us, self._env.now)
        if isinstance(item, Mark):
            self.station.checkpoint()
            if self._saves:
                self._saved = self.machine.saved()
                self.record.save()
            self.batch, self._is_over = item.batch + 1, item.is_flush

    def _restart(self) -> None:
        """Go on from the last mark, after a failure."""
        if not self._is_over:
            self.interrupted.add(self.batch)
        self._left = self._computing = None
        self.machine.restore(self._saved)
        self.record.go_back()
        self.record.gauge(self.machine.known_us, self._env.now)
