"""Hypothesis strategies: workloads whose order of arrival is simulated.

Rules of this file:

1. Disorder is never drawn as a shuffle: a small plan (``strategies/networks``) is drawn, and the
   simulation decides the order of arrival.
2. Values are integers or dyadic fractions, so that their sums are exact in every order.
3. No integer is drawn from 100 or more, for the reason given in ``strategies/networks``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple, TypeAlias

from hypothesis import strategies as st

from model.vocabulary import Event, SlackConfig, WatermarkConfig, Workload, task_of
from model.vocabulary.slack import CONTROLS, METHODS, SELF_SUFFICIENT_AGGREGATES
from model.vocabulary.windows import AGGREGATES
from model.vocabulary.workload import without_redeliveries
from sim.kernel.faults import Fail, Fault, Pause
from sim.kernel.log import simulate_arrivals
from sim.kernel.source import IDS_PER_SOURCE
from sim.windows.cluster import CORRECTOR, WindowTuning
from straggler.strategies import clusters
from straggler.strategies.clusters import Shape
from straggler.strategies.networks import SEEDS, STEPS, plans, sources, upto
from straggler.strategies.scales import SCALES, USUAL
from straggler.strategies.timed_cases import SeededPlan, TimedCase

CUTS_MAX = 4

# ------------------------------------------------------------------------------------- queries

UNIT_US = 1_000
"""Unit of windows, slides and slacks, except for those that are odd on purpose (us)."""


class Required(NamedTuple):
    """Way in which a query gets its required coverage."""

    lambda_thr: float | None = None
    method: str = "normal"


@cache
def requirements(aggregate: str) -> tuple[Required, ...]:
    """Return every requirement that an aggregate allows, the simplest first.

    They are one choice, because with three draws Hypothesis would skip many combinations.
    """
    given = tuple(Required(share) for share in (0.5, 0.9, 1.0))
    if aggregate not in SELF_SUFFICIENT_AGGREGATES:
        return given
    methods = [method for method, aggregates in METHODS.items() if aggregate in aggregates]
    return (*(Required(None, method) for method in methods), *given)


@st.composite
def configs(
    draw: st.DrawFn,
    aggregates: Sequence[str] = AGGREGATES,
    controls: Sequence[str] = CONTROLS,
) -> SlackConfig:
    """Draw queries: overlapping, tumbling and gapped windows, small and odd limits."""
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
        fixed_slack_us=draw(st.sampled_from([0, size_us // 3, 2 * size_us, 1_000 * size_us])),
        learning_rate=draw(st.sampled_from([0.05, 0.3, 1.0])),
        recent_us=draw(st.sampled_from([1, size_us // 2, 2 * size_us, 1_000 * size_us])),
        feedback_us=draw(st.sampled_from([None, 0, 1, size_us // 2, 3 * size_us])),
        max_slack_us=draw(limits_us),
        gamma_us=draw(upto(8 * size_us)),
        max_age_us=draw(limits_us),
        dedup=draw(st.sampled_from([True, True, False])),
    )


def with_start(config: SlackConfig) -> st.SearchStrategy[SlackConfig]:
    """Draw the start of a query; most streams are too short to see the end of the default one."""
    starts_us = st.sampled_from([0, config.size_us // 2, 0, None])
    return starts_us.map(lambda start_us: replace(config, start_slack_us=start_us))


# ----------------------------------------------------------------------------------- workloads

Query: TypeAlias = SlackConfig | WatermarkConfig
ROOMS: Mapping[type, str] = {SlackConfig: "slack", WatermarkConfig: "watermark"}

BAD_MAX = 8
"""Largest identity with a bad value: even short streams have some of them."""
BAD_VALUES = st.sampled_from([math.nan, math.inf, -math.inf])
"""Values that every query refuses; a missing value is NaN."""


class Signs(NamedTuple):
    """Signs of values, by identity in turn."""

    factors: tuple[float, ...] = (1.0,)
    is_level: bool = False
    """True if all values are 1 but for their signs, so that they cancel."""


SIGNS = (Signs(), Signs((1.0, -1.0)), Signs((1.0, -1.0), is_level=True), Signs((1.0, 1.0, -1.0)))
"""Values as sent; every second one a refund; refunds that cancel; a refund now and then."""


class Twist(NamedTuple):
    """Changes of simulated tuples that make them fit the query, or violate it."""

    divisor: int
    """Divisor of values, which makes them dyadic fractions."""
    ahead_us: int
    """Lead of the clock of source 0 (us)."""
    bad: tuple[tuple[int, float], ...]
    """Bad values of source 0, by identity."""
    signs: Signs

    def of(self, event: Event) -> Event:
        """Return the changed event."""
        ahead_us = self.ahead_us if event.source_id < IDS_PER_SOURCE else 0
        value = 1.0 if self.signs.is_level else event.value / self.divisor
        value *= self.signs.factors[event.source_id % len(self.signs.factors)]
        value = dict(self.bad).get(event.source_id, value)
        return event._replace(event_time_us=event.event_time_us + ahead_us, value=value)


@cache
def twists(size_us: int) -> st.SearchStrategy[Twist]:
    """Draw changes: every second stream has bad values, most streams have refunds."""
    bad = st.lists(st.tuples(st.integers(0, BAD_MAX), BAD_VALUES), min_size=1, max_size=2)
    return st.builds(
        Twist,
        st.sampled_from([1, 8]),
        st.sampled_from([0, 0, 0, 2 * size_us]),
        st.just(()) | bad.map(tuple),
        st.sampled_from(SIGNS),
    )


@st.composite
def arrivals(draw: st.DrawFn, config: Query) -> tuple[Event, ...]:
    """Draw arrivals for a query."""
    scale_us = max(config.size_us, config.slide_us)
    sent = tuple(draw(st.lists(sources(scale_us), min_size=1, max_size=4)))
    twist = draw(twists(config.size_us))
    seed = draw(SEEDS)
    events = simulate_arrivals(draw(plans(scale_us, sent, seed)), seed).events
    delivered = events if config.dedup else without_redeliveries(events)
    return tuple(twist.of(event) for event in delivered)


def cuts(n_events: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Draw positions of micro-batch boundaries; some batches are empty."""
    positions = st.integers(0, min(n_events, 99))
    return st.lists(positions, max_size=CUTS_MAX).map(sorted).map(tuple)


