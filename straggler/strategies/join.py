"""Hypothesis strategies: two streams whose arrival order comes out of a simulated network.

Rules of this file:

1. Disorder is never drawn as a shuffle: sources, ways and faults are those of
   ``straggler/strategies/networks.py``; every other source belongs to S.
2. Event times and windows are multiples of one unit, so that tuples often lie at the very edge of
   a window, and often at the same time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from hypothesis import strategies as st

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join_load import Limits
from sim.join.tuning import ChainTuning, Control, Costs
from sim.kernel.faults import Congest, Fail, Fault, Lose, Pause, Replay, Slow
from sim.kernel.link import HERE, RELIABLE, Noise, Place
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import Cluster
from sim.kernel.plan import replay as replayed
from sim.kernel.source import IDS_PER_SOURCE
from straggler.strategies import clusters
from straggler.strategies.clusters import Shape
from straggler.strategies.columns import R_COLUMNS, S_COLUMNS, predicates, with_values
from straggler.strategies.load_curves import decisions
from straggler.strategies.networks import SEEDS, plans, sources, upto
from straggler.strategies.streams import cuts
from straggler.strategies.timed_cases import SeededPlan, TimedCase

UNIT_US = 1_000
SCALE_US = 8 * UNIT_US
"""Scale of all delays (us)."""

IDLE_US = st.sampled_from([None, UNIT_US, UNIT_US, SCALE_US // 2, 4 * SCALE_US])
"""Distances that a stream may advance while the other one is silent (us)."""


@st.composite
def ranges(draw: st.DrawFn, query: str) -> tuple[str, int, int | None]:
    """Draw a query's first epoch and, perhaps, its last one."""
    first = draw(st.integers(0, 2))
    return query, first, draw(st.sampled_from([None, first, first + 1]))


@st.composite
def configs(draw: st.DrawFn, *, columned: bool = False) -> JoinConfig:
    """Draw chains of every shape: also a single worker, and blocks larger than both streams.

    Some queries pair only tuples of some epochs. ``columned``: the streams have columns.
    """
    columns = (R_COLUMNS, S_COLUMNS) if columned else ((), ())
    found = draw(st.lists(predicates(*columns), min_size=1, max_size=3))
    names = tuple(f"q{number}" for number in range(len(found)))
    some = [name for name in names if draw(st.booleans())]
    return JoinConfig(
        window_us=draw(st.sampled_from([0, 1, 2, 8, 64])) * UNIT_US,
        queries=tuple(zip(names, found, strict=True)),
        workers=draw(st.integers(1, 4)),
        block_size=draw(st.sampled_from([1, 2, 5, 1_000])),
        credit=draw(st.integers(1, 3)),
        lateness_us=draw(st.sampled_from([None, None, 0, SCALE_US, 16 * SCALE_US])),
        epochs=tuple(draw(ranges(name)) for name in some),
        r_columns=columns[0],
        s_columns=columns[1],
    )


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[Event, ...]:
    """Draw two streams that pass through one network; one of them may be empty."""
    sent = tuple(draw(st.lists(sources(SCALE_US), min_size=1, max_size=4)))
    events = simulate_arrivals(draw(plans(SCALE_US, sent)), draw(SEEDS)).events
    return tuple(_of_a_stream(event) for event in events)


def _of_a_stream(event: Event) -> Event:
    source, number = divmod(event.source_id, IDS_PER_SOURCE)
    # R and S use the same numbers: an identity is a number of a stream.
    return event._replace(
        source_id=source // 2 * IDS_PER_SOURCE + number,
        event_time_us=event.event_time_us // UNIT_US * UNIT_US,
        stream="RS"[source % 2],
    )


