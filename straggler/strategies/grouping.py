"""Hypothesis strategies: skewed keys whose arrival order comes out of a simulated network.

Rules of this file:

1. Disorder is never drawn as a shuffle: sources, ways and faults are those of
   ``strategies/streams``. Every source has hot keys of its own, so that the heavy keys change with
   the sources that send.
2. Windows are shorter than a stream and summaries smaller than its keys.
3. A timed case has a cluster of ``strategies/clusters``. What arrives there has the keys of its
   sources, or skewed keys and values that are not finite.
"""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from model.vocabulary import Event, GroupingConfig, Workload, stable_hash
from model.vocabulary.grouping import POLICIES
from sim.grouping.cluster import GroupingTuning
from sim.kernel.faults import Congest, Fault, Lose, Replay
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import Plan
from sim.kernel.source import IDS_PER_SOURCE, Recording, Row
from straggler.strategies import clusters
from straggler.strategies.clusters import Shape
from straggler.strategies.networks import SEEDS, plans, sources
from straggler.strategies.streams import cuts
from straggler.strategies.timed_cases import SeededPlan, TimedCase

SCALE_US = 8_000
"""Scale of all delays (us)."""
INSTANCES = st.sampled_from([1, 2, 3, 4, 7])
TIMES_US = st.sampled_from([1, 1, 2, 10])
SHARES = st.sampled_from([(None, None), (0.2, None), (0.4, 0.2), (0.4, 0.18), (0.9, 0.41)])
"""Pairs of theta and eps."""
WEIGHTS = st.lists(st.sampled_from([1, 1, 2, 5, 20, 80]), min_size=1, max_size=12)
"""Shares of keys, by their number."""


@st.composite
def times(draw: st.DrawFn, n: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Draw no times, constant ones, or times that change with a micro-batch."""
    each = st.lists(TIMES_US, min_size=n, max_size=n).map(tuple)
    batches = draw(st.sampled_from([(), (0,), (0, 1), (0, 2)]))
    return tuple((batch, draw(each)) for batch in batches)


@st.composite
def configs(draw: st.DrawFn) -> GroupingConfig:
    """Draw routers of every policy."""
    n = draw(INSTANCES)
    theta, eps = draw(SHARES)
    return GroupingConfig(
        n,
        draw(st.sampled_from(POLICIES)),
        draw(times(n)),
        latency_us=draw(st.sampled_from([(), (7, 0, 3, 3, 0, 7, 9)[:n]])),
        senders=draw(st.integers(1, 3)),
        window_tuples=draw(st.sampled_from([1, 5, 20, 1_000])),
        theta=theta,
        eps=eps,
        gamma=draw(st.sampled_from([0.2, 1.0])),
        alpha=draw(st.sampled_from([0.0, 0.5, 1.0])),
        draw_tuples=draw(st.sampled_from([None, 1, 3])),
        tiers=draw(st.sampled_from([(), (3, 0, 1, 2, 0, 1, 3)[:n]])),
        later_tiers=draw(st.sampled_from([(), ((2, (1, 3, 0, 2, 3, 0, 1)[:n]),)])),
        hash_seed=draw(SEEDS),
        top=draw(st.integers(1, 3)),
    )


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[Event, ...]:
    """Draw some sources that send through a network; some of their values are not finite."""
    sent = tuple(draw(st.lists(sources(SCALE_US), min_size=1, max_size=4)))
    events = simulate_arrivals(draw(plans(SCALE_US, sent)), draw(SEEDS)).events
    weights = [draw(WEIGHTS) for _ in sent]
    unfit = draw(st.sampled_from([0, 0, 7]))
    return tuple(_skewed(event, weights, unfit) for event in events)


def _skewed(event: Event, weights: Sequence[Sequence[int]], unfit: int) -> Event:
    source, number = divmod(event.source_id, IDS_PER_SOURCE)
    of_source = weights[source]
    mark = stable_hash(str(event.source_id)) % sum(of_source)
    key = next(k for k in range(len(of_source)) if mark < sum(of_source[: k + 1]))
    has_value = not unfit or number % unfit
    # Every source has the keys in another order: 0 1 2, 1 2 0, ...
    return event._replace(
        key=f"k{(key + source) % 12}", value=event.value if has_value else float("inf")
    )


@st.composite
def cases(draw: st.DrawFn) -> Workload:
    """Draw routers and a stream for them, cut into micro-batches."""
    events = draw(arrivals())
    return Workload(
        "grouping", events, draw(configs()).to_json(), draw(cuts(len(events))), name="generated"
    )


# ------------------------------------------------------------------------------------- in time


@st.composite
def timed_cases(draw: st.DrawFn, region: str | None = None) -> TimedCase[GroupingConfig]:
    """Draw routers, instances near and far, what streams to them, and what goes wrong."""
    config = draw(configs())
    shape = Shape(SCALE_US, config.instances, events=(12, 24, 40), batches=(1, 3, 12))
    plan, seed = draw(clusters.cases(shape, region))
    if draw(st.booleans()):
        # A place is free again when the log hears of it: the way back may be in trouble, too.
        plan = replace(plan, faults=tuple(map(_on_the_way_back, plan.faults)))
    if draw(st.sampled_from([False, False, True])):
        plan = replaying(draw(arrivals()), plan)
    plan = replace(plan, tuning=GroupingTuning(measured=draw(st.booleans())))
    return TimedCase(config, SeededPlan(plan, seed))


def _on_the_way_back(fault: Fault) -> Fault:
    if isinstance(fault, Congest | Lose | Replay) and fault.link.startswith("log>"):
        return fault._replace(link=f"{fault.link.removeprefix('log>')}>log")
    return fault


def replaying(events: Sequence[Event], plan: Plan) -> Plan:
    """Return the plan with these arrivals in place of what its sources send."""
    rows = [Row(e.event_time_us, e.arrival_us, e.key, e.value, e.source_id) for e in events]
    return replace(
        plan,
        sources=(Recording(tuple(rows)),),
        disturbances=(),
        faults=tuple([fault for fault in plan.faults if "worker-" in fault[0]]),
    )
