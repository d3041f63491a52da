"""Hypothesis strategies: chains in time, on every network, with everything that may go wrong.

Rules of this file:

1. A recording brings ties, tuples at the very edge of a window, redeliveries, late tuples and empty
   streams (``properties/join/strategies.py``) to a drawn chain; a cluster brings sources and their
   ways to the log, too (``properties/generators/clusters.py``).
2. Times are scaled to the window, so that workers are too slow, queues are full, and messages are
   under way when a worker fails.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hypothesis import strategies as st

from model.join.load import Limits
from model.vocabulary import JoinConfig
from properties.generators import clusters
from properties.generators.clusters import Shape
from properties.generators.networks import upto
from properties.join.strategies import SCALE_US, UNIT_US, cases, configs
from sim.join.tuning import ChainTuning, Control, Costs
from sim.kernel.faults import Congest, Fail, Fault, Lose, Pause, Replay, Slow
from sim.kernel.link import HERE, RELIABLE, Noise, Place
from sim.kernel.plan import Cluster, Plan
from sim.kernel.plan import replay as replayed

LIMITS = Limits(0.25, 0.8, 0.8, out_after_us=2 * UNIT_US, in_after_us=4 * UNIT_US)
CONTROLS = st.builds(
    Control,
    capacity=st.sampled_from([3, 8, 1_000]),
    limits=st.just(LIMITS),
    blocks=st.sampled_from(["fixed", "adaptive"]),
    shed=st.sampled_from(["no", "no", "linear", "quadratic"]),
    base=st.sampled_from([0.0, 0.3]),
    scale=st.booleans(),
    every_us=st.just(UNIT_US // 2),
)
TUNINGS = st.builds(
    ChainTuning,
    costs=st.builds(Costs, message_us=st.sampled_from([0.0, 5.0, 300.0])),
    control=CONTROLS,
    is_indexed=st.sampled_from([True, True, False]),
    intake_us=st.sampled_from([1, 700]),
    intake_tuples=st.sampled_from([1, 3, 256]),
    hint_us=st.just(UNIT_US),
    pace_us=st.sampled_from([None, 0, 8 * UNIT_US]),
    commit_us=st.sampled_from([0, 500]),
    record=st.just(True),
)
PLACES: st.SearchStrategy[list[Place | None]] = st.lists(
    st.sampled_from([HERE, HERE, Place(0, 0, 1), Place(0, 1), Place(1), None]),
    min_size=4,
    max_size=4,
)
"""Of four workers in turn; two that are next to each other may be in one process."""
NOISES = st.sampled_from(
    [RELIABLE, RELIABLE, Noise(0.2, UNIT_US / 2, replay=0.2), Noise(0.05, 4.0 * UNIT_US)]
)
"""What links between workers do at random: lose and send again, and let arrive twice."""


class TimedCase(NamedTuple):
    """What a timed run of a chain needs."""

    config: JoinConfig
    plan: Plan
    seed: int


@st.composite
def recordings_on_chains(draw: st.DrawFn) -> TimedCase:
    """Draw a workload, and the chain through which it is replayed with its epochs."""
    workload = draw(cases())
    config = JoinConfig.from_json(workload.config)
    cluster = draw(clusters.clusters(Shape(SCALE_US, 4), busy_us=UNIT_US / 2))
    places = draw(PLACES)
    workers = [
        replace(worker, place=place) for worker, place in zip(cluster.workers, places, strict=True)
    ]
    plan = replayed(
        workload.arrivals,
        workload.name,
        workload.cuts,
        flush=workload.flush,
        cluster=replace(cluster, workers=tuple(workers), noise=draw(NOISES)),
    )
    faults = draw(st.lists(wrongs(plan.cluster, config.workers), max_size=4))
    plan = replace(plan, tuning=draw(TUNINGS), faults=tuple(faults))
    return TimedCase(config, plan, workload.seed)


@st.composite
def clusters_of_chains(draw: st.DrawFn) -> TimedCase:
    """Draw a cluster with two streams and everything that goes wrong on their ways."""
    config = draw(configs())
    plan, seed = draw(clusters.cases(Shape(SCALE_US, config.workers, 2, events=(6, 12, 24))))
    faults = draw(st.lists(wrongs(plan.cluster, config.workers), max_size=3))
    flush = draw(st.sampled_from([True, True, True, False]))
    plan = replace(
        plan,
        cluster=replace(plan.cluster, noise=draw(NOISES)),
        tuning=draw(TUNINGS),
        faults=(*plan.faults, *faults),
        flush=flush,
    )
    return TimedCase(config, plan, seed)


def wrongs(cluster: Cluster, workers: int) -> st.SearchStrategy[Fault]:
    """Draw what may go wrong with a worker of a chain, or with a link to one."""
    at_us, for_us = upto(16 * SCALE_US), upto(SCALE_US, above=1)
    nth = st.integers(0, 24)
    worker = st.sampled_from([f"worker-{number}" for number in range(workers)])
    kinds: list[st.SearchStrategy[Fault]] = [
        st.builds(Fail, worker, at_us, for_us),
        st.builds(Pause, worker, at_us, for_us),
        st.builds(Slow, worker, at_us, for_us, st.just(8.0)),
    ]
    links = _links(cluster, workers)
    if links:
        link = st.sampled_from(links)
        kinds += [
            st.builds(Congest, link, at_us, for_us, st.sampled_from([0.0, 0.01])),
            st.builds(Lose, link, nth),
            st.builds(Replay, link, nth, at_us),
            st.builds(Replay, link, nth, st.integers(0, 24)),
        ]
    return st.one_of(kinds)


def _links(cluster: Cluster, workers: int) -> Sequence[str]:
    """Return the links of a chain: from the log, and both ways between neighbours."""
    has_place = [cluster.worker(number).place is not None for number in range(workers)]
    names = [f"log>worker-{number}" for number in range(workers) if has_place[number]]
    for left in range(workers - 1):
        if has_place[left] and has_place[left + 1]:
            names += [f"worker-{left}>worker-{left + 1}", f"worker-{left + 1}>worker-{left}"]
    return names