@st.composite
def cases(draw: st.DrawFn, *, decided: bool = True) -> Workload:
    """Draw a chain and two streams, cut into epochs, mostly with a flush at the end.

    ``decided``: some of the chains take decisions between epochs.
    """
    events, config = draw(arrivals()), draw(configs(columned=draw(st.booleans())))
    events = with_values(events, config, draw(SEEDS))
    workload = Workload(
        "join",
        events,
        config.to_json(),
        draw(cuts(len(events))),
        seed=draw(SEEDS),
        flush=draw(st.sampled_from([True, True, True, False])),
        name="generated",
    )
    if decided:
        config = replace(config, decisions=draw(decisions(config)))
    if config.lateness_us is None and draw(st.booleans()):
        return workload.with_(config=config.to_json())
    idle_after_us = draw(IDLE_US)
    if idle_after_us == UNIT_US or config.lateness_us is None:
        config = replace(config, lateness_us=draw(st.sampled_from([0, UNIT_US])))
    config = replace(config, idle_after_us=idle_after_us)
    workload = workload.with_(config=config.to_json())
    return draw(outages(workload)) if draw(st.booleans()) else workload


@st.composite
def outages(draw: st.DrawFn, workload: Workload) -> Workload:
    """Draw an outage of one stream, with several epochs in it and after it.

    What the stream sends meanwhile is lost, or comes when the outage is over; or everything that it
    sends from then on comes late, so that it runs behind the other stream.
    """
    events = workload.arrivals
    half = len(events) // 2
    first, last = draw(st.integers(0, half)), draw(st.integers(half, len(events)))
    stream, kind = draw(st.sampled_from("RS")), draw(st.sampled_from(["lost", "kept", "behind"]))
    over_us = events[last - 1].arrival_us if last else 0
    began_us = events[first].arrival_us if first < len(events) else over_us
    kept: list[Event] = []
    for n, event in enumerate(events):
        if event.stream != stream or n < first or (n >= last and kind != "behind"):
            kept.append(event)
        elif kind != "lost":
            late_us = event.arrival_us + over_us - began_us
            kept.append(event._replace(arrival_us=late_us if kind == "behind" else over_us))
    kept.sort(key=lambda event: event.arrival_us)
    cut = {first + (len(kept) - first) * part // 10 for part in range(10) if first <= len(kept)}
    return workload.with_(
        arrivals=tuple(event._replace(seq=seq) for seq, event in enumerate(kept)),
        cuts=tuple(sorted({*(each for each in workload.cuts if each <= len(kept)), *cut})),
    )


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
    intake_us=st.sampled_from([1, 700]),
    intake_tuples=st.sampled_from([1, 3, 256]),
    hint_us=st.just(UNIT_US),
    commit_us=st.sampled_from([0, 500]),
    record=st.just(True),
)
PLACES: st.SearchStrategy[list[Place | None]] = st.lists(
    st.sampled_from([HERE, HERE, Place(0, 0, 1), Place(0, 1), Place(1), None]),
    min_size=4,
    max_size=4,
)
"""Places of four workers, in turn; two neighbours may share a process."""
NOISES = st.sampled_from(
    [RELIABLE, RELIABLE, Noise(0.2, UNIT_US / 2, replay=0.2), Noise(0.05, 4.0 * UNIT_US)]
)
"""Random behaviour of links between workers: losses, retries and duplicates."""


class Struck(NamedTuple):
    """A fault and a place that a drawn chain has to have."""

    kind: type[Fault]
    """Kind of a fault that strikes one of the first two workers, or a link of one."""
    place: Place | None
    """Place of the second worker; the first one is where the log is."""


STRUCK = (
    Struck(Pause, None),
    Struck(Slow, HERE),
    Struck(Fail, Place(0, 0, 1)),
    Struck(Congest, Place(0, 1)),
    Struck(Lose, Place(1)),
    Struck(Replay, HERE),
)
"""Each kind of fault, and each tier between two workers."""


