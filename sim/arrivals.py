"""Arrivals: sources send tuples over the network and through workers; in which order do they come?

Every tuple of a :class:`~sim.plan.Plan` goes

    source (event time) -> delay -> [link ->] [worker -> link ->] sink (arrival)

where the tier of each link follows from the places at its ends. What arrives at the sink, in the
order of arrival, is the stream that model, simulation and Spark pipeline are given.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, repeat
from typing import NamedTuple, TypeAlias

import simpy

from model.vocabulary import Event
from sim import faults
from sim.cluster import Offer, Station, Worker, connect
from sim.collecting import uncollected
from sim.departures import Departures, departures_from, departures_of, together
from sim.distributions import Constant
from sim.network import Link, Place
from sim.plan import AnySource, Plan
from sim.seeds import Seeds

ONE_STREAM = ("",)


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


_Path: TypeAlias = Callable[[_Tuple, Callable[[], None]], Offer]
"""Takes a tuple; calls back when a tuple that it blocked has entered."""


@uncollected()
def simulate_arrivals(plan: Plan, seed: int, streams: Sequence[str] = ONE_STREAM) -> Arrivals:
    """Run the plan until everything has arrived or is lost.

    Sources are of these streams in turn; tuples of different streams have the same identities.

    Arrival times are kernel times rounded to microseconds, which keeps their order; tuples that
    arrive at the same time stay in the order in which the kernel delivered them, and where nothing
    disturbs them on the way in that of their sources.
    """
    seeds = Seeds(seed)
    sent = [departures_of(plan, number, seeds) for number in range(len(plan.sources))]
    departures = [each for each, _ in sent]
    duplicated = sum(copies for _, copies in sent)
    counts = {
        "created": sum(len(each.source_ids) for each in departures) - duplicated,
        "duplicated": duplicated,
        **dict.fromkeys(("replayed", "lost", "dropped", "failed", "blocked"), 0),
    }
    if _is_undisturbed(plan):
        arrived = _undisturbed(plan, departures)
    else:
        arrived, on_the_way = _Run(plan, seeds, departures).arrivals()
        counts |= on_the_way
    events = arrived.as_arrivals(plan.epoch_us, streams)
    counts["arrived"] = len(events)
    came = counts["created"] + counts["duplicated"] + counts["replayed"]
    went = counts["arrived"] + counts["lost"] + counts["dropped"] + counts["failed"]
    assert came == went, counts
    return Arrivals(events, counts, plan.name, seed)


def _is_undisturbed(plan: Plan) -> bool:
    """Whether tuples only go over links of their own, in which nothing happens to them."""
    return (
        all(source.worker is None for source in plan.sources)
        and all(isinstance(fault, faults.Duplicate) for fault in plan.faults)
        and not plan.noise.is_random
    )


def _undisturbed(plan: Plan, departures: Sequence[Departures]) -> Departures:
    """What arrives then, and when, which follows from the departures without a kernel."""
    there = [
        sent
        if source.place is None
        else sent.over(plan.tiers.between(source.place, plan.sink), source.bits)
        for source, sent in zip(plan.sources, departures, strict=True)
    ]
    return together(there).in_order()


class _Run:
    """One simulation of a plan."""

    def __init__(self, plan: Plan, seeds: Seeds, departures: Sequence[Departures]) -> None:
        self.plan = plan
        self.seeds = seeds
        self.env = simpy.Environment()
        self.arrived: list[tuple[float, _Tuple]] = []
        self.links: dict[str, Link[_Tuple]] = {}
        self.stations: dict[str, Station[_Tuple]] = {}
        for number, worker in enumerate(plan.workers):
            self._build_worker(f"worker-{number}", worker)
        paths = [self._build_path(f"source-{n}", source) for n, source in enumerate(plan.sources)]
        # Faults are set up before the first tuple, so that they come first at their instant.
        faults.inject(self.env, plan.faults, self.stations, self.links)
        for source, sent, path in zip(plan.sources, departures, paths, strict=True):
            _Feeder(self.env, sent, source.bits, path).wait()

    def arrivals(self) -> tuple[Departures, Mapping[str, int]]:
        """What arrives, and when, and what happens on the way."""
        self.env.run()
        stations, links = self.stations.values(), self.links.values()
        # Little's law holds at every worker.
        for station in stations:
            station.check()
        assert all(a <= b for (a, _), (b, _) in pairwise(self.arrived))
        rows = [(at, *item[:-1]) for at, item in self.arrived]
        return departures_from(rows), {
            "replayed": sum(link.replayed for link in links),
            "lost": sum(link.lost for link in links),
            "dropped": sum(station.dropped for station in stations),
            "failed": sum(station.lost for station in stations),
            "blocked": sum(station.blocked for station in stations),
        }

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


class _Feeder:
    """Sends what a source has to send, when it is time and nobody blocks it."""

    def __init__(
        self, env: simpy.Environment, departures: Departures, bits: int, path: _Path
    ) -> None:
        self._env = env
        columns = [column.tolist() for column in departures[1:]]
        items = map(_Tuple, *columns, repeat(bits))
        self._left = zip(departures.leave_us.tolist(), items, strict=False)
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
