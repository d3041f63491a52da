"""Hypothesis strategies: queries whose promises are checked on Spark, with matching clusters."""

from collections.abc import Callable, Mapping, Sequence

from hypothesis import strategies as st

from model.vocabulary import Event, GroupingConfig, JoinConfig, SlackConfig, WatermarkConfig
from model.vocabulary.join import And, Apart, Band, Equi, Ineq, Predicate
from sim.grouping.cluster import GroupingTuning
from sim.kernel.plan import Plan
from sim.kernel.source import IDS_PER_SOURCE, Source
from straggler.strategies.clusters import SEEDS, Shape

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
        lateness_us=draw(st.sampled_from([6 * UNIT_US, None, 0, 30 * UNIT_US])),
    )


def chain_shape(config: JoinConfig) -> Shape:
    """Return what clusters for a chain are like."""
    ends = [(n, n + 1) for n in range(config.workers - 1)]
    links = [f"worker-{one}>worker-{other}" for pair in ends for one, other in (pair, pair[::-1])]
    return Shape(
        8 * UNIT_US, config.workers, streams=2, events=(12, 20), batches=(2,), links=tuple(links)
    )


# ------------------------------------------------------------------------------------- routers


def balanced_routers(instances: int, senders: Sequence[int]) -> st.SearchStrategy[GroupingConfig]:
    """Draw routers that promise balance, for instances whose times change and then differ."""
    alike, slower = (100,) * instances, tuple([1_000 if i % 2 else 100 for i in range(instances)])
    faster = tuple([100 if i % 2 else 1_000 for i in range(instances)])
    return st.builds(
        lambda first, senders, seed: GroupingConfig(
            instances,
            times_us=((0, first), (1, slower)),
            senders=senders,
            window_tuples=EACH * instances // 3,
            hash_seed=seed,
        ),
        st.sampled_from([alike, faster]),
        st.sampled_from(senders),
        SEEDS,
    )


def router_shape(config: GroupingConfig) -> Shape:
    """Return what clusters for a router are like: keys are skewed, no tuple is a copy of another.

    The times of a window may be those that instances took in the window before.
    """
    return Shape(
        10 * UNIT_US,
        config.instances,
        events=(2 * EACH * config.instances,),
        batches=(3,),
        copies=False,
        keys=(ranks(400), ranks(2_000), ranks(40)),
        zipf=(1.0, 1.5, 0.5),
        tunings=(GroupingTuning(measured=True), GroupingTuning()),
    )


def light_shape(config: GroupingConfig) -> Shape:
    """Return what clusters for a router are like if no key is heavy, and times are as configured.

    Only candidates that are drawn by speed then balance unequal instances.
    """
    few_tuples = (ranks(2_000), ranks(1_000))
    return router_shape(config)._replace(keys=few_tuples, zipf=(0.0, 0.5), tunings=(None,))


def drifting_shape(config: GroupingConfig) -> Shape:
    """Return what clusters for a router are like if its keys may drift."""
    return router_shape(config)._replace(drifts=True)


def ranks(keys: int) -> tuple[str, ...]:
    """Return that many keys."""
    return tuple([f"k{number}" for number in range(keys)])


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
