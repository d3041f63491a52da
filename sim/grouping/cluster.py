"""The cluster of room ``grouping``: senders at the log, and a link to every instance.

Source: docs/grouping.md, sections 1, 5 and 12; for backpressure by credits, Carbone et al., "State
Management in Apache Flink", and the documentation of that system.

Rules of this file:

* The machine decides where a tuple goes; this file decides when, and how long it takes.
* A sender takes its tuples one after the other. It routes a tuple when its turn comes, and sends it
  when the instance has a free place; until then the sender stands still. A place is free again when
  its tuple has been served and a message of no size has told the log.
* The end of a micro-batch is a mark behind the sender's tuples. At the mark that ends a window, a
  sender stands still until all senders have reached the mark and a tuple of the next window has
  arrived.
* Times are measured when the last sender has reached the end of a window: the mean service of the
  tuples that an instance has served since the previous measurement, or the mean time on its line of
  those that have entered since, if that is longer. So are tiers (``nag-dynamic``): by the mean time
  from sending to entering.
* A failure of an instance takes the senders back to their checkpoint. The senders route again all
  tuples that they have routed since, and send nothing twice.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import simpy

from model.vocabulary import Event, Fault, GroupingConfig, Trace
from sim.grouping.instances import NO_LINK, Meter, measure_tiers, measure_times_us
from sim.grouping.machine import GroupingMachine
from sim.grouping.record import GroupingRecord, Passage
from sim.kernel.link import HERE, AnyLink, Tier
from sim.kernel.plan import Plan
from sim.kernel.seeds import Seeds
from sim.kernel.source import Tuple
from sim.kernel.station import Station
from sim.timed_room import PRODUCER, check_all, kills_of, link_of, tuple_work_us


@dataclass(frozen=True, slots=True)
class GroupingTuning:
    """Settings of a plan that only this room has."""

    measured: bool = False
    """True if senders use the times measured before a window; in the first window they use those of
    the configuration, as a guess."""


@dataclass(slots=True, eq=False)
class _Mark:
    """The end of a micro-batch, which every sender reaches."""

    senders: int
    """Senders still to come."""
    next_batch: int
    next_tuple: int
    ends_window: bool


class GroupingCluster:
    """Senders and instances of an operator, behind the log of a run."""

    def __init__(
        self,
        env: simpy.Environment,
        seeds: Seeds,
        plan: Plan,
        config: GroupingConfig,
        machine: GroupingMachine,
    ) -> None:
        self.plan = plan
        self.machine = machine
        self.record = GroupingRecord()
        self.is_measured = plan.tuned(GroupingTuning()).measured
        guess = ((0, config.times_of(0)),)
        self.config = config
        """Configuration, with the times and tiers measured so far."""
        if self.is_measured:
            self.config = replace(config, times_us=guess, later_tiers=())
        self.links: dict[str, AnyLink] = {}
        self._env = env
        self._work_us = tuple_work_us(plan, seeds)
        self.instances = [Instance(env, seeds, self, n) for n in range(config.instances)]
        self._senders = [Sender(n, self) for n in range(config.senders)]
        self._sender_limit = _sender_limit(plan, config.instances)
        self._marks: list[_Mark] = []
        self._passed = 0  # marks that all senders have reached
        self._window = 0  # number of the window that is open at the log
        self._first = 0  # number of the first tuple of that window
        self._times_us = config.times_of(0)  # times in the window that senders are in
        self._tiers = config.tiers_of(0)
        self._over: _Mark | None = None  # end of that window, once all senders have reached it
        self._saved = machine.saved()
        # Tuples routed, and parts of micro-batches ended (None), by senders since the checkpoint.
        self._since: list[tuple[int, Passage | None]] = []
        self._interrupted: set[int] = set()

    # ------------------------------------------------------------------------ called by the run

    @property
    def workers(self) -> Mapping[str, Station[Passage]]:
        """The instances, by the names that faults use."""
        return {f"worker-{n}": each.station for n, each in enumerate(self.instances)}

    def admits(self, item: Tuple) -> bool:
        """Return whether the next sender takes a tuple in; the log may shed it."""
        if self._sender_limit == inf:
            return True
        return self._senders[self.arrivals % len(self._senders)].tuples < self._sender_limit

    def arrive(self, event: Event) -> None:
        """Hand an arrival to its sender."""
        now, seq = self._env.now, event.seq
        if seq == 0:
            self.record.begin_window(0, self._times_us, now)
        if self._over is not None and self._over.next_tuple == seq:
            self._wake()
        passage = Passage(event, self._window, next(self._work_us), now)
        self.record.passages.append(passage)
        self._senders[seq % len(self._senders)].take(passage)

    def end_batch(self) -> None:
        """Hand the mark of the micro-batch to every sender."""
        ends_window = self.machine.is_full(self.arrivals - self._first)
        mark = _Mark(
            len(self._senders), len(self._marks) + 1, self.arrivals, ends_window=ends_window
        )
        self._marks.append(mark)
        if ends_window:
            self._window, self._first = self._window + 1, self.arrivals
        for sender in self._senders:
            sender.take(mark)

    def flush(self) -> None:
        """Do nothing: the end of the stream ends no window."""

    def check(self) -> None:
        """Assert conservation and Little's law at every instance and link; nothing is left."""
        check_all(self.workers.values(), self.links.values())
        assert self._served() == self.arrivals, (self._served(), self.arrivals)

    def close(self) -> None:
        """Forget senders and instances, because reference cycles would stay in memory."""
        self._senders.clear()
        self.instances.clear()

    # --------------------------------------------------------------------------- after the run

    @property
    def arrivals(self) -> int:
        """Number of tuples that have arrived."""
        return len(self.record.passages)

    def trace(self) -> Trace:
        """Return the observed trace, without times."""
        return Trace(
            PRODUCER, [*self.record.all_steps(len(self._senders)), *self.machine.results()]
        )

    def kills(self) -> tuple[Fault, ...]:
        """Return a kill of each micro-batch that the failure of an instance interrupted."""
        return kills_of(self._interrupted, len(self._marks))

    # ------------------------------------------------------- called by senders and instances

    def route(self, sender: int, passage: Passage) -> "Instance":
        """Let a sender route its next tuple."""
        self._since.append((sender, passage))
        passage.instance = instance = self.machine.route(sender, passage.event.key)
        return self.instances[instance]

    def reach(self, mark: _Mark, sender: int) -> None:
        """Let a sender end its part of a micro-batch; the last one may end the window."""
        self._since.append((sender, None))
        self.machine.end_batch(sender)
        mark.senders -= 1
        if mark.senders:
            return
        self._passed += 1
        if mark.ends_window:
            self._over = mark
            self._measure()
            if self.arrivals > mark.next_tuple:
                self._wake()
        else:
            self._save()

    def restart(self) -> None:
        """Restart from the checkpoint of the senders after an instance failed."""
        self._note_interruption()
        self.machine.restore(self._saved)
        for sender, passage in self._since:
            if passage is None:
                self.machine.end_batch(sender)
            else:
                passage.instance = self.machine.route(sender, passage.event.key)

    # -------------------------------------------------------------------------- between two windows

    def _measure(self) -> None:
        seen = [instance.meter.read() for instance in self.instances]
        if self.is_measured:
            self._times_us = measure_times_us(self._times_us, seen)
            if self.config.policy == "nag-dynamic":
                self._tiers = measure_tiers(self.plan, self._tiers, seen)

    def _wake(self) -> None:
        """Schedule the rebalance as an event of its own: several windows may end at one instant."""
        simpy.Timeout(self._env, 0.0).callbacks.append(self._rebalance)

    def _rebalance(self, _: simpy.Event) -> None:
        """Begin the next window, and let all senders go on."""
        mark, self._over = self._over, None
        assert mark is not None
        batch = mark.next_batch
        known_us, known = self.config.times_of(batch), self.config.tiers_of(batch)
        if not self.is_measured:
            self._times_us, self._tiers = known_us, known
        if self._times_us != known_us:
            pairs = (*self.config.times_us, (batch, self._times_us))
            self.config = replace(self.config, times_us=pairs)
        if self._tiers != known:
            pairs = (*self.config.later_tiers, (batch, self._tiers))
            self.config = replace(self.config, later_tiers=pairs)
        self.record.begin_window(mark.next_tuple, self._times_us, self._env.now)
        self.record.steps += self.machine.rebalance(self._times_us, self._tiers)
        self._save()
        # Senders take turns in the order of their next tuples, so that none gets ahead.
        turn = mark.next_tuple % len(self._senders)
        going = deque([*self._senders[turn:], *self._senders[:turn]])
        while going:
            sender = going.popleft()
            if sender.step():
                going.append(sender)

    def _save(self) -> None:
        self._saved = self.machine.saved()
        self._since.clear()

    def _note_interruption(self) -> None:
        cut = self._marks[-1].next_tuple if self._marks else 0
        if self._passed < len(self._marks) or self.arrivals > cut:
            self._interrupted.add(self._passed)
        elif self._served() < self.arrivals:
            self._interrupted.add(self._passed - 1)  # instances still have tuples of it

    def _served(self) -> int:
        return sum(instance.station.served for instance in self.instances)


