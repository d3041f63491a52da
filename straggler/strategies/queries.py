"""Hypothesis strategies: queries whose promises are checked on Spark, with matching clusters."""

from collections.abc import Callable, Mapping, Sequence

from hypothesis import strategies as st

from model.vocabulary import Event, GroupingConfig, JoinConfig, SlackConfig, WatermarkConfig
from model.vocabulary.join import And, Apart, Band, Equi, Ineq, Predicate
from sim.grouping.cluster import GroupingTuning
from sim.kernel.faults import Congest, Fail, Fault, Lose, Replay
from sim.kernel.link import Place
from sim.kernel.plan import Plan
from sim.kernel.source import IDS_PER_SOURCE, Source
from straggler.strategies.clusters import SEEDS, Shape
from straggler.strategies.scales import ranks

UNIT_US = 1_000
WINDOWS_US = ((9_000, 3_000), (8_000, 8_000), (10_000, 4_000))
"""Lengths and slides of windows (us)."""
EACH = 200
"""Tuples of an instance in three windows. With four instances or more, a growth of rho by
0.02 log2 n is then more than two tuples."""

# ----------------------------------------------------------------------------- windowed rooms


@st.composite
def coverage_queries(draw: st.DrawFn, aggregate: str, shares: Sequence[float]) -> SlackConfig:
    """Draw queries under adaptive control, which ask for one of some shares, or for a quality.

    Without shares they ask for a quality, (eps, delta).
    """
    size_us, slide_us = draw(st.sampled_from(WINDOWS_US))
    return SlackConfig(
        size_us,
        slide_us,
        aggregate=aggregate,
        tasks=draw(st.sampled_from([3, 2, 4, 8, 16])),
        control="conformal",
        lambda_thr=draw(st.sampled_from(shares)) if shares else None,
        eps=draw(st.sampled_from([0.05, 0.2])),
        delta=draw(st.sampled_from([0.05, 0.2])),
        learning_rate=draw(st.sampled_from([0.05, 0.3, 1.0])),
        feedback_us=draw(st.sampled_from([None, 0, 3 * size_us])),
        gamma_us=2 * size_us,
    )


@st.composite
def corrected_queries(draw: st.DrawFn) -> SlackConfig:
    """Draw queries under every control, whose answers are corrected sooner or later."""
    size_us, slide_us = draw(st.sampled_from(WINDOWS_US))
    return SlackConfig(
        size_us,
        slide_us,
        aggregate=draw(st.sampled_from(["sum", "count", "avg", "min", "max"])),
        tasks=draw(st.sampled_from([3, 2, 4])),
        control=draw(st.sampled_from(["conformal", "fixed", "pd", "max"])),
        lambda_thr=0.9,
        gamma_us=draw(st.sampled_from([2 * size_us, 0, 20 * size_us])),
        max_age_us=draw(st.sampled_from([None, 3 * size_us])),
    )


