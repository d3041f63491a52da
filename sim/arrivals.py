"""Arrivals: sources send tuples over the network and through workers; in which order do they come?

Every tuple of a :class:`~sim.plan.Plan` goes

    source (event time) -> delay -> [link ->] [worker -> link ->] sink (arrival)

where the tier of each link follows from the places at its ends. What arrives at the sink, in the
order of arrival, is the stream that model, simulation and Spark pipeline are given.
"""

import hashlib
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import simpy

from model.vocabulary import Event
from sim import faults
from sim.cluster import Offer, Station, Worker, connect
from sim.disorder import IntArray, disturb, present
from sim.distributions import Constant, FloatArray, draw_us
from sim.network import Link, Place
from sim.plan import IDS_PER_SOURCE, AnySource, Plan, Recording, Source
from sim.seeds import Seeds


class Arrivals(NamedTuple):
    """What arrived, in order, and what did not."""

    events: tuple[Event, ...]
    counts: Mapping[str, int]
    """``created`` (gaps left out), ``duplicated`` by sources, ``replayed`` and ``lost`` on links,
    ``dropped`` (queue full) and ``failed`` in workers, ``blocked`` at their doors, ``arrived``."""
    name: str
    seed: int

    def digest(self) -> str:
        """SHA-256 of the events, in hexadecimal."""
        sha = hashlib.sha256()
        for event in self.events:
            sha.update(repr(tuple(event)).encode("utf-8"))
        return sha.hexdigest()


class _Tuple(NamedTuple):
    """A tuple on its way."""

    source_id: int
    key: str
    event_time_us: int
    value: float
    bits: int


_Departures: TypeAlias = list[tuple[float, _Tuple]]
_Path: TypeAlias = Callable[[_Tuple, Callable[[], None]], Offer]
"""Takes a tuple; calls back when a tuple that it blocked has entered."""


def simulate_arrivals(plan: Plan, seed: int) -> Arrivals:
    """Run the plan until everything has arrived or is lost.

    Arrival times are kernel times rounded to microseconds, which keeps their order; tuples that
    arrive within the same microsecond stay in the order in which the kernel delivered them.
    """
    return _Run(plan, seed).arrivals()


class _Run:
    """One simulation of a plan."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self.plan = plan
        self.seeds = Seeds(seed)
        self.env = simpy.Environment()
        self.counts = dict.fromkeys(("created", "duplicated"), 0)
        self.arrived: list[tuple[float, _Tuple]] = []
        self.links: dict[str, Link[_Tuple]] = {}
        self.stations: dict[str, Station[_Tuple]] = {}
        for number, worker in enumerate(plan.workers):
            self._build_worker(f"worker-{number}", worker)
        paths = [self._build_path(f"source-{n}", source) for n, source in enumerate(plan.sources)]
        # Faults are set up before the first tuple, so that they come first at their instant.
        faults.inject(self.env, plan.faults, self.stations, self.links)
        for number, path in enumerate(paths):
            _Feeder(self.env, self._departures(number), path).wait()

    def arrivals(self) -> Arrivals:
        self.env.run()
        epoch_us = self.plan.epoch_us
        events = tuple(
            Event(n, item.source_id, item.key, item.event_time_us, item.value, epoch_us + round(at))
            for n, (at, item) in enumerate(self.arrived)
        )
        stations, links = self.stations.values(), self.links.values()
        counts = {
            **self.counts,
            "replayed": sum(link.replayed for link in links),
            "lost": sum(link.lost for link in links),
            "dropped": sum(station.dropped for station in stations),
            "failed": sum(station.lost for station in stations),
            "blocked": sum(station.blocked for station in stations),
            "arrived": len(events),
        }
        self._check(counts)
        return Arrivals(events, counts, self.plan.name, self.seeds.seed)

    def _check(self, counts: Mapping[str, int]) -> None:
        """Nothing appears or vanishes uncounted; Little's law holds at every worker."""
        for station in self.stations.values():
            station.check()
        came = counts["created"] + counts["duplicated"] + counts["replayed"]
        went = counts["arrived"] + counts["lost"] + counts["dropped"] + counts["failed"]
        assert came == went, counts
        assert all(a <= b for (a, _), (b, _) in pairwise(self.arrived))

    def _arrive(self, item: _Tuple) -> None:
        self.arrived.append((self.env.now, item))

    def _link(self, name: str, start: Place, end: Place) -> Link[_Tuple]:
        """A link that delivers to the sink, until it is connected elsewhere."""
        noise = self.plan.noise
        rng = self.seeds.stream(f"{name}/link") if noise.is_random else None
        tier = self.plan.tiers.between(start, end)
        self.links[name] = Link(self.env, tier, self._arrive, noise, rng)
        return self.links[name]

    def _build_worker(self, name: str, worker: Worker) -> None:
        onward = self._link(name, worker.place, self.plan.sink)

        def pass_on(item: _Tuple, _arrived_us: float, _started_us: float) -> None:
            onward.send(item, item.bits)

        constant = isinstance(worker.service, Constant)
        rng = None if constant else self.seeds.stream(f"{name}/service")
        self.stations[name] = Station(self.env, worker, pass_on, rng)

    def _build_path(self, name: str, source: AnySource) -> _Path:
        """Where the source puts its tuples."""
        station = None if source.worker is None else self.stations[f"worker-{source.worker}"]
        if source.place is not None:
            end = self.plan.sink if station is None else station.worker.place
            link = self._link(name, source.place, end)
            if station is not None:
                connect(link, station)
            return _over(link)
        if station is not None:
            return _into(station)

        def straight(item: _Tuple, _entered: Callable[[], None]) -> Offer:
            self._arrive(item)
            return Offer.ENTERED

        return straight

    def _departures(self, number: int) -> _Departures:
        """What a source sends and when, in that order, its own duplicates included."""
        source = self.plan.sources[number]
        if isinstance(source, Recording):
            departures = _recorded(self.plan, number, source, self.seeds)
        else:
            departures = _created(self.plan, number, source, self.seeds)
        self.counts["created"] += len(departures)
        by_id = {item.source_id: (at, item) for at, item in departures}
        for fault in self.plan.faults:
            if isinstance(fault, faults.Duplicate) and fault.source == f"source-{number}":
                original = by_id.get(number * IDS_PER_SOURCE + fault.nth)
                if original is not None:
                    departures.append((original[0] + fault.after_us, original[1]))
                    self.counts["duplicated"] += 1
        departures.sort(key=lambda departure: departure[0])
        return departures


