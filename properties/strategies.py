"""Hypothesis strategies: workloads whose arrival order comes out of a simulation.

Rules of this file:

1. Disorder is never drawn as a shuffle: a small plan (sources, network tiers, slow workers, bursts,
   changes of regime, faults) is drawn, and the simulation says in which order its tuples arrive.
2. The plan is scaled to the query: intervals are shorter than a window, delays as long as several,
   so that late tuples are the rule.
3. Values are integers or dyadic fractions, so that their sums are exact in every order.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from model.vocabulary import Event, SlackConfig, Workload
from model.vocabulary.slack import AGGREGATES, CONTROLS, SELF_SUFFICIENT_AGGREGATES
from sim.arrivals import simulate_arrivals
from sim.cluster import Worker
from sim.disorder import Burst, Disturbance, Gap, Regime, Straggler
from sim.distributions import (
    Constant,
    Distribution,
    Exponential,
    Lognormal,
    Mixture,
    Pareto,
    Uniform,
)
from sim.faults import Clog, Duplicate, Fault, Lose, Pause, Replay, Slow
from sim.network import Place
from sim.plan import IDS_PER_SOURCE, Plan, Source

KEYS = ("a", "b", "c", "ä", "")
EVENTS_MAX = 24
"""Tuples of one source: small, so that a failing case is read by a person."""

# --------------------------------------------------------------------------------------- plans


def delays(scale_us: int) -> st.SearchStrategy[Distribution]:
    """Delays from none to several windows, with light and heavy tails."""
    return st.one_of(
        st.just(Constant(0)),
        st.builds(Uniform, st.just(0), st.sampled_from([scale_us / 4, scale_us, 4 * scale_us])),
        st.builds(Exponential, st.sampled_from([scale_us / 8, scale_us])),
        st.builds(Lognormal, st.sampled_from([scale_us / 8, scale_us]), st.just(1.0)),
        st.builds(Pareto, st.just(scale_us / 8), st.sampled_from([1.1, 2.0])),
        st.builds(Mixture, st.sampled_from([0.05, 0.3]), st.just(Constant(3 * scale_us))),
    )


def intervals(mean_us: int) -> st.SearchStrategy[Distribution]:
    """Regular, or a Poisson process."""
    return st.just(Constant(mean_us)) | st.just(Exponential(mean_us))


@st.composite
def sources(draw: st.DrawFn, scale_us: int, workers: int) -> Source:
    """One source, with a place in the network or none, perhaps behind a worker."""
    interval_us = draw(st.sampled_from([scale_us // 6, scale_us // 2, scale_us])) or 1
    bits_max = draw(st.sampled_from([0, 800]))
    return Source(
        events=draw(st.integers(6, EVENTS_MAX)),
        interval=draw(intervals(interval_us)),
        start_us=draw(st.integers(0, scale_us)),
        delay=draw(delays(scale_us)),
        in_order=draw(st.booleans()),
        keys=tuple(draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True))),
        low=0,
        high=draw(st.sampled_from([1, 100])),
        bits=bits_max,
        place=draw(st.sampled_from([None, Place(0, 0, 1), Place(0, 1), Place(1)])),
        worker=draw(st.none() | st.integers(0, workers - 1)) if workers else None,
    )


def disturbances(scale_us: int, sources: int) -> st.SearchStrategy[Disturbance]:
    """Bursts, changes of regime, gaps and stragglers."""
    times_us = st.integers(0, 8 * scale_us)
    lengths_us = st.integers(1, 4 * scale_us)
    some = st.none() | st.integers(0, sources - 1)
    shares = st.sampled_from([0.3, 1.0])
    return st.one_of(
        st.builds(Burst, times_us, lengths_us, shares, delays(scale_us), some),
        st.builds(Regime, times_us, delays(scale_us), some),
        st.builds(Gap, times_us, lengths_us, some),
        st.builds(Straggler, st.integers(0, sources - 1), st.sampled_from([1.0, 5.0]), times_us),
    )


@st.composite
def faults(draw: st.DrawFn, scale_us: int, plan: Plan) -> Fault:
    """A fault of a worker, a link or a source of the plan."""
    at_us = draw(st.integers(0, 8 * scale_us))
    for_us = draw(st.integers(1, 4 * scale_us))
    nth = draw(st.integers(0, EVENTS_MAX))
    workers = [f"worker-{number}" for number in range(len(plan.workers))]
    names = [f"source-{number}" for number in range(len(plan.sources))]
    links = [
        *workers,
        *(
            name
            for name, source in zip(names, plan.sources, strict=True)
            if source.place is not None
        ),
    ]
    kinds: list[Fault] = [Duplicate(draw(st.sampled_from(names)), nth, at_us)]
    if links:
        link = draw(st.sampled_from(links))
        kinds += [Clog(link, at_us, for_us), Lose(link, nth), Replay(link, nth, at_us)]
    if workers:
        worker = draw(st.sampled_from(workers))
        kinds += [Pause(worker, at_us, for_us), Slow(worker, at_us, for_us, 8.0)]
    return draw(st.sampled_from(kinds))


@st.composite
def plans(draw: st.DrawFn, scale_us: int) -> Plan:
    """One to four sources on their way through the network, and what goes wrong there."""
    service = st.sampled_from([Constant(scale_us // 20), Exponential(scale_us / 8)])
    workers = draw(st.lists(st.builds(Worker, service, st.sampled_from([1.0, 0.2])), max_size=2))
    drawn = draw(st.lists(sources(scale_us, len(workers)), min_size=1, max_size=4))
    plan = Plan(
        tuple(drawn),
        tuple(workers),
        tuple(draw(st.lists(disturbances(scale_us, len(drawn)), max_size=2))),
    )
    return replace(plan, faults=tuple(draw(st.lists(faults(scale_us, plan), max_size=3))))


# ------------------------------------------------------------------------------------- queries

UNIT_US = 1_000
"""Windows, slides and slacks are whole multiples of it, except where they are odd on purpose."""


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
    limits_us = st.none() | st.integers(0, 4 * size_us)
    quality = st.sampled_from([0.05, 0.2, 0.5])
    aggregate = draw(st.sampled_from(aggregates))
    coverage: list[float | None] = [0.5, 0.9, 1.0]
    if aggregate in SELF_SUFFICIENT_AGGREGATES:
        coverage += [None] * 3
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
        lambda_thr=draw(st.sampled_from(coverage)),
        cv=draw(st.none() | st.just(0.5)),
        fixed_slack_us=draw(st.integers(0, 2 * size_us)),
        learning_rate=draw(st.sampled_from([0.05, 0.3, 1.0])),
        feedback_us=draw(st.sampled_from([None, 0, 1, size_us // 2, 3 * size_us])),
        max_slack_us=draw(limits_us),
        max_future_us=draw(st.none() | st.just(size_us)),
        gamma_us=draw(st.integers(0, 8 * size_us)),
        max_age_us=draw(limits_us),
        dedup=draw(st.sampled_from([True, True, False])),
    )


# ----------------------------------------------------------------------------------- workloads


@st.composite
def arrivals(draw: st.DrawFn, config: SlackConfig) -> tuple[Event, ...]:
    """What a simulated plan delivers, with values and clocks that suit the query or offend it."""
    plan = draw(plans(max(config.size_us, config.slide_us)))
    events = simulate_arrivals(plan, draw(st.integers(0, 999))).events
    divisor = draw(st.sampled_from([1, 8]))
    ahead_us = draw(st.sampled_from([0, 0, 2 * config.size_us]))
    bad = dict(draw(st.lists(st.tuples(st.integers(0, EVENTS_MAX), BAD_VALUES), max_size=2)))
    return tuple(
        event._replace(
            event_time_us=event.event_time_us + (ahead_us if _is_of_first(event) else 0),
            value=bad.get(event.source_id, event.value / divisor),
        )
        for event in _once(events, config)
    )


BAD_VALUES = st.sampled_from([-1.0, math.inf, -math.inf])
"""Refused by some queries; they replace values of the first source."""


def _is_of_first(event: Event) -> bool:
    """Whether the event comes from source 0, whose clock may run ahead."""
    return event.source_id < IDS_PER_SOURCE


def _once(events: Sequence[Event], config: SlackConfig) -> Sequence[Event]:
    """Without redeliveries for a query that is told that there are none."""
    if config.dedup:
        return events
    first = {event.source_id: event for event in reversed(events)}
    kept = sorted(first.values(), key=lambda event: event.seq)
    return [event._replace(seq=seq) for seq, event in enumerate(kept)]


@st.composite
def cuts(draw: st.DrawFn, n_events: int) -> tuple[int, ...]:
    """Positions of micro-batch boundaries; some batches are empty."""
    return tuple(sorted(draw(st.lists(st.integers(0, n_events), max_size=5))))


@st.composite
def workloads(draw: st.DrawFn, config: SlackConfig) -> Workload:
    """A stream for this query, cut into micro-batches, mostly with a flush at its end."""
    events = draw(arrivals(config))
    return Workload(
        room="slack",
        arrivals=events,
        config=config.to_json(),
        cuts=draw(cuts(len(events))),
        flush=draw(st.sampled_from([True, True, True, False])),
        name="generated",
    )


def cases(
    aggregates: Sequence[str] = AGGREGATES, controls: Sequence[str] = CONTROLS
) -> st.SearchStrategy[Workload]:
    """A query and a stream for it."""
    return configs(aggregates, controls).flatmap(workloads)