def _sender_limit(plan: Plan, n: int) -> float:
    """Return how many tuples may wait at a sender: the least limit of instances that shed."""
    limits = [
        worker.queue_limit
        for worker in map(plan.cluster.worker, range(n))
        if worker.when_full == "drop" and worker.queue_limit is not None
    ]
    return min(limits, default=inf)


class Sender:
    """A sender: its tuples, and the marks between them."""

    __slots__ = ("_cluster", "_is_standing", "_number", "_waiting", "tuples")

    def __init__(self, number: int, cluster: GroupingCluster) -> None:
        self.tuples = 0
        """Number of tuples that were not sent yet."""
        self._number = number
        self._cluster = cluster
        self._waiting: deque[Passage | _Mark] = deque()
        self._is_standing = False

    def take(self, item: Passage | _Mark) -> None:
        """Take a tuple or a mark, and process it at once unless the sender stands still."""
        self._waiting.append(item)
        self.tuples += isinstance(item, Passage)
        if not self._is_standing:
            self._go_on()

    def step(self) -> bool:
        """Process the next tuple or mark; return whether the sender can go on with another."""
        self._is_standing = False
        if not self._waiting:
            return False
        item = self._waiting[0]
        if isinstance(item, _Mark):
            self._waiting.popleft()
            self._is_standing = item.ends_window
            self._cluster.reach(item, self._number)
            return not self._is_standing
        instance = self._cluster.route(self._number, item)
        if instance.places > 0:
            self._send(instance)
            return True
        self._is_standing = True
        instance.asking.append(self)
        return False

    def got_place(self, instance: "Instance") -> None:
        """Send the tuple that had to wait, and go on."""
        self._send(instance)
        self._go_on()

    def _send(self, instance: "Instance") -> None:
        item = self._waiting.popleft()
        assert isinstance(item, Passage)
        self.tuples -= 1
        instance.take(item)

    def _go_on(self) -> None:
        while self.step():
            pass