@st.composite
def corrected_watermarks(draw: st.DrawFn) -> WatermarkConfig:
    """Draw queries that wait by disorder and correct what they miss."""
    size_us, slide_us = draw(st.sampled_from(WINDOWS_US))
    return WatermarkConfig(
        size_us,
        slide_us,
        draw(st.sampled_from([size_us // 2, 3 * size_us])),
        reading=draw(st.sampled_from(["disorder", "scaled", "fixed"])),
        k=draw(st.sampled_from([5, 2, 50])),
        aggregate=draw(st.sampled_from(["sum", "count", "avg", "min", "max"])),
        tasks=draw(st.sampled_from([3, 2, 4])),
        corrections=True,
        gamma_us=2 * size_us,
    )


def windowed_shape(config: SlackConfig | WatermarkConfig) -> Shape:
    """Return what clusters for a windowed query are like."""
    return Shape(config.size_us, config.tasks)


# -------------------------------------------------------------------------------------- chains


@st.composite
def join_queries(draw: st.DrawFn) -> JoinConfig:
    """Draw chains of 2 to 8 workers with one to three predicates."""
    eps = draw(st.sampled_from([5.0, 20.0]))
    predicates: list[Predicate] = [
        Equi("key"),
        Band("value", eps),
        And((Equi("key"), Band("value", eps))),
        Ineq("value", "<", "value"),
        Apart("value", 3 * eps),
    ]
    first, several = draw(st.integers(0, len(predicates) - 1)), draw(st.sampled_from([1, 2, 3]))
    chosen = [predicates[(first + n) % len(predicates)] for n in range(several)]
    return JoinConfig(
        window_us=draw(st.sampled_from([8 * UNIT_US, 2 * UNIT_US, 30 * UNIT_US])),
        queries=tuple((f"q{n}", predicate) for n, predicate in enumerate(chosen)),
        workers=draw(st.sampled_from([3, 2, 4, 8])),
        block_size=draw(st.sampled_from([2, 1, 5])),
        credit=draw(st.sampled_from([1, 3])),
        lateness_us=draw(st.sampled_from([12 * UNIT_US, 24 * UNIT_US])),
    )


LINK_US = 500
"""Scale of the trouble on the links of a chain (us)."""
Moves = tuple[tuple[int, int, float], ...]
"""Workers, largest block and share shed, of one decision after the other."""


@st.composite
def chain_moves(draw: st.DrawFn, config: JoinConfig) -> Moves:
    """Draw decisions: workers come and go, blocks change their size, and arrivals are shed."""
    workers, size = config.workers, config.block_size
    one, other = draw(
        st.sampled_from([(2, 4), (4, 2), (3, 5), (5, 2), (2, 3)]).filter(
            lambda each: workers not in each
        )
    )
    shares = draw(st.permutations([0.25, 0.0, draw(st.sampled_from([0.05, 0.15]))]))
    sizes = [size + draw(st.sampled_from([1, 3])), size, max(1, size // 2)]
    return tuple(zip((one, other, workers), sizes, shares, strict=True))


@st.composite
def chain_trouble(draw: st.DrawFn) -> tuple[Fault, ...]:
    """Draw what goes wrong with the links between the first workers of a chain, and with a worker.

    In both directions messages are lost, come twice, and are held up by congestion.
    """
    found: list[Fault] = []
    for link in ("worker-0>worker-1", "worker-1>worker-0"):
        nth = draw(st.permutations(range(3)))
        after_us = LINK_US * draw(st.sampled_from([1, 4, 0]))
        at_us = LINK_US * draw(st.integers(0, 24))
        found += [Lose(link, nth[0]), Replay(link, 0, after_us), Replay(link, nth[1], 0)]
        found.append(Congest(link, at_us, 2 * LINK_US, draw(st.sampled_from([0.0, 0.01]))))
    return (*found, Fail("worker-1", LINK_US * draw(st.integers(8, 80)), LINK_US))


def own_place(number: int) -> Place:
    """Return a machine of its own for each worker of a chain."""
    return Place(0, number)


def chain_shape(config: JoinConfig) -> Shape:
    """Return what clusters for a chain are like."""
    ends = [(n, n + 1) for n in range(config.workers - 1)]
    links = [f"worker-{one}>worker-{other}" for pair in ends for one, other in (pair, pair[::-1])]
    return Shape(
        8 * UNIT_US, config.workers, streams=2, events=(12, 20), batches=(2,), links=tuple(links)
    )


# ------------------------------------------------------------------------------------- routers


@st.composite
def balanced_routers(draw: st.DrawFn, instances: int | None = None) -> GroupingConfig:
    """Draw routers that promise balance, for instances whose times differ or change.

    By default their number is drawn, too: 2 to 16.
    """
    n = draw(st.sampled_from([4, 16, 8, 2])) if instances is None else instances
    alike, unequal = (100,) * n, tuple([1_000 if i % 2 else 100 for i in range(n)])
    first, later = draw(st.sampled_from([(unequal, alike), (unequal, unequal), (alike, unequal)]))
    return GroupingConfig(
        n,
        times_us=((0, first), (1, later)),
        window_tuples=EACH * n // 3,
        hash_seed=draw(SEEDS),
    )


def router_shape(config: GroupingConfig) -> Shape:
    """Return what clusters for a router are like: keys drift, no tuple is a copy of another."""
    return Shape(
        10 * UNIT_US,
        config.instances,
        events=(2 * EACH * config.instances,),
        batches=(3,),
        copies=False,
        keys=(ranks(400), ranks(2_000), ranks(40)),
        zipf=(1.0, 1.5, 0.5),
        drifts=True,
        tunings=(GroupingTuning(measured=True), GroupingTuning()),
    )


def is_steady(plan: Plan) -> bool:
    """Return whether all sources draw their keys alike."""
    return len({(source.keys, source.zipf) for source in _sources(plan)}) == 1


def key_weights_of(plan: Plan) -> Callable[[Event], Mapping[str, int]]:
    """Return a function from a tuple of a plan to the weights by which its key was drawn."""
    weights = [
        {key: round(1e9 * rank**-source.zipf) for rank, key in enumerate(source.keys, 1)}
        for source in _sources(plan)
    ]
    return lambda event: weights[event.source_id // IDS_PER_SOURCE]


def _sources(plan: Plan) -> list[Source]:
    return [source for source in plan.sources if isinstance(source, Source)]
