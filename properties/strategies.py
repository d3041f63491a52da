"""Hypothesis strategies: workloads whose arrival order comes out of a simulation.

Rules of this file:

1. Disorder is never drawn as a shuffle: a small plan (sources, network tiers, slow workers, bursts,
   changes of regime, faults) is drawn, and the simulation says in which order its tuples arrive.
2. The plan is scaled to the query: intervals are shorter than a window, delays as long as several,
   so that late tuples are the rule.
3. Values are integers or dyadic fractions, so that their sums are exact in every order.
4. No integer is drawn from 100 or more: Hypothesis mixes constants of whatever modules happen to be
   loaded into wide ranges, and the same seed would draw something else in another process.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import NamedTuple, TypeAlias

from hypothesis import strategies as st

from model.vocabulary import Event, SlackConfig, WatermarkConfig, Workload
from model.vocabulary.slack import (
    AGGREGATES,
    CONTROLS,
    METHODS,
    SAMPLINGS,
    SELF_SUFFICIENT_AGGREGATES,
)
from sim.kernel.disorder import Burst, Disturbance, Regime, Straggler
from sim.kernel.distributions import (
    Constant,
    Distribution,
    Exponential,
    Lognormal,
    Mixture,
    Pareto,
    Uniform,
)
from sim.kernel.faults import Clog, Duplicate, Fault, Pause, Replay, Slow
from sim.kernel.link import Place
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import Plan
from sim.kernel.source import IDS_PER_SOURCE, Source
from sim.kernel.station import Worker

CUTS_MAX = 4
STEPS = 96
SEEDS = st.integers(0, 99)
EVENTS_MAX = 24
"""Tuples of one source: small, so that a failing case is read by a person."""


def upto(limit_us: int, above: int = 0) -> st.SearchStrategy[int]:
    """Times from ``above`` to about ``limit_us``, in equal steps."""
    return st.integers(0, STEPS).map(lambda step: above + limit_us * step // STEPS)


# --------------------------------------------------------------------------------------- plans
# Strategies are built once a scale: building one takes longer than drawing from it.


@cache
def delays(scale_us: int) -> st.SearchStrategy[Distribution]:
    """Delays from none to several windows, with light and heavy tails."""
    return st.sampled_from(
        [
            Constant(0),
            Uniform(0, scale_us / 4),
            Uniform(0, scale_us),
            Uniform(0, 4 * scale_us),
            Exponential(scale_us / 8),
            Exponential(scale_us),
            Lognormal(scale_us / 8, 1.0),
            Lognormal(scale_us, 1.0),
            Pareto(scale_us / 8, 1.1),
            Pareto(scale_us / 4, 2.0),
            Mixture(0.05, Constant(3 * scale_us)),
            Mixture(0.3, Constant(3 * scale_us)),
        ]
    )


class Way(NamedTuple):
    """How the tuples of a source travel: everything but the tuples themselves."""

    delay: Distribution
    in_order: bool
    place: Place | None
    worker: int | None


@cache
def ways(scale_us: int, workers: int) -> st.SearchStrategy[Way]:
    """A delay, a place in the network or none, a worker or none."""
    places = st.sampled_from([None, Place(0, 0, 1), Place(0, 1), Place(1)])
    return st.builds(
        Way,
        delays(scale_us),
        st.booleans(),
        places,
        st.sampled_from([None, *range(workers)]),
    )


@cache
def sources(scale_us: int) -> st.SearchStrategy[Source]:
    """The tuples of one source: intervals from a sixth of a window to a whole one."""
    means_us = [scale_us // 6 or 1, scale_us // 2 or 1, scale_us]
    intervals = [kind(mean_us) for mean_us in means_us for kind in (Constant, Exponential)]
    return st.builds(
        Source,
        events=st.integers(6, EVENTS_MAX),
        interval=st.sampled_from(intervals),
        start_us=upto(scale_us),
        keys=st.sampled_from([("a",), ("b",), ("a", "b"), ("ä", ""), ("a", "b", "c")]),
        low=st.just(0),
        high=st.sampled_from([1, 100]),
        bits=st.sampled_from([0, 800]),
    )


@cache
def workers(scale_us: int) -> st.SearchStrategy[tuple[Worker, ...]]:
    """None, one or two, some of them too slow for what comes."""
    kinds = [
        Worker(service, speed)
        for service in (Constant(scale_us // 20), Exponential(scale_us / 8))
        for speed in (1.0, 0.2)
    ]
    return st.lists(st.sampled_from(kinds), max_size=2).map(tuple)


@cache
def disturbances(scale_us: int, sources: int) -> st.SearchStrategy[Disturbance]:
    """Bursts, changes of regime and stragglers."""
    times_us = upto(8 * scale_us)
    lengths_us = upto(4 * scale_us, above=1)
    some = st.sampled_from([None, *range(sources)])
    again = st.sampled_from([None, 5 * scale_us])
    return st.one_of(
        st.builds(
            Burst, times_us, lengths_us, st.sampled_from([0.3, 1.0]), delays(scale_us), some, again
        ),
        st.builds(Regime, times_us, delays(scale_us), some),
        st.builds(Straggler, st.integers(0, sources - 1), st.sampled_from([1.0, 5.0]), times_us),
    )


class Targets(NamedTuple):
    """What faults of a plan may name."""

    sources: tuple[str, ...]
    links: tuple[str, ...]
    workers: tuple[str, ...]


def targets_of(sources: Sequence[Source], crew: Sequence[Worker]) -> Targets:
    """Names of sources, links and workers, as plans give them."""
    names = tuple(f"source-{number}" for number in range(len(sources)))
    workers = tuple(f"worker-{number}" for number in range(len(crew)))
    sending = (n for n, source in zip(names, sources, strict=True) if source.place is not None)
    return Targets(names, (*workers, *sending), workers)


@cache
def faults(scale_us: int, targets: Targets) -> st.SearchStrategy[Fault]:
    """Redeliveries, and what makes workers and links slow; nothing is lost."""
    at_us = upto(8 * scale_us)
    for_us = upto(4 * scale_us, above=1)
    nth = st.integers(0, EVENTS_MAX)
    kinds: list[st.SearchStrategy[Fault]] = [
        st.builds(Duplicate, st.sampled_from(targets.sources), nth, at_us)
    ]
    if targets.links:
        links = st.sampled_from(targets.links)
        kinds += [st.builds(Clog, links, at_us, for_us), st.builds(Replay, links, nth, at_us)]
    if targets.workers:
        names = st.sampled_from(targets.workers)
        kinds += [
            st.builds(Pause, names, at_us, for_us),
            st.builds(Slow, names, at_us, for_us, st.just(8.0)),
        ]
    return st.one_of(kinds)


@st.composite
def plans(draw: st.DrawFn, scale_us: int, sent: tuple[Source, ...]) -> Plan:
    """A way through the network for the tuples of these sources, and what goes wrong there."""
    crew = draw(workers(scale_us))
    travelling = tuple(
        replace(source, **draw(ways(scale_us, len(crew)))._asdict()) for source in sent
    )
    return Plan(
        travelling,
        crew,
        tuple(draw(st.lists(disturbances(scale_us, len(sent)), max_size=2))),
        tuple(draw(st.lists(faults(scale_us, targets_of(travelling, crew)), max_size=3))),
    )


# ------------------------------------------------------------------------------------- queries

UNIT_US = 1_000
"""Windows, slides and slacks are whole multiples of it, except where they are odd on purpose."""


class Required(NamedTuple):
    """How a query comes by its required coverage."""

    lambda_thr: float | None = None
    method: str = "normal"
    sampling: str = "exchangeable"


@cache
def requirements(aggregate: str) -> tuple[Required, ...]:
    """Every way there is for an aggregate, the plainest first.

    One draw for all of it: of three draws Hypothesis would leave out many combinations.
    """
    given = tuple(Required(share) for share in (0.5, 0.9, 1.0))
    if aggregate not in SELF_SUFFICIENT_AGGREGATES:
        return given
    methods = [method for method, aggregates in METHODS.items() if aggregate in aggregates]
    return (*(Required(None, *way) for way in product(methods, SAMPLINGS)), *given)


@st.composite
def configs(
    draw: st.DrawFn,
    aggregates: Sequence[str] = AGGREGATES,
    controls: Sequence[str] = CONTROLS,
) -> SlackConfig:
    """Queries of every shape: overlapping, tumbling and gapped windows, small and odd limits."""
    slide_us = draw(st.sampled_from([4, 6, 7])) * UNIT_US
    size_us = draw(
        st.sampled_from([slide_us, 3 * slide_us, slide_us // 2, 5 * UNIT_US, 9 * UNIT_US])
    )
    limits_us = st.none() | upto(4 * size_us)
    quality = st.sampled_from([0.05, 0.2, 0.5])
    aggregate = draw(st.sampled_from(aggregates))
    required = draw(st.sampled_from(requirements(aggregate)))
    return SlackConfig(
        size_us=size_us,
        slide_us=slide_us,
        aggregate=aggregate,
        q=draw(st.sampled_from([0.1, 0.25, 0.9])),
        keyed=draw(st.booleans()),
        tasks=draw(st.integers(1, 3)),
        control=draw(st.sampled_from(controls)),
        eps=draw(quality),
        delta=draw(quality),
        lambda_thr=required.lambda_thr,
        method=required.method,
        sampling=required.sampling,
        cv=draw(st.none() | st.just(0.5)),
        fixed_slack_us=draw(st.sampled_from([0, size_us // 3, 2 * size_us, 1_000 * size_us])),
        learning_rate=draw(st.sampled_from([0.05, 0.3, 1.0])),
        feedback_us=draw(st.sampled_from([None, 0, 1, size_us // 2, 3 * size_us])),
        max_slack_us=draw(limits_us),
        max_future_us=draw(st.none() | st.just(size_us)),
        gamma_us=draw(upto(8 * size_us)),
        max_age_us=draw(limits_us),
        dedup=draw(st.sampled_from([True, True, False])),
    )


# ----------------------------------------------------------------------------------- workloads

Query: TypeAlias = SlackConfig | WatermarkConfig
ROOMS: Mapping[type, str] = {SlackConfig: "slack", WatermarkConfig: "watermark"}

BAD_VALUES = st.sampled_from([-1.0, math.inf, -math.inf])
"""Refused by some queries."""


class Twist(NamedTuple):
    """What is done to simulated tuples so that they suit the query, or offend it."""

    divisor: int
    """Values become dyadic fractions."""
    ahead_us: int
    """How far the clock of source 0 runs ahead."""
    bad: tuple[tuple[int, float], ...]
    """Values by identity, of source 0."""

    def of(self, event: Event) -> Event:
        """The event as it arrives."""
        ahead_us = self.ahead_us if event.source_id < IDS_PER_SOURCE else 0
        value = dict(self.bad).get(event.source_id, event.value / self.divisor)
        return event._replace(event_time_us=event.event_time_us + ahead_us, value=value)


@cache
def twists(size_us: int) -> st.SearchStrategy[Twist]:
    """Mostly none."""
    bad = st.lists(st.tuples(st.integers(0, EVENTS_MAX), BAD_VALUES), max_size=2).map(tuple)
    return st.builds(
        Twist,
        st.sampled_from([1, 8]),
        st.sampled_from([0, 0, 0, 2 * size_us]),
        st.one_of(st.just(()), st.just(()), bad),
    )


@st.composite
def arrival_orders(
    draw: st.DrawFn, config: Query, orders: int = 1
) -> tuple[tuple[Event, ...], ...]:
    """Arrivals for a query; with several orders, of the same tuples on different ways."""
    scale_us = max(config.size_us, config.slide_us)
    sent = tuple(draw(st.lists(sources(scale_us), min_size=1, max_size=4)))
    twist = draw(twists(config.size_us))
    seed = draw(SEEDS)
    found: list[tuple[Event, ...]] = []
    for _ in range(orders):
        events = simulate_arrivals(draw(plans(scale_us, sent)), seed).events
        delivered = events if config.dedup else without_redeliveries(events)
        found.append(tuple(twist.of(event) for event in delivered))
    return tuple(found)


def without_redeliveries(events: Sequence[Event]) -> Sequence[Event]:
    """The first delivery of every tuple, for a query that is told that there is no other."""
    first = {event.source_id: event for event in reversed(events)}
    kept = sorted(first.values(), key=lambda event: event.seq)
    return [event._replace(seq=seq) for seq, event in enumerate(kept)]


def cuts(n_events: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Positions of micro-batch boundaries; some batches are empty."""
    positions = st.integers(0, min(n_events, 99))
    return st.lists(positions, max_size=CUTS_MAX).map(sorted).map(tuple)


