"""Hypothesis strategies: clusters of unequal workers and the tuples that stream to them, as plans.

Rules of this file:

1. Disorder is never drawn as a shuffle: a plan is drawn, and SimPy decides what arrives when.
2. A cluster takes few draws, so that Hypothesis can own whole packs of clusters: one choice stands
   for a kind of stream, network or cluster.
3. Times are scaled to a query: several tuples come in a window, delays reach several windows, and
   some workers are too slow for their tuples.
4. No integer is drawn from 100 or more: Hypothesis mixes constants of all loaded modules into wide
   ranges, so that the same seed would draw other values in another process.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from hypothesis import strategies as st

from sim.kernel.disorder import Burst, Disturbance, Gap, Regime, Straggler
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
from sim.kernel.link import HERE, RELIABLE, Noise, Place
from sim.kernel.log import drop_later_disturbances
from sim.kernel.plan import Cluster, Plan, Worker
from sim.kernel.source import Source
from sim.kernel.trigger import Every, EveryTuples
from straggler.judging.plan_counterexamples import SeededPlan

SEEDS = st.integers(0, 99)
KEYS = (("a", "b"), ("a",), ("a", "b", "c"), ("ä", ""), tuple("abcdefgh"))
PLACES: tuple[tuple[Place | None, ...], ...] = (
    (None,),
    (HERE, Place(0, 0, 1), Place(0, 1), Place(1)),
    (Place(0, 1), Place(1)),
    (Place(1),),
)
"""Places that sources or workers take in turn."""
SPEEDS: tuple[tuple[float, ...], ...] = (
    (1.0,),
    (1.0, 0.5),
    (1.0, 1.0, 1.0, 0.1),
    (1.0, 0.8, 0.6, 0.4, 0.2),
    (0.1, 1.0),
)
"""Speeds that workers take in turn: from equal to 10 times apart."""
STEPS = 24


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
def intervals(scale_us: int) -> st.SearchStrategy[Distribution]:
    """Draw intervals from a tenth of a window to a whole one."""
    means_us = [scale_us // 6, scale_us // 10, scale_us // 3, scale_us]
    return st.sampled_from([kind(mean) for mean in means_us for kind in (Exponential, Constant)])


@st.composite
def sources(draw: st.DrawFn, shape: Shape, relays: int) -> tuple[Source, ...]:
    """Draw one to three sources of each stream, equal except for their places."""
    number = draw(st.sampled_from([2, 1, 3])) * shape.streams
    places = draw(st.sampled_from(PLACES))
    source = Source(
        events=draw(st.sampled_from(shape.events)),
        interval=draw(intervals(shape.scale_us)),
        delay=draw(delays(shape.scale_us)),
        in_order=draw(st.booleans()),
        keys=draw(st.sampled_from(shape.keys)),
        zipf=draw(st.sampled_from(shape.zipf)),
        high=draw(st.sampled_from([100, 1])),
    )
    drifts = shape.drifts and draw(st.booleans())
    later_us = _span_us(source) // number if drifts else shape.scale_us // 7
    turn = len(source.keys) // number if drifts else 0
    return tuple(
        replace(
            source,
            place=places[n % len(places)],
            relay=0 if relays and n % 2 else None,
            start_us=n * later_us,
            keys=source.keys[n * turn :] + source.keys[: n * turn],
        )
        for n in range(number)
    )


@cache
def disturbances(scale_us: int, span_us: int, sources: int) -> st.SearchStrategy[Disturbance]:
    """Draw bursts, changes of regime, stragglers and gaps in a run of length ``span_us``."""
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
        st.builds(Straggler, st.just(0), st.sampled_from([5.0, 1.0]), st.just(scale_us)),
        st.builds(Gap, start_us, length_us, which),
    )


# ------------------------------------------------------------------------------------ clusters


@st.composite
def clusters(draw: st.DrawFn, shape: Shape, busy_us: float) -> Cluster:
    """Draw workers; with ``busy_us`` of work a tuple all of them would be just busy."""
    speeds, places = draw(st.sampled_from(SPEEDS)), draw(st.sampled_from(PLACES))
    limit = draw(st.sampled_from([None, None, 2, 6]))
    when_full = draw(st.sampled_from(["block", "drop"])) if shape.sheds else "block"
    services: list[Distribution] = [Constant(busy_us / 10), Exponential(busy_us / 2)]
    service = draw(st.sampled_from(services))
    noise = draw(st.sampled_from([RELIABLE, Noise(0.1, retry_us=shape.scale_us / 4)]))
    workers = [
        Worker(
            speeds[n % len(speeds)],
            queue_limit=limit,
            when_full="drop" if when_full == "drop" else "block",
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


@st.composite
def cases(draw: st.DrawFn, shape: Shape) -> SeededPlan:
    """Draw a cluster, its sources, its faults, and a seed."""
    relays = draw(st.sampled_from([(), (), (Worker(0.5, place=Place(0, 1)),)]))
    sent = draw(sources(shape, len(relays)))
    span_us = max(each.start_us + _span_us(each) for each in sent)
    tuples = sum(each.events for each in sent)
    cluster = draw(clusters(shape, shape.workers * span_us / tuples))
    links = [f"source-{n}>{_end(each)}" for n, each in enumerate(sent) if each.place is not None]
    links += [f"relay-{n}>log" for n in range(len(relays))]
    links += [f"log>worker-{n}" for n, each in enumerate(cluster.workers) if each.place is not None]
    if all(each.place is not None for each in cluster.workers):
        links += shape.links
    wrong = faults(shape, span_us, len(sent), links)
    disturbed = disturbances(shape.scale_us, span_us, len(sent))
    batches = draw(st.sampled_from(shape.batches))
    is_timed = draw(st.booleans())
    plan = Plan(
        sent,
        relays,
        relay_service=Constant(shape.scale_us / 20),
        cluster=cluster,
        disturbances=tuple(draw(st.lists(disturbed, max_size=2))),
        faults=tuple(draw(st.lists(wrong, max_size=3))),
        tuning=draw(st.sampled_from(shape.tunings)),
        trigger=Every(span_us // batches + 1) if is_timed else EveryTuples(tuples // batches + 1),
        name="drawn cluster",
    )
    seed = draw(SEEDS)
    return SeededPlan(drop_later_disturbances(plan, seed), seed)


def _end(source: Source) -> str:
    return "log" if source.relay is None else f"relay-{source.relay}"


def _span_us(source: Source) -> int:
    """Return the average time in which a source sends its tuples (us)."""
    return round(mean_us(source.interval) * source.events)
