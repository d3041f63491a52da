"""Room ``script`` in time: tuples on their way to workers, results between them (docs/script.md).

Rules of this file:

* What is let in, what comes out and until when a stream is known is decided by the model, and by a
  placement what is sent to whom. Here is only when, and how long it takes.
* Arrivals of sensors that are asked for are sent on at once to every worker that hosts them. A
  worker serves what it is sent in order. When that lets it know more of a stream, it computes the
  new results before it serves anything else, and sends them to every other worker that reads them.
* A message is a result. Where a stream is known further and has no new result, those who wait for
  it get a notice, which is counted apart.
* Between every two workers there is a line for results alone.
"""

from bisect import bisect_left
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from model.script.evaluation import evaluate
from model.script.graph import SENSOR, compile_graph
from model.script.rules import RULES, Rules
from model.script.run import Intake
from model.script.stream import Stream
from model.vocabulary import ScriptConfig, Workload
from model.vocabulary.script import END_US
from sim.kernel.distributions import FloatArray, draw_us
from sim.kernel.link import Tier
from sim.kernel.seeds import Seeds
from sim.script.crew import Crew
from sim.script.flows import Flow, flows, taken
from sim.script.knowing import Knowledge, Rise
from sim.script.placements import PLACEMENTS, PLAN
from sim.script.server import Server
from sim.settings import chosen


class Told(NamedTuple):
    """A result, and when the worker that computes it has it."""

    node: int
    stamp_us: int
    at_us: float
    is_last: bool
    """Whether it took the end of the stream to know it."""


class Message(NamedTuple):
    """What a worker sends another one: a result, or a notice that there is none."""

    sender: int
    reader: int
    node: int
    stamp_us: int | None
    """Of the result; nothing for a notice."""
    until_us: int | None
    """Until when the stream is known with it; nothing while more results come."""
    sent_us: float


class Turn(NamedTuple):
    """A place in a worker's queue at which it hears more of a sensor."""

    position: int
    """Of the tuple that says so."""
    sensor: int
    until_us: int


