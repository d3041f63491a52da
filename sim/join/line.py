"""Workers of a chain at their stations, with links between neighbours and from the log.

Source: docs/join.md, section 13.

Rules of this file:

* A task from a worker's queue is one service: the machine does it when the service begins;
  messages leave, and pairs come out, at its end.
* Workers have queues without a limit: the credit bounds what neighbours send.
* A message that is on its way when an epoch ends or fails belongs to another ``life``, and is
  thrown away on arrival: block numbers start again with every epoch.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeAlias

import simpy

from model.vocabulary import Event
from model.vocabulary.join import R
from sim.join.machine import NOTHING, ChainMachine, FoundPairs, Service
from sim.join.tuning import Costs
from sim.kernel.distributions import iterate_samples
from sim.kernel.link import HERE, Link, Place
from sim.kernel.plan import Plan
from sim.kernel.seeds import Seeds
from sim.kernel.station import Station
from sim.timed_room import has_room, link_of, tuple_work_us

LOG = "log"
Do: TypeAlias = Callable[[], Service]
"""A call of the machine, which returns its service."""


@dataclass(slots=True, eq=False)
class ChainTask:
    """A task in a worker's queue. Changed in place, for speed."""

    do: Do
    stream: str | None
    """Stream of the tuples to admit; ``None`` for any other task."""
    is_message: bool = True
    service: Service = NOTHING


class _Transfer(NamedTuple):
    """A message on its way, which becomes a task on arrival."""

    life: int
    do: Do
    stream: str | None


