"""Workers that compute sensor scripts, with the ways of tuples and results to them.

Rules of this file:

* The log sends an arrival at once to every worker that hosts its sensor. If no worker does, the log
  drops the arrival; a log that does not filter lets the worker of the sensor's hash drop it.
  If sensors are placed by the hash of their names, a tuple goes to the worker of that hash first,
  which sends it on when it comes in.
* The end of a batch travels as a mark behind the tuples of the batch, on every way that tuples take
  to a worker. When the mark has come on all of these ways and has been served, it is a checkpoint.
* The log sees all arrivals, and knows which sensors are silent. A tuple carries how far silence had
  moved the watermark of its sensor; a mark carries this for every sensor that is idle by then.
"""

from collections.abc import Iterator, Mapping, Sequence

import simpy

from model.script.silence import Silences
from model.vocabulary import Event, Fault, Step, Trace, task_of
from model.vocabulary.script.config import Undefined
from model.vocabulary.script.placement import Placement, hosted_sensors
from model.vocabulary.script.plan import ScriptPlan
from sim.kernel.link import HERE, Link, Place
from sim.kernel.plan import Plan
from sim.kernel.seeds import Seeds
from sim.kernel.source import Tuple
from sim.kernel.station import Station, connect
from sim.script.host import Arrival, Host, Item, Mark, ScriptTuning, Sent, Way
from sim.script.machine import MachineOf
from sim.script.placements import BASELINE
from sim.timed_room import PRODUCER, admits, check_all, kills_of, link_of, tuple_work_us


