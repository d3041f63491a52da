"""The log: receives the tuples that sources send, and numbers them in order of arrival.

Every tuple of a :class:`~sim.kernel.plan.Plan` goes

    source (event time) -> delay -> [link ->] log (arrival)

where the tier of the link follows from the places at its ends. The log is durable and ordered,
like a topic of a message broker. Its order is the arrival order of the workload that model,
simulation and Spark pipeline share, and the cluster reads from it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import simpy

from model.vocabulary import Event
from sim.kernel.faults import inject
from sim.kernel.link import HERE, Link
from sim.kernel.plan import Plan
from sim.kernel.seeds import Seeds
from sim.kernel.source import IDS_PER_SOURCE, AnySource, Feeder, Send, Sent, Tuple, departures_of

ONE_STREAM = ("",)


class Arrivals(NamedTuple):
    """Arrived events in order, and the counts of all tuples."""

    events: tuple[Event, ...]
    counts: Mapping[str, int]
    """See :meth:`Log.counts`."""


class Log:
    """The sources of a plan, their links to the log, and the events in it.

    ``admits(tuple)`` returns whether a tuple is let in or shed; ``arrive(event)`` is called with
    each arrival, and ``ended()`` when nothing more can arrive. Sources belong to ``streams`` in
    turn; tuples of different streams share identities.
    """

    def __init__(
        self,
        env: simpy.Environment,
        plan: Plan,
        seeds: Seeds,
        admits: Callable[[Tuple], bool],
        arrive: Callable[[Event], object],
        ended: Callable[[], object],
        streams: Sequence[str] = ONE_STREAM,
    ) -> None:
        self.plan = plan
        self.events: list[Event] = []
        self.links: dict[str, Link[Tuple]] = {}
        self._env, self._seeds = env, seeds
        self._admits, self._arrive, self._ended = admits, arrive, ended
        self.shed = 0
        sent = _sent(plan, seeds, streams)
        self.created = sum(each.created for each in sent)
        self.duplicated = sum(each.duplicated for each in sent)
        self._on_the_way = self.created + self.duplicated
        self._feeders = [
            Feeder(env, each.departures, source.bits, self._way(number, source))
            for number, (source, each) in enumerate(zip(plan.sources, sent, strict=True))
        ]

    def start(self) -> None:
        """Start the sources, after everything else is set up."""
        for feeder in self._feeders:
            feeder.wait()
        if not self._on_the_way:
            self._ended()

    def counts(self) -> dict[str, int]:
        """Return the number of tuples by their fate.

        ``created`` (gaps left out), ``duplicated`` by sources, ``replayed``, ``retried`` and
        ``lost`` on links, ``shed`` at the log, ``arrived``.
        """
        links = self.links.values()
        counts = {
            "created": self.created,
            "duplicated": self.duplicated,
            "replayed": sum(link.replayed for link in links),
            "retried": sum(link.retried for link in links),
            "lost": sum(link.lost for link in links),
            "shed": self.shed,
            "arrived": len(self.events),
        }
        came = counts["created"] + counts["duplicated"] + counts["replayed"]
        went = sum(counts[name] for name in ("lost", "shed", "arrived"))
        assert came == went + self._on_the_way, counts
        return counts

    # ------------------------------------------------------------------------------------ the ways

    def _way(self, number: int, source: AnySource) -> Send:
        """Return the function that takes the tuples of a source."""
        tier, name = self.plan.way(source.place, HERE), f"source-{number}>log"
        if tier is None:
            return self._append
        noise = self.plan.noise
        rng = self._seeds.stream(f"{name}/link") if noise.is_random else None
        link = self.links[name] = Link(self._env, tier, self._append, noise, rng)
        link.lose_message, link.copy_message = self._forget, self._expect
        return lambda item: link.send(item, item.bits)

    def check(self) -> None:
        """Assert conservation on every link, and of all tuples."""
        for link in self.links.values():
            link.check()
        self.counts()

    def close(self) -> None:
        """Drop all callbacks after the run; see :meth:`sim.kernel.station.Station.close`."""
        self._feeders.clear()
        for link in self.links.values():
            link.close()

    # -------------------------------------------------------------------------------- arrivals

    def _append(self, item: Tuple) -> None:
        if not self._admits(item):
            self.shed += 1
            self._forget(item)
            return
        source_id, key, event_time_us, value, stream, more, _ = item
        arrival_us, seq = self.plan.epoch_us + round(self._env.now), len(self.events)
        event = Event(seq, source_id, key, event_time_us, value, arrival_us, stream, more)
        self.events.append(event)
        self._on_the_way -= 1
        self._arrive(event)
        if not self._on_the_way:
            self._ended()

    def _forget(self, _: Tuple) -> None:
        self._on_the_way -= 1
        if not self._on_the_way:
            self._ended()

    def _expect(self, _: Tuple) -> None:
        self._on_the_way += 1


def _sent(plan: Plan, seeds: Seeds, streams: Sequence[str]) -> list[Sent]:
    """Draw the tuples that the sources of a plan send."""
    return [
        departures_of(
            source,
            number,
            streams[number % len(streams)],
            number // len(streams) * IDS_PER_SOURCE,
            plan.epoch_us,
            plan.disturbances,
            plan.faults,
            seeds,
        )
        for number, source in enumerate(plan.sources)
    ]


def last_event_times(plan: Plan, seed: int) -> list[int]:
    """Return the last event time (us, kernel time) of each source, -1 if it has no tuples."""
    return [each.last_us for each in _sent(plan, Seeds(seed), ONE_STREAM)]


def simulate_arrivals(plan: Plan, seed: int, streams: Sequence[str] = ONE_STREAM) -> Arrivals:
    """Run a plan up to its log, without a cluster; faults of cluster parts are ignored."""
    env = simpy.Environment()
    log = Log(env, plan, Seeds(seed), lambda _: True, _ignore, _ignore, streams)
    inject(env, [each for each in plan.faults if each[0] in log.links], {}, log.links)
    log.start()
    env.run()
    log.check()
    return Arrivals(tuple(log.events), log.counts())


def _ignore(*_: object) -> None:
    """Ignore an arrival."""