class _Feeder:
    """Sends what a source has to send, when it is time and nobody blocks it."""

    def __init__(self, env: simpy.Environment, departures: _Departures, path: _Path) -> None:
        self._env = env
        self._left = iter(departures)
        self._path = path
        self._item: _Tuple

    def wait(self) -> None:
        """Set the clock for the next tuple, if there is one."""
        departure = next(self._left, None)
        if departure is not None:
            at, self._item = departure
            # A source that was blocked is behind its times.
            wake = simpy.Timeout(self._env, max(0.0, at - self._env.now))
            wake.callbacks.append(self._send)

    def _send(self, _: simpy.Event) -> None:
        if self._path(self._item, self.wait) is not Offer.BLOCKED:
            self.wait()


def _over(link: Link[_Tuple]) -> _Path:
    def send(item: _Tuple, _entered: Callable[[], None]) -> Offer:
        link.send(item, item.bits)
        return Offer.ENTERED

    return send


def _into(station: Station[_Tuple]) -> _Path:
    return lambda item, entered: station.offer(item, entered=entered)


def _recorded(plan: Plan, number: int, source: Recording, seeds: Seeds) -> _Departures:
    event_us = np.array([row.event_time_us for row in source.rows], dtype=np.int64) - plan.epoch_us
    arrival_us = np.array([row.arrival_us for row in source.rows], dtype=np.int64) - plan.epoch_us
    delays = disturb(
        number, (arrival_us - event_us).astype(np.float64), event_us, plan.disturbances, seeds
    )
    kept = present(number, event_us, plan.disturbances)
    # A recording's clocks may disagree: nothing can be sent before the run starts.
    leave_us = np.maximum(0.0, event_us + delays)
    first_id = number * IDS_PER_SOURCE
    return [
        (at, _Tuple(first_id + n, row.key, row.event_time_us, row.value, source.bits))
        for n, (row, at, keep) in enumerate(zip(source.rows, leave_us.tolist(), kept, strict=True))
        if keep
    ]


def _created(plan: Plan, number: int, source: Source, seeds: Seeds) -> _Departures:
    n, name = source.events, f"source-{number}"
    intervals = draw_us(source.interval, seeds, f"{name}/interval", max(0, n - 1))
    event_us = source.start_us + np.rint(np.append(0.0, np.cumsum(intervals))[:n]).astype(np.int64)
    values = _values(source, seeds, name)
    ordinary = draw_us(source.delay, seeds, f"{name}/delay", n) + source.delay_by_value_us * values
    delays = disturb(number, ordinary, event_us, plan.disturbances, seeds)
    kept = present(number, event_us, plan.disturbances)
    leave_us = (event_us + delays)[kept]
    if source.in_order:
        leave_us = np.maximum.accumulate(leave_us)
    ids = number * IDS_PER_SOURCE + np.flatnonzero(kept)
    rows = zip(
        leave_us.tolist(),
        ids.tolist(),
        _keys(source, seeds, name)[kept].tolist(),
        (plan.epoch_us + event_us[kept]).tolist(),
        values[kept].tolist(),
        strict=True,
    )
    return [
        (at, _Tuple(id_, source.keys[key], time_us, value, source.bits))
        for at, id_, key, time_us, value in rows
    ]


def _keys(source: Source, seeds: Seeds, name: str) -> IntArray:
    """The number of each tuple's key."""
    count = len(source.keys)
    if count == 1:
        return np.zeros(source.events, dtype=np.int64)
    shares = np.arange(1, count + 1, dtype=np.float64) ** -source.zipf
    bounds = np.cumsum(shares / shares.sum())[:-1]
    uniform = seeds.stream(f"{name}/keys").random(source.events)
    return np.searchsorted(bounds, uniform, side="right")


def _values(source: Source, seeds: Seeds, name: str) -> FloatArray:
    """Whole numbers, as floats."""
    if source.low == source.high:
        return np.full(source.events, source.low, dtype=np.float64)
    stream = seeds.stream(f"{name}/values")
    return stream.integers(source.low, source.high, source.events, endpoint=True).astype(np.float64)