class Line:
    """The workers of a chain.

    The line calls ``served(task)`` after every service, and ``emit(found)`` when pairs come out.
    """

    def __init__(
        self,
        env: simpy.Environment,
        seeds: Seeds,
        plan: Plan,
        costs: Costs,
        machine: ChainMachine,
        served: Callable[[ChainTask], object],
        emit: Callable[[FoundPairs], object],
    ) -> None:
        self.machine = machine
        self.stations: list[Station[ChainTask]] = []
        """Stations by number; after a merge the last ones are out of work."""
        self.links: dict[str, Link[_Transfer]] = {}
        self.workers = 0
        self.sent: Counter[str] = Counter()
        """Number of messages between workers, by kind."""
        self.tuples_sent = 0
        """Number of tuples in these messages."""
        self.comparisons = 0
        self._env, self._seeds, self._plan, self._costs = env, seeds, plan, costs
        self._served, self._emit = served, emit
        self._tuple_us: list[Iterator[float]] = []  # work of a tuple, by worker
        self._factors: list[Iterator[float]] = []  # of the work of a service, by worker
        self._life = 0
        self._active: set[int] = set()  # workers with a task since their last look
        self._looking: set[int] = set()  # workers with a look in their queue

    # ------------------------------------------------------------------------------- parts

    def resize(self, workers: int) -> None:
        """Set the number of workers."""
        plan = self._plan
        while len(self.stations) < workers:
            self.stations.append(self._station(len(self.stations)))
        self.workers = workers
        places = [plan.cluster.worker(number).place for number in range(workers)]
        for number in range(workers):
            self._connect(LOG, HERE, number, places)
        for left in range(workers - 1):
            for one, other in ((left, left + 1), (left + 1, left)):
                self._connect(f"worker-{one}", places[one], other, places)

    def _station(self, number: int) -> Station[ChainTask]:
        worker = self._plan.cluster.worker(number)
        stream = f"worker-{number}/service"
        self._tuple_us.append(tuple_work_us(self._plan, self._seeds, stream))
        factors = self._seeds.stream(f"worker-{number}/work")
        self._factors.append(iterate_samples(self._costs.work_factor, factors))
        return Station[ChainTask](
            self._env,
            replace(worker, queue_limit=None),
            lambda task, _arrived_us, _started_us: self._finish(number, task),
            work=partial(self._begin, number),
        )

    def _connect(
        self, sender: str, place: Place | None, to: int, places: Sequence[Place | None]
    ) -> None:
        """Build the link to a worker, unless it exists or nothing lies between the two ends."""
        name = f"{sender}>worker-{to}"
        tier = self._plan.way(place, places[to])
        if tier is not None and name not in self.links:
            receive = partial(self._arrive, to)
            # The log knows its tuples by their numbers; copies of messages are for the protocol.
            self.links[name] = link_of(
                self._env, self._seeds, self._plan, name, tier, receive, once=sender == LOG
            )

    def source(self, stream: str) -> int:
        """Return the worker at which a stream enters."""
        return 0 if stream == R else self.workers - 1

    def sheds(self, stream: str) -> bool:
        """Return whether tuples of a stream are shed when the worker where it enters is full."""
        return self._plan.cluster.worker(self.source(stream)).when_full == "drop"

    def has_room(self, stream: str) -> bool:
        """Return whether there is room in the queue of the worker at which a stream enters."""
        number = self.source(stream)
        return has_room(self.stations[number], self._plan.cluster.worker(number).queue_limit)

    @property
    def is_idle(self) -> bool:
        """Return whether no worker has anything in its queue or in service."""
        return not any(station.inside.value for station in self.stations)

    @property
    def is_silent(self) -> bool:
        """Return whether all workers are idle and nothing is on its way."""
        return self.is_idle and not any(link.inside for link in self.links.values())

    def close(self) -> None:
        """Drop the callbacks, because the run is over."""
        for station in self.stations:
            station.close()
        del self._served, self._emit

    # ---------------------------------------------------------------------- called by the cluster

    def forget(self) -> None:
        """Begin another life: messages on their way become void."""
        self._life += 1
        self._active.clear()
        self._looking.clear()

    def fail(self) -> None:
        """Stop every worker; its queue is lost."""
        for station in self.stations:
            station.fail()

    def recover(self) -> None:
        """Start the workers again."""
        for station in self.stations:
            station.recover()

    def admit(self, stream: str, events: Sequence[Event]) -> None:
        """Hand arrivals of a stream over to the worker where it enters."""
        at = self.source(stream)
        do = partial(self.machine.admit, at, stream, events)
        self._send(LOG, at, do, stream, len(events) * self._plan.cluster.tuple_bytes)

    def look(self, *, everyone: bool = False) -> None:
        """Let workers look for possible actions if they have done something since the last look."""
        if everyone:
            self._active.update(range(self.workers))
        for number in sorted(self._active - self._looking):
            self._looking.add(number)
            do = partial(self.machine.look, number)
            self.stations[number].offer(ChainTask(do, None, is_message=False))

    def tell(self, sender: str, to: int, do: Do) -> None:
        """Send a worker a message without tuples."""
        self._send(sender, to, do, None, self._costs.header_bytes)

    def _send(self, sender: str, to: int, do: Do, stream: str | None, n_bytes: int) -> None:
        link, message = self.links.get(f"{sender}>worker-{to}"), _Transfer(self._life, do, stream)
        if link is None:
            self._arrive(to, message)
        else:
            link.send(message, 8 * n_bytes)

    def _arrive(self, at: int, message: _Transfer) -> None:
        if message.life == self._life:
            self.stations[at].offer(ChainTask(message.do, message.stream))

    # ---------------------------------------------------------------------------- one service

    def _begin(self, at: int, task: ChainTask) -> float:
        """Let the machine do a task; return the work."""
        task.service = sent, found, tuples, comparisons = task.do()
        if task.is_message:
            self._active.add(at)
        else:
            self._looking.discard(at)
            self._active.discard(at)
        self.comparisons += comparisons
        costs = self._costs
        work_us = (
            costs.message_us * (task.is_message + len(sent))
            + sum(islice(self._tuple_us[at], tuples))
            + costs.comparison_us * comparisons
            + costs.result_us * sum([len(each.r_ids) for each in found])
        )
        return work_us * next(self._factors[at])

    def _finish(self, at: int, task: ChainTask) -> None:
        """End a service: messages leave, pairs come out."""
        tuple_bytes = self._plan.cluster.tuple_bytes
        for neighbour, message, kind, tuples in task.service.sent:
            self.sent[kind] += 1
            self.tuples_sent += tuples
            do = partial(self.machine.receive, neighbour, at, message)
            n_bytes = self._costs.header_bytes + tuple_bytes * tuples
            self._send(f"worker-{at}", neighbour, do, None, n_bytes)
        for found in task.service.found:
            self._emit(found)
        self._served(task)