class ScriptCluster:
    """Workers and the ways to and between them, behind the log of a run."""

    def __init__(
        self,
        env: simpy.Environment,
        seeds: Seeds,
        plan: Plan,
        scripts: ScriptPlan,
        machine: MachineOf,
    ) -> None:
        self.config = config = scripts.config
        self.plan = plan
        self.placed = scripts.placement
        self.tuning = plan.tuned(ScriptTuning())
        self.batches = 0
        self.hosts = [
            Host(env, plan, self.tuning, number, machine(scripts, number))
            for number in range(config.workers)
        ]
        self.links: dict[str, Link[Item]] = {}
        self._env, self._seeds = env, seeds
        self._work_us = tuple_work_us(plan, seeds)
        self._hosting: dict[str, list[Host]] = {}
        """Workers that host each sensor."""
        for host, sensors in zip(self.hosts, self.placed.sensors, strict=True):
            for sensor in sorted(sensors):
                self._hosting.setdefault(sensor, []).append(host)
        self._ways = [self._way("log", HERE, host) for host in self.hosts]
        self._first = {sensor: self._first_of(sensor) for sensor in self._hosting}
        """Numbers of the workers to which the log sends each sensor."""
        self._connect(_read_by(self.placed))
        self._silences = Silences(config)
        self._arrived = 0

    # ------------------------------------------------------------------------ called by the run

    @property
    def workers(self) -> Mapping[str, Station[Item]]:
        """Workers by the names that faults use."""
        return {host.name: host.station for host in self.hosts}

    def admits(self, item: Tuple) -> bool:
        """Return whether all hosts of a tuple's sensor take it in; a full host may shed it."""
        hosting = self._hosting.get(item.key, ())
        return all(admits(host.station, host.expected) for host in hosting)

    def arrive(self, event: Event) -> None:
        """Send an arrival on its way."""
        self._arrived += 1
        # Drawn for every tuple, so that the work of tuples depends on no query.
        work_us = next(self._work_us)
        floor_us = self._silences.floor_us(event.key)
        self._silences.take(event)
        hosting, bits = self._hosting.get(event.key), 8.0 * self.plan.cluster.tuple_bytes
        if hosting is None:
            if not self.tuning.filters:
                number = task_of(event.key, len(self.hosts))
                self.hosts[number].expected += 1
                item = Arrival(event, work_us, is_asked_for=False)
                self._ways[number](item, bits)
            return
        for host in hosting:
            host.expected += 1
        item = Arrival(event, work_us, floor_us)
        for number in self._first[event.key]:
            self._ways[number](item, bits)

    def end_batch(self) -> None:
        """Send every worker the mark of the batch."""
        floors_us = self._silences.floors_us(self._hosting)
        mark = Mark(self.batches, is_flush=False, tuples=self._arrived, floors_us=floors_us)
        for way in self._ways:
            way(mark, 0.0)
        self.batches += 1

    def flush(self) -> None:
        """Send every worker the mark of the end of the stream."""
        for way in self._ways:
            way(Mark(self.batches, is_flush=True, tuples=self._arrived), 0.0)

    def check(self) -> None:
        """Assert conservation and Little's law at every worker and link."""
        check_all(self.workers.values(), self.links.values())

    def close(self) -> None:
        """Forget the ways between workers, whose reference cycles would stay in memory."""
        for host in self.hosts:
            host.ways.clear()
            host.fed.clear()

    # --------------------------------------------------------------------------- after the run

    @property
    def end_us(self) -> float:
        """Time at which everything had been served."""
        return max(host.station.inside.changed_us for host in self.hosts)

    def sent(self) -> Iterator[Sent]:
        """Yield the messages between workers; a failure repeats some."""
        for host in self.hosts:
            yield from host.sent

    def trace(self) -> Trace:
        """Return the observed trace, without times."""
        steps: list[Step] = []
        undefined: dict[Step, None] = {}
        for host in self.hosts:
            for step in host.record.steps:
                if isinstance(step, Undefined):
                    undefined[step] = None  # several workers may report one statement
                else:
                    steps.append(step)
        return Trace(PRODUCER, [*steps, *undefined, *hosted_sensors(self.placed)])

    def kills(self) -> tuple[Fault, ...]:
        """Return a kill of each micro-batch that the failure of a worker interrupted."""
        batches = frozenset[int]().union(*(host.checkpoint.interrupted for host in self.hosts))
        return kills_of(batches, self.batches + self.plan.flush)

    # --------------------------------------------------------------------------------- its parts

    def _first_of(self, sensor: str) -> list[int]:
        """Return the workers to which the log sends a sensor, and let these send it on."""
        hosting = self._hosting[sensor]
        if self.tuning.placement != BASELINE:
            return [host.number for host in hosting]
        home = self.hosts[task_of(sensor, len(self.hosts))]
        home.onward[sensor] = [host.number for host in hosting if host is not home]
        return [home.number]

    def _connect(self, readers: Sequence[set[int]]) -> None:
        """Make the ways between workers."""
        # Faults may name a link that another placement would use: here nothing goes over it.
        named = {fault[0] for fault in self.plan.faults}
        for host, read in zip(self.hosts, readers, strict=True):
            fed = sorted({each for others in host.onward.values() for each in others})
            for other in self.hosts:
                number = other.number
                if number in read or number in fed or f"{host.name}>{other.name}" in named:
                    host.ways[number] = self._way(host.name, host.worker.place, other)
            host.fed = [host.ways[number] for number in fed]
            for number in fed:
                self.hosts[number].feeders += 1

    def _way(self, start: str, place: Place | None, host: Host) -> Way:
        """Make the way from the log or a worker to a worker: a link, if there is a distance."""
        tier = self.plan.way(place, host.worker.place)
        if tier is None:
            return lambda item, _: host.take_in(item)
        name = f"{start}>{host.name}"
        link: Link[Item] = link_of(self._env, self._seeds, self.plan, name, tier, host.take_in)
        self.links[name] = link
        connect(link, host.take_in)
        return link.send


def _read_by(placed: Placement) -> list[set[int]]:
    """Return the workers to which each worker sends results."""
    found: list[set[int]] = [set() for _ in placed.hosts]
    for number, readers in placed.readers.items():
        found[placed.worker[number]].update(readers)
    return found