class Instance:
    """An instance on its worker, and the links between the log and it."""

    def __init__(
        self, env: simpy.Environment, seeds: Seeds, cluster: GroupingCluster, number: int
    ) -> None:
        plan, name = cluster.plan, f"worker-{number}"
        worker = plan.cluster.worker(number)
        self.places = inf if worker.queue_limit is None else worker.queue_limit
        """Number of tuples that senders may send to the instance now."""
        self.asking: deque[Sender] = deque()
        """Senders that stand still until there is a place, in the order of their requests."""
        # The places bound the queue: a tuple that was sent always enters.
        self.station = Station[Passage](
            env, replace(worker, queue_limit=None), self._serve, self._begin, cluster.restart
        )
        self._env, self._cluster, self._number = env, cluster, number
        self._bits = 8.0 * plan.cluster.tuple_bytes
        self._way = self._back = None
        tier = plan.way(HERE, worker.place)
        self.meter = Meter((tier or NO_LINK).latency_us)
        if tier is not None:
            self._way = self._link(seeds, f"log>{name}", tier, self._enter)
            self._back = self._link(seeds, f"{name}>log", tier, self._free)

    def take(self, passage: Passage) -> None:
        """Take a tuple of a sender into a free place."""
        self.places -= 1
        passage.sent_us = self._env.now
        if self._way is None:
            self._enter(passage)
        else:
            self._way.send(passage, self._bits)

    def _link(
        self, seeds: Seeds, name: str, tier: Tier, receive: Callable[[Any], object]
    ) -> AnyLink:
        cluster = self._cluster
        link: AnyLink = link_of(self._env, seeds, cluster.plan, name, tier, receive)
        cluster.links[name] = link
        return link

    def _enter(self, passage: Passage) -> None:
        self.meter.enter(passage.sent_us, self._env.now)
        self.station.offer(passage, passage.work_us)

    def _begin(self, passage: Passage) -> float:
        passage.services += 1
        return passage.work_us

    def _serve(self, passage: Passage, _arrived_us: float, started_us: float) -> None:
        cluster, now = self._cluster, self._env.now
        passage.began_us, passage.ended_us = started_us, now
        steps = cluster.machine.serve(self._number, passage.window, passage.event)
        if steps:
            cluster.record.steps += steps
        self.meter.serve(now - started_us)
        self.station.checkpoint()
        if self._back is None:
            self._free()
        else:
            self._back.send(None, 0.0)

    def _free(self, _: None = None) -> None:
        """Free the place of a served tuple; the sender that asked first gets it."""
        self.places += 1
        if self.asking:
            self.asking.popleft().got_place(self)
