"""Workers of a placement that get their inputs in any order, and their results together.

Rules of this file:

* The arrivals of a sensor come to a worker in their order, and so do the messages from one worker
  to another. All other inputs may come in any order.
* With every arrival a worker is told the floor of its sensor. Floors of sensors that are idle are
  told between two arrivals, now and then; the last ones always.
* A worker may go back to where it was saved. Its inputs since then are given again, and messages
  that it repeats come again.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, TypeAlias

from model.script.evaluation import evaluate, known_at_first
from model.script.graph import SENSOR, Graph, compile_graph
from model.script.machine import Effect, Notice, Rise, Worker, WorkerState
from model.script.placement import Placement
from model.script.rules import RULES, Rules
from model.script.run import admit
from model.script.silence import Silences
from model.script.stream import Stream
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.config import Rejected

Placing: TypeAlias = Callable[[Graph, ScriptConfig], Placement]


class Arrival(NamedTuple):
    """An arrival, and what the watermark of its sensor is at least because it was silent."""

    event: Event
    floor_us: int


class Idle(NamedTuple):
    """A sensor that is silent, and what its watermark is at least."""

    sensor: str
    floor_us: int


Input: TypeAlias = Arrival | Idle | Notice | None
"""An input of a worker; ``None`` is the end."""


def anywhere(random: Random) -> Placing:
    """Return a placement in which every computation is at any worker."""

    def place(graph: Graph, config: ScriptConfig) -> Placement:
        worker = {each: random.randrange(config.workers) for each in graph.computed}
        hosts: list[set[int]] = [set() for _ in range(config.workers)]
        for number, at in worker.items():
            streams = graph.streams(number)
            hosts[at] |= {each for each in streams if graph.nodes[each].kind == SENSOR}
        for sensor in sorted(frozenset().union(*hosts)):
            hosts[random.randrange(config.workers)].add(sensor)  # that need not read it
        return Placement("anywhere", graph, worker, tuple(frozenset(each) for each in hosts))

    return place


@dataclass
class Desk:
    """A worker with its inputs and effects since it was saved."""

    worker: Worker
    saved: WorkerState
    given: list[Input] = field(default_factory=list)
    kept: list[Effect] = field(default_factory=list)
    """Effects before the last save."""
    found: list[Effect] = field(default_factory=list)

    def take(self, given: Input) -> list[Effect]:
        """Give the worker something; return what follows."""
        self.given.append(given)
        match given:
            case None:
                new = self.worker.flush()
            case Arrival():
                new = self.worker.take(*given)
            case Idle():
                new = self.worker.end_batch({given.sensor: given.floor_us})
            case Notice():
                new = self.worker.hear(given)
        self.found += new
        return list(new)

    def save(self) -> None:
        """Keep everything so far."""
        self.found += self.worker.end_batch()
        self.saved = self.worker.saved()
        self.kept += self.found
        self.given, self.found = [], []

    def go_back(self) -> list[Effect]:
        """Start again from where the worker was saved; return the repeated effects."""
        again, self.given, self.found = self.given, [], []
        self.worker.restore(self.saved)
        return [each for given in again for each in self.take(given)]


class Interleaving:
    """One order of a workload's inputs."""

    def __init__(
        self,
        workload: Workload,
        placing: Placing,
        random: Random,
        rules: Rules = RULES,
        *,
        eventful: float = 0.1,
    ) -> None:
        """Save a worker, or take it back, with probability ``eventful`` after each step."""
        config = ScriptConfig.from_json(workload.config)
        self.workload = workload
        self.graph = compile_graph(config, rules)
        self.placement = placing(self.graph, config)
        self.went_back = 0
        """Number of times that a worker went back and had to repeat work."""
        self.sent = 0
        """Messages between workers."""
        self.idle = 0
        """Number of times that a worker is told of a silent sensor between two arrivals."""
        self._random, self._rules, self._eventful = random, rules, eventful
        workers = [Worker(config, self.placement, n, rules) for n in range(config.workers)]
        self.desks = [Desk(each, each.saved()) for each in workers]
        self._arrivals: dict[tuple[str, int], deque[Input]] = {}
        """Arrivals still to be read, by (sensor, worker)."""
        self._messages: dict[tuple[int, int], deque[Input]] = {}
        """Messages still to be read, by (sender, reader)."""
        ends = range(config.workers) if workload.flush else ()
        self._ends: dict[int, deque[Input]] = {each: deque([None]) for each in ends}
        silences, sensors = Silences(config, rules), sorted(config.asked_for)
        for event in workload.arrivals:
            if event.key in sensors:
                self._give(event.key, Arrival(event, silences.floor_us(event.key)))
            silences.take(event)
            if random.random() < eventful:
                self._give_idle(silences.floors_us(sensors))
        self._give_idle(silences.floors_us(sensors))

    def _give(self, sensor: str, given: Input) -> None:
        """Queue an input at every worker that hosts a sensor."""
        for worker, hosts in enumerate(self.placement.hosts):
            if any(self.graph.nodes[each].sensor == sensor for each in hosts):
                self._arrivals.setdefault((sensor, worker), deque()).append(given)

    def _give_idle(self, floors_us: Mapping[str, int]) -> None:
        self.idle += len(floors_us)
        for sensor, floor_us in floors_us.items():
            self._give(sensor, Idle(sensor, floor_us))

    def run(self) -> None:
        """Step until no worker has anything left to do."""
        while ways := [*self._ways()]:
            to, left = self._random.choice(ways)
            self._send(to, self.desks[to].take(left.popleft()))
            if self._random.random() < self._eventful:
                desk = self.desks[to]
                if self._random.random() < 0.5:
                    desk.save()
                else:
                    self.went_back += bool(desk.given)
                    self._send(to, desk.go_back())

    def streams(self) -> dict[int, Stream]:
        """Return the stream of each window and operation, as the workers computed it."""
        points: dict[int, list[tuple[int, float]]] = {each: [] for each in self.graph.computed}
        undefined: dict[int, list[int]] = {each: [] for each in self.graph.computed}
        until_us = known_at_first(self.graph, self._rules)
        for found in self._found():
            if isinstance(found, Rise):
                points[found.node] += found.stream.points
                undefined[found.node] += sorted(found.stream.undefined)
                until_us[found.node] = found.stream.until_us
        for number, stamps in undefined.items():
            assert len(set(stamps)) == len(stamps), f"node {number} is undefined at {stamps}"
        return {
            each: Stream(tuple(points[each]), until_us[each], frozenset(undefined[each]))
            for each in self.graph.computed
        }

    def rejected(self) -> list[Rejected]:
        """Return the refused arrivals, in the order of their numbers."""
        return sorted(each for each in self._found() if isinstance(each, Rejected))

    def differences(self) -> list[str]:
        """Return the differences from a computation from all tuples at once."""
        config = ScriptConfig.from_json(self.workload.config)
        sensors, rejected = admit(self.workload, config, self._rules)
        expected, found = evaluate(self.graph, sensors, self._rules), self.streams()
        wrong = [
            f"node {number} is {stream}; expected {expected[number]}"
            for number, stream in found.items()
            if stream != expected[number]
        ]
        if self.rejected() != sorted(rejected):
            wrong.append(f"rejected are {self.rejected()}; expected {rejected}")
        return wrong

    def _found(self) -> Iterator[Effect]:
        for desk in self.desks:
            yield from desk.kept
            yield from desk.found

    def _ways(self) -> Iterator[tuple[int, deque[Input]]]:
        """Yield the workers that may go on, each with the inputs on one way to it."""
        for ways in (self._arrivals, self._messages):
            for (_, worker), left in ways.items():
                if left:
                    yield worker, left
        for worker, end in self._ends.items():
            if end and not any(left for (_, to), left in self._arrivals.items() if to == worker):
                yield worker, end

    def _send(self, sender: int, found: Iterable[Effect]) -> None:
        """Send to the other workers what they read."""
        for each in found:
            if isinstance(each, Rise):
                for reader in self.placement.readers.get(each.node, ()):
                    self._messages.setdefault((sender, reader), deque()).extend(each.notices())
                    self.sent += len(each.notices())