@st.composite
def recordings_on_chains(draw: st.DrawFn, struck: Struck | None = None) -> TimedCase[JoinConfig]:
    """Draw a workload, and the chain through which it is replayed with its epochs."""
    workload = draw(cases())
    config = JoinConfig.from_json(workload.config)
    cluster = draw(clusters.clusters(Shape(SCALE_US, 4), busy_us=UNIT_US / 2))
    places = draw(PLACES)
    if struck is not None:
        config = replace(config, workers=max(2, config.workers))
        places[:2] = HERE, struck.place
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
    faults = draw(st.lists(chain_faults(plan.cluster, config.workers), max_size=4))
    if struck is not None and struck.kind is Fail:
        # Soon after an arrival, so that there is something to do again.
        at_us = [each.arrival_us - plan.epoch_us for each in workload.arrivals]
        faults += [Fail("worker-0", at_us[len(at_us) * n // 4] + UNIT_US // 8, 1) for n in (1, 3)]
    elif struck is not None:
        faults.append(draw(_kinds_of_faults(plan.cluster, 2)[struck.kind]))
    tuning = draw(TUNINGS)
    if config.decisions:  # a run follows its load or its decisions
        tuning = replace(tuning, control=replace(tuning.control, scale=False, shed="no"))
    plan = replace(plan, tuning=tuning, faults=tuple(faults))
    return TimedCase(config, SeededPlan(plan, workload.seed))


@st.composite
def clusters_of_chains(draw: st.DrawFn, region: str | None = None) -> TimedCase[JoinConfig]:
    """Draw a cluster with two streams, and faults of their sources, links and workers."""
    config = draw(configs())
    shape = Shape(SCALE_US, config.workers, 2, events=(6, 12, 24))
    plan, seed = draw(clusters.cases(shape, region))
    faults = draw(st.lists(chain_faults(plan.cluster, config.workers), max_size=3))
    flush = draw(st.sampled_from([True, True, True, False]))
    plan = replace(
        plan,
        cluster=replace(plan.cluster, noise=draw(NOISES)),
        tuning=draw(TUNINGS),
        faults=(*plan.faults, *faults),
        flush=flush,
    )
    return TimedCase(config, SeededPlan(plan, seed))


def chain_faults(cluster: Cluster, workers: int) -> st.SearchStrategy[Fault]:
    """Draw what may go wrong with a worker of a chain, or with a link to one."""
    return st.one_of(*_kinds_of_faults(cluster, workers).values())


def _kinds_of_faults(
    cluster: Cluster, workers: int
) -> Mapping[type[Fault], st.SearchStrategy[Fault]]:
    """Return a strategy for each kind of fault; some kinds need a link between workers."""
    at_us, for_us = upto(16 * SCALE_US), upto(SCALE_US, above=1)
    nth = st.integers(0, 24)
    worker = st.sampled_from([f"worker-{number}" for number in range(workers)])
    kinds: dict[type[Fault], st.SearchStrategy[Fault]] = {
        Fail: st.builds(Fail, worker, at_us, for_us),
        Pause: st.builds(Pause, worker, at_us, for_us),
        Slow: st.builds(Slow, worker, at_us, for_us, st.just(8.0)),
    }
    links = _links(cluster, workers)
    if links:
        link = st.sampled_from(links)
        shares = st.sampled_from([0.0, 0.01])
        kinds[Congest] = st.builds(Congest, link, at_us, for_us, shares)
        kinds[Lose] = st.builds(Lose, link, nth)
        kinds[Replay] = st.builds(Replay, link, nth, at_us | st.integers(0, 24))
    return kinds


def _links(cluster: Cluster, workers: int) -> Sequence[str]:
    """Return the links of a chain: from the log, and both ways between neighbours."""
    has_place = [cluster.worker(number).place is not None for number in range(workers)]
    names = [f"log>worker-{number}" for number in range(workers) if has_place[number]]
    for left in range(workers - 1):
        if has_place[left] and has_place[left + 1]:
            names += [f"worker-{left}>worker-{left + 1}", f"worker-{left + 1}>worker-{left}"]
    return names