@st.composite
def workloads(draw: st.DrawFn, config: Query) -> Workload:
    """A stream for this query, cut into micro-batches, mostly with a flush at its end."""
    (events,) = draw(arrival_orders(config))
    flush = draw(st.sampled_from([True, True, True, False]))
    return _workload(config, events, draw(cuts(len(events)))).with_(flush=flush)


@st.composite
def reordered(draw: st.DrawFn, config: Query) -> tuple[Workload, Workload]:
    """Two arrival orders of the same tuples, both flushed.

    What is rejected must not depend on the order, so nothing is for lying ahead of its arrival.
    """
    calm = replace(config, max_future_us=None)
    one, other = draw(arrival_orders(calm, orders=2))
    return _workload(calm, one, draw(cuts(len(one)))), _workload(calm, other, ())


class Timing(NamedTuple):
    """What a timed run needs beside its query."""

    plan: Plan
    seed: int
    crew: tuple[Worker, ...]
    """Workers that serve the tasks."""
    trigger_interval_us: int


@st.composite
def timings(draw: st.DrawFn, scale_us: int) -> Timing:
    """A simulated network, and workers for the tasks, some of them too slow."""
    sent = tuple(draw(st.lists(sources(scale_us), min_size=1, max_size=4)))
    crew = draw(workers(scale_us)) or (Worker(),)
    interval_us = draw(st.sampled_from([scale_us // 2, 3 * scale_us]))
    return Timing(draw(plans(scale_us, sent)), draw(SEEDS), crew, interval_us)


class TimedCase(NamedTuple):
    """What a timed run of room ``slack`` needs."""

    config: SlackConfig
    timing: Timing


@st.composite
def timed_cases(draw: st.DrawFn) -> TimedCase:
    """A query, and how its tuples arrive and are served."""
    config = draw(configs())
    return TimedCase(config, draw(timings(max(config.size_us, config.slide_us))))


def cases(
    aggregates: Sequence[str] = AGGREGATES, controls: Sequence[str] = CONTROLS
) -> st.SearchStrategy[Workload]:
    """A query and a stream for it."""
    return configs(aggregates, controls).flatmap(workloads)


def _workload(config: Query, events: tuple[Event, ...], cuts: tuple[int, ...]) -> Workload:
    return Workload(ROOMS[type(config)], events, config.to_json(), cuts, name="generated")