class Room:
    """Workers, and what is sent to them and between them, on their way through a workload."""

    def __init__(
        self,
        workload: Workload,
        crew: Crew,
        start_us: int,
        way: str = PLAN,
        rules: Rules = RULES,
        config: ScriptConfig | None = None,
    ) -> None:
        """Arrivals before ``start_us`` wait for the run to start; ``way`` names a placement.

        ``config`` is that of the workload, from whoever has it and need not read it again.
        """
        self.workload = workload
        self.crew = crew
        self.start_us = start_us
        config = config or ScriptConfig.from_json(workload.config)
        self.config = config
        self.graph = compile_graph(config, rules)
        self.placement = chosen("placement", way, PLACEMENTS)(self.graph, config, rules)
        self.intake = Intake(config, rules)
        self.sent = taken(workload.arrivals, self.graph, self.intake, start_us)
        self.streams = self._evaluated(rules)
        self.work_us = draw_us(
            crew.service, Seeds(workload.seed), "service", len(self.sent.sensors)
        )
        self.flows = flows(self.sent, self.placement, crew)
        self.knowledge = [Knowledge(self.placement, each, rules) for each in range(config.workers)]
        self.told: list[Told] = []
        self.messages: list[Message] = []
        self._readers = self._read_elsewhere()
        self._told_of = [0] * len(self.graph.nodes)
        self._result_us = [crew.result_us / crew.speed(each) for each in range(config.workers)]
        """Work of a result, by worker."""
        self._tiers: dict[tuple[int, int], Tier] = {}
        self._line_us: dict[tuple[int, int], float] = {}
        self._queue: list[tuple[float, int, int, Message | None]] = []
        self._asked = 0
        """How often a time was entered into the queue."""
        self._alarm = [0] * config.workers
        """The entry at which a worker comes to its next turn."""
        both = [self._set_up(each, flow) for each, flow in enumerate(self.flows)]
        self.servers = [server for server, _ in both]
        self.ended_us: list[FloatArray] = []
        """By worker, when the run is over: when it had served each tuple of a sensor."""
        self._turns = [turns for _, turns in both]

    def _evaluated(self, rules: Rules) -> list[Stream]:
        sensors = {
            node.sensor: self.intake.stream(node.sensor, self.workload.flush)
            for node in self.graph.nodes
            if node.kind == SENSOR
        }
        return evaluate(self.graph, sensors, rules)

    def _read_elsewhere(self) -> dict[int, list[int]]:
        """By computed node: other workers that read it."""
        worker = self.placement.worker
        found: dict[int, set[int]] = {number: set() for number in self.graph.computed}
        for number in self.graph.computed:
            for each in self.graph.streams(number):
                if each in found and worker[each] != worker[number]:
                    found[each].add(worker[number])
        return {number: sorted(readers) for number, readers in found.items()}

    def _set_up(self, worker: int, flow: Flow) -> tuple[Server, list[Turn]]:
        """A worker's queue of tuples, and the turns in it, the last one first."""
        sensors, marks_us = self.sent.sensors[flow.tuples], self.sent.marks_us[flow.tuples]
        turns: list[Turn] = []
        hosted = sorted(self.placement.hosts[worker])
        for sensor in hosted:
            at = (sensors == sensor).nonzero()[0]
            at = at[self.knowledge[worker].moments(sensor, marks_us[at])]
            turns += map(Turn, at.tolist(), [sensor] * len(at), marks_us[at].tolist())
        due_us = flow.due_us.tolist()
        work_us = (self.work_us[flow.tuples] / self.crew.speed(worker)).tolist()
        if self.workload.flush and hosted:
            # The end comes behind the last tuple, and is told of all sensors together.
            came_us = float(self.sent.arrived_us.max(initial=0.0))
            end_us = came_us + self.crew.way_to(worker).latency_us
            turns += [Turn(len(due_us), sensor, END_US) for sensor in hosted]
            due_us.append(max([end_us, *due_us[-1:]]))
            work_us.append(0.0)
        return Server(due_us, work_us), sorted(turns, reverse=True)

    # ------------------------------------------------------------------------------------- the run

    def run(self) -> None:
        """Until everything has been served."""
        for worker in range(self.config.workers):
            self._await_turn(worker)
        queue = self._queue
        while queue:
            at_us, entry, worker, message = heappop(queue)
            if message is not None:
                self._receive(worker, message, at_us)
            elif entry == self._alarm[worker]:
                self._take_turn(worker)
            else:
                continue  # set before something else came in between
            self._await_turn(worker)
        for server, flow in zip(self.servers, self.flows, strict=True):
            server.serve_all()
            self.ended_us.append(np.array(server.ended_us[: len(flow.tuples)], dtype=np.float64))

    def _enter(self, at_us: float, worker: int, message: Message | None) -> None:
        self._asked += 1
        heappush(self._queue, (at_us, self._asked, worker, message))

    def _await_turn(self, worker: int) -> None:
        self._alarm[worker] = 0
        if self._turns[worker]:
            at_us = self.servers[worker].look(self._turns[worker][-1].position)
            self._enter(at_us, worker, None)
            self._alarm[worker] = self._asked

    def _take_turn(self, worker: int) -> None:
        turn = self._turns[worker].pop()
        self.servers[worker].serve(turn.position + 1)
        self._know(worker, turn.sensor, turn.until_us)

    def _receive(self, worker: int, message: Message, now_us: float) -> None:
        server, turns = self.servers[worker], self._turns[worker]
        come = server.come(now_us)
        while turns and turns[-1].position < come:
            self._take_turn(worker)
        server.serve(come)
        server.work(now_us, self._result_us[worker])
        if message.until_us is not None:
            self._know(worker, message.node, message.until_us)

    def _know(self, worker: int, stream: int, until_us: int) -> None:
        for rise in self.knowledge[worker].rise(stream, until_us):
            self._compute(worker, rise)

    def _compute(self, worker: int, rise: Rise) -> None:
        """The results that are new, and who else is told of them."""
        node, until_us = rise
        server, result_us = self.servers[worker], self._result_us[worker]
        readers = self._readers[node]
        points, first = self.streams[node].points, self._told_of[node]
        behind = self._told_of[node] = bisect_left(points, (until_us,), first)
        for number in range(first, behind):
            stamp_us = points[number][0]
            now_us = server.work(server.free_us, result_us)
            self.told.append(Told(node, stamp_us, now_us, until_us == END_US))
            known_us = until_us if number + 1 == behind else None
            for reader in readers:
                self._send(Message(worker, reader, node, stamp_us, known_us, now_us))
        if first == behind:
            for reader in readers:
                self._send(Message(worker, reader, node, None, until_us, server.free_us))

    def _send(self, message: Message) -> None:
        line = message.sender, message.reader
        if line not in self._tiers:
            self._tiers[line] = self.crew.between(*line)
        tier = self._tiers[line]
        free_us = max(self._line_us.get(line, 0.0), message.sent_us)
        free_us += 8 * self.crew.result_bytes / tier.bandwidth_mbps
        self._line_us[line] = free_us
        self.messages.append(message)
        self._enter(free_us + tier.latency_us, message.reader, message)

    # -------------------------------------------------------------------------- what is known then

    def known(self) -> list[Stream]:
        """The computed streams as far as their workers have come."""
        return [self._known(number) for number in range(len(self.streams))]

    def _known(self, number: int) -> Stream:
        stream, worker = self.streams[number], self.placement.worker.get(number)
        if worker is None:
            return stream
        until_us = self.knowledge[worker].until_us(number)
        undefined = frozenset(at_us for at_us in stream.undefined if at_us < until_us)
        return Stream(stream.points[: self._told_of[number]], until_us, undefined)
