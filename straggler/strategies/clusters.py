"""Hypothesis strategies: clusters of unequal workers and the tuples that stream to them, as plans.

A cluster lies in a *region*. The case that a region is named for occurs in each of its clusters.

Rules of this file:

1. Disorder is never drawn as a shuffle: a plan is drawn, and SimPy decides what arrives when.
2. A cluster takes few draws, so that Hypothesis can own whole packs of clusters: one choice stands
   for a kind of stream, network or cluster.
3. Clusters are at their critical point, where timing decides: work takes about as long as the gap
   between arrivals, links about as long as a window, and workers fail while tuples wait.
4. No integer is drawn from 100 or more: Hypothesis mixes constants of all loaded modules into wide
   ranges, so that the same seed would draw other values in another process.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from hypothesis import strategies as st

from sim.kernel.disorder import Burst, Disturbance, Gap, Regime
from sim.kernel.distributions import (
    Constant,
    Distribution,
    Exponential,
    Lognormal,
    Mixture,
    Pareto,
    Uniform,
    mean_us,
)
from sim.kernel.faults import Congest, Duplicate, Fail, Fault, Lose, Pause, Replay, Slow
from sim.kernel.link import HERE, QUIET, RELIABLE, Noise, Place, Tier, Tiers
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.source import Source
from sim.kernel.trigger import Every, EveryTuples
from straggler.strategies.timed_cases import SeededPlan

SEEDS = st.integers(0, 99)
KEYS = (tuple("abcdefgh"), ("a", "b", "c"), ("ä", ""), ("a", "b"), ("a",))
PLACES: tuple[tuple[Place | None, ...], ...] = (
    (Place(0, 1), Place(1)),
    (HERE, Place(0, 0, 1), Place(0, 1), Place(1)),
    (Place(1), HERE),
    (Place(1),),
)
"""Places that sources take in turn, if they send over links."""
NOWHERE = (None,)
WORKER_PLACES: tuple[tuple[Place | None, ...], ...] = (
    (HERE, Place(0, 0, 1)),
    (Place(0, 1),),
    NOWHERE,
    (HERE, Place(0, 0, 1), Place(0, 1)),
)
"""Places that workers take in turn: near ones for the most part, because a queue of limited length
counts what is on its way."""
SPEEDS: tuple[tuple[float, ...], ...] = (
    (1.0, 0.2),
    (1.0, 0.1, 1.0, 1.0),
    (1.0, 0.1, 0.6, 0.2, 0.4),
    (0.1, 1.0),
)
"""Speeds that workers take in turn: 5 to 10 times apart."""
STEPS = 24
REGIONS = ("late", "redelivered", "bursty", "failing", "slow", "lossy", "calm")
"""Kinds of clusters, by what occurs in each of them: tuples that are several windows late; tuples
that come twice; bursts that hit every tuple; a worker that fails with state, after the first
micro-batch; workers that are much slower for most of the run; losses and congestion on links; and
nothing that goes wrong."""


class Shape(NamedTuple):
    """Size of the drawn plans, and the faults that they may have."""

    scale_us: int
    """Length of a window, or of a comparable span (us)."""
    workers: int
    """Number of workers of the room, each of which may fail."""
    streams: int = 1
    """Number of streams: 2 in room ``join``."""
    events: tuple[int, ...] = (16, 24, 40)
    """Choices for the number of tuples of a source."""
    batches: tuple[int, ...] = (2, 3, 4)
    """Choices for the approximate number of micro-batches."""
    links: tuple[str, ...] = ()
    """Links that faults may strike, besides those from the log to the workers."""
    sheds: bool = True
    """True if full workers may shed."""
    copies: bool = True
    """True if a tuple may be delivered twice."""
    keys: tuple[tuple[str, ...], ...] = KEYS
    zipf: tuple[float, ...] = (0.0, 1.0)
    numbers: tuple[int, ...] = (2, 3, 1)
    """Choices for the number of sources of a stream."""
    values: tuple[tuple[int, int], ...] = ((1, 100), (1, 1))
    """Choices for the smallest and the largest value."""
    drifts: bool = False
    """True if sources may start one after another, each with another rank of its keys."""
    tunings: tuple[object, ...] = (None,)
    """Choices for the settings that only the cluster of a room has."""


# ------------------------------------------------------------------------------------- streams


@cache
def delays(scale_us: int) -> st.SearchStrategy[Distribution]:
    """Draw delays from none to several windows, with light and heavy tails."""
    return st.sampled_from(
        [
            Exponential(scale_us / 4),
            Constant(0),
            Uniform(0, scale_us),
            Uniform(0, 4 * scale_us),
            Exponential(scale_us),
            Lognormal(scale_us / 8, 1.0),
            Lognormal(scale_us, 1.0),
            Pareto(scale_us / 8, 1.1),
            Pareto(scale_us / 4, 2.0),
            Mixture(0.05, Constant(3 * scale_us)),
            Mixture(0.3, Constant(3 * scale_us)),
        ]
    )


@cache
def very_late(scale_us: int) -> st.SearchStrategy[Distribution]:
    """Draw delays that leave some tuples several windows behind others."""
    return st.sampled_from(
        [
            Mixture(0.3, Constant(4 * scale_us)),
            Uniform(0, 6 * scale_us),
            Exponential(2 * scale_us),
            Mixture(0.1, Uniform(3 * scale_us, 8 * scale_us)),
        ]
    )


@cache
def distances(scale_us: int) -> st.SearchStrategy[Tiers]:
    """Draw latencies around a window; the farthest links are busy with a tuple for a gap."""
    busy = 16_000 / scale_us
    return st.sampled_from(
        [
            Tiers(
                node=Tier(scale_us * near / 20, 10 * busy),
                rack=Tier(scale_us * near / 4, 4 * busy),
                elsewhere=Tier(scale_us * near, busy),
            )
            for near in (1, 4)
        ]
    )


@cache
def intervals(scale_us: int) -> st.SearchStrategy[Distribution]:
    """Draw intervals from a tenth of a window to a whole one."""
    means_us = [max(1, scale_us // part) for part in (6, 10, 3, 1)]
    return st.sampled_from([kind(mean) for mean in means_us for kind in (Exponential, Constant)])


@st.composite
def sources(draw: st.DrawFn, shape: Shape, region: str) -> tuple[Source, ...]:
    """Draw one to three sources of each stream, equal except for their places."""
    number = draw(st.sampled_from(shape.numbers)) * shape.streams
    low, high = draw(st.sampled_from(shape.values))
    places = draw(st.sampled_from(PLACES if region == "lossy" else (*PLACES, NOWHERE)))
    delay = very_late(shape.scale_us) if region == "late" else delays(shape.scale_us)
    source = Source(
        events=draw(st.sampled_from(shape.events)),
        interval=draw(intervals(shape.scale_us)),
        delay=draw(delay),
        in_order=region != "late" and draw(st.booleans()),
        keys=draw(st.sampled_from(shape.keys)),
        zipf=draw(st.sampled_from(shape.zipf)),
        low=low,
        high=high,
    )
    drifts = shape.drifts and draw(st.booleans())
    later_us = _span_us(source) // number if drifts else shape.scale_us // 7
    turn = len(source.keys) // number if drifts else 0
    return tuple(
        replace(
            source,
            place=places[n % len(places)],
            start_us=n * later_us,
            keys=source.keys[n * turn :] + source.keys[: n * turn],
        )
        for n in range(number)
    )


@cache
def disturbances(scale_us: int, span_us: int, sources: int) -> st.SearchStrategy[Disturbance]:
    """Draw bursts, changes of regime and gaps in a run of length ``span_us``."""
    start_us = st.integers(0, STEPS - 4).map(lambda step: span_us * step // STEPS)
    length_us = st.sampled_from([scale_us, 4 * scale_us])
    which = st.sampled_from([None, 0, sources - 1])
    return st.one_of(
        st.builds(
            Burst,
            start_us,
            length_us,
            st.sampled_from([0.3, 1.0]),
            delays(scale_us),
            which,
            st.none(),
        ),
        st.builds(Regime, start_us, delays(scale_us), which),
        st.builds(Gap, start_us, length_us, which),
    )


# ------------------------------------------------------------------------------------ clusters


@st.composite
def clusters(draw: st.DrawFn, shape: Shape, busy_us: float, region: str = "calm") -> Cluster:
    """Draw unequal workers; with ``busy_us`` of work a tuple all of them would be just busy.

    They are about as busy as that, so queues grow at the slow ones. In a region of failures
    they are less so, and near, so that they reach the second micro-batch before they fail.
    """
    speeds = draw(st.sampled_from(SPEEDS))
    linked = tuple(each for each in WORKER_PLACES if each is not NOWHERE)
    places = draw(st.sampled_from(linked if region == "lossy" else WORKER_PLACES))
    services: list[Distribution] = [
        Exponential(busy_us),
        Constant(0.8 * busy_us),
        Exponential(1.5 * busy_us),
    ]
    limit, service = draw(st.sampled_from([2, 1, 4, 6])), draw(st.sampled_from(services))
    sheds = shape.sheds and (region != "calm" or draw(st.booleans()))  # blocking hides speeds
    if region == "failing":
        places, limit, service = NOWHERE, 6, Exponential(busy_us / 2)
    noisy = Noise(0.1, retry_us=shape.scale_us / 4)
    noise = noisy if region == "lossy" else draw(st.sampled_from([RELIABLE, noisy]))
    workers = [
        Worker(
            speeds[n % len(speeds)],
            queue_limit=limit,
            when_full="drop" if sheds else "block",
            place=_own(places[n % len(places)], n),
        )
        for n in range(shape.workers)
    ]
    return Cluster(tuple(workers), service, noise=noise)


def _own(place: Place | None, number: int) -> Place | None:
    """Return a separate place for a worker, as far away as ``place``."""
    if place is None or place == HERE:
        return place
    rack, node, process = (part and part + number for part in place)
    return Place(rack, node, process)


@st.composite
def faults(draw: st.DrawFn, shape: Shape, span_us: int, sent: int, links: Sequence[str]) -> Fault:
    """Draw one fault of a worker, a link or a source."""
    kinds: list[type] = [Fail, Pause, Slow, Congest, Lose]
    kind = draw(st.sampled_from(kinds + [Replay, Duplicate] * shape.copies))
    which, step = draw(st.integers(0, 15)), draw(st.integers(0, STEPS - 1))
    at_us, for_us = span_us * step // STEPS, shape.scale_us * (1 + step % 3)
    worker, source = f"worker-{which % shape.workers}", f"source-{which % sent}"
    if not links and kind in (Congest, Lose, Replay):
        kind = Duplicate if shape.copies else Slow
    if kind is Duplicate:
        return Duplicate(source, step, for_us)
    if kind is Slow:
        return Slow(worker, at_us, for_us, 8.0)
    if kind is Fail or kind is Pause:
        return kind(worker, at_us, for_us)
    link = links[which % len(links)]
    if kind is Congest:
        return Congest(link, at_us, for_us, draw(st.sampled_from([0.0, 0.01])))
    return Lose(link, step) if kind is Lose else Replay(link, step, for_us)


# ------------------------------------------------------------------------------------- regions


@st.composite
def cases(draw: st.DrawFn, shape: Shape, region: str | None = None) -> SeededPlan:
    """Draw a cluster in a region, or in any: its sources, its faults, and a seed."""
    region = draw(st.sampled_from(REGIONS)) if region is None else region
    sent = draw(sources(shape, region))
    span_us = max(each.start_us + _span_us(each) for each in sent)
    tuples = sum(each.events for each in sent)
    # A tuple of two streams passes every worker of a chain.
    sharing = shape.workers if shape.streams == 1 else 1
    batches = draw(st.sampled_from(shape.batches))
    # A timed trigger, or one that waits for half of the tuples, may come too late for a failure.
    is_timed = region != "failing" and draw(st.booleans())
    cut = tuples // (6 if region == "failing" else batches) + 1
    plan = Plan(
        sent,
        cluster=draw(clusters(shape, sharing * span_us / tuples, region)),
        disturbances=draw(_disturbing(shape.scale_us, span_us, len(sent), region)),
        tuning=draw(st.sampled_from(shape.tunings)),
        noise=Noise(0.2, retry_us=shape.scale_us / 2) if region == "lossy" else QUIET,
        tiers=draw(distances(shape.scale_us)),
        trigger=Every(span_us // batches + 1) if is_timed else EveryTuples(cut),
        name=f"drawn cluster, {region}",
    )
    seed = draw(SEEDS)
    if region != "calm":
        plan = replace(plan, faults=draw(_failing(shape, plan, span_us, region)))
    if region == "failing":
        plan = replace(plan, faults=(*_with_state(plan, shape, seed), *plan.faults))
    return SeededPlan(plan, seed)


@st.composite
def _disturbing(
    draw: st.DrawFn, scale_us: int, span_us: int, sources: int, region: str
) -> tuple[Disturbance, ...]:
    """Draw disturbances; in a region of bursts the first is a burst that hits every tuple."""
    if region == "calm":
        return ()
    found = draw(st.lists(disturbances(scale_us, span_us, sources), max_size=2))
    if region == "bursty":
        extra = draw(very_late(scale_us))
        found.insert(0, Burst(span_us // 8, 2 * scale_us, 1.0, extra, None, 4 * scale_us))
    if region in ("redelivered", "failing"):  # A gap may take the tuple that comes twice, or all.
        found = [each for each in found if not isinstance(each, Gap)]
    return tuple(found)


@st.composite
def _failing(
    draw: st.DrawFn, shape: Shape, plan: Plan, span_us: int, region: str
) -> tuple[Fault, ...]:
    """Draw faults; the first of them strike what a region is named for."""
    links = _links(plan, shape)
    more = draw(st.lists(faults(shape, span_us, len(plan.sources), links), max_size=2))
    at_us = span_us * draw(st.integers(STEPS // 4, STEPS - 1)) // STEPS
    worker = f"worker-{draw(st.integers(0, 15)) % shape.workers}"
    for_us = shape.scale_us * draw(st.sampled_from([1, 4]))
    more.append(Fail(worker, at_us, for_us))
    if shape.copies:
        more.append(Duplicate("source-0", draw(st.integers(0, 5)), for_us))
    if region == "redelivered" and shape.copies:
        # Soon, and when queues are empty again: no full worker sheds all of the copies.
        after_us = [shape.scale_us // 8, 2 * shape.scale_us, 2 * span_us]
        more += [Duplicate("source-0", n, after_us[n % 3]) for n in range(9)]
    if region == "slow":
        slow = range(0, shape.workers, 2)
        more += [Slow(f"worker-{n}", span_us // 8, span_us, 8.0) for n in slow]
        more.append(Pause(worker, at_us, for_us))
    if region == "lossy":
        lost = [link for link in links if link.endswith(">log")] or links
        more += [Lose(link, n) for n, link in enumerate(lost)]
        more.append(Congest(draw(st.sampled_from(lost)), at_us, for_us, 0.01))
    return tuple(more)


def _with_state(plan: Plan, shape: Shape, seed: int) -> list[Fault]:
    """Return failures of the fastest workers, from the middle of the arrivals to long after."""
    fastest = sorted(range(shape.workers), key=lambda n: -plan.cluster.worker(n).speed)[:2]
    events = simulate_arrivals(plan, seed).events
    moments = [events[part * (len(events) - 1) // 8].arrival_us for part in (5, 6, 7, 8)]
    moments += [moments[-1] + part * (moments[-1] - events[0].arrival_us) for part in (1, 2, 4)]
    return [
        Fail(
            f"worker-{fastest[n % len(fastest)]}",
            at_us - plan.epoch_us + 1,
            shape.scale_us // 4 or 1,
        )
        for n, at_us in enumerate(moments)
    ]


def _links(plan: Plan, shape: Shape) -> list[str]:
    """Return the links of a plan that faults may strike."""
    workers = list(enumerate(plan.cluster.workers))
    links = [f"source-{n}>log" for n, each in enumerate(plan.sources) if each.place is not None]
    links += [f"log>worker-{n}" for n, each in workers if each.place is not None]
    return links + list(shape.links) * all(each.place is not None for _, each in workers)


def _span_us(source: Source) -> int:
    """Return the average time in which a source sends its tuples (us)."""
    return round(mean_us(source.interval) * source.events)