@st.composite
def workloads(draw: st.DrawFn, config: Query) -> Workload:
    """Draw a stream for a query, cut into micro-batches, mostly with a flush at its end."""
    events = draw(arrivals(config))
    flush = draw(st.sampled_from([True, True, True, False]))
    return _workload(config, events, draw(cuts(len(events)))).with_(flush=flush)


@st.composite
def timings(
    draw: st.DrawFn, config: Query, region: str | None = None, scale: str = USUAL
) -> SeededPlan:
    """Draw a cluster that serves a query, and the cost of corrections."""
    scale_us, tasks = max(config.size_us, config.slide_us), config.tasks
    shape = SCALES[scale](Shape(scale_us, tasks, events=(6, 12, 24)))
    plan, seed = draw(clusters.cases(shape, region))
    tuning = WindowTuning(
        draw(st.sampled_from([0.0, scale_us / 2, 3.0 * scale_us])),
        draw(st.sampled_from([0.0, scale_us / 20])),
    )
    wrong = draw(st.sampled_from([None, "task fails", "corrector fails", "corrector pauses"]))
    nth, for_us = draw(st.integers(0, STEPS)), draw(upto(8 * scale_us, above=1))
    more: tuple[Fault, ...] = ()
    if wrong is not None and (events := simulate_arrivals(plan, seed).events):
        # Soon after an arrival there is something to serve again.
        event = events[nth * (len(events) - 1) // STEPS]
        at_us = event.arrival_us - plan.epoch_us + scale_us // 8
        kind = Pause if wrong == "corrector pauses" else Fail
        task = f"worker-{task_of(event.key, tasks)}"
        more = (kind(task if wrong == "task fails" else CORRECTOR, at_us, for_us),)
    flush = draw(st.sampled_from([True, True, True, False]))
    return SeededPlan(replace(plan, tuning=tuning, faults=(*plan.faults, *more), flush=flush), seed)


@st.composite
def timed_cases(draw: st.DrawFn, region: str | None = None) -> TimedCase[SlackConfig]:
    """Draw a query and a cluster that serves it, in a region or in any."""
    config = draw(configs().flatmap(with_start))
    return TimedCase(config, draw(timings(config, region)))


def cases() -> st.SearchStrategy[Workload]:
    """Draw a query and a stream for it."""
    return configs().flatmap(with_start).flatmap(workloads)


def _workload(config: Query, events: tuple[Event, ...], cuts: tuple[int, ...]) -> Workload:
    return Workload(ROOMS[type(config)], events, config.to_json(), cuts, name="generated")
