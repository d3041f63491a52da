"""Clusters in trouble: workers that fill up and fail, in every region, for operators of Spark."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, Literal, TypeVar, get_args

from hypothesis import strategies as st

from model.vocabulary import JoinConfig
from model.vocabulary.script.config import ScriptConfig
from model.vocabulary.script.tree import Arithmetic, Sensor, Statement, Window, Workflow
from sim.join.tuning import ChainTuning
from sim.kernel.faults import Duplicate, Fail
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import Plan
from sim.kernel.source import Source
from sim.kernel.trigger import At
from sim.script.host import ScriptTuning
from straggler.strategies.clusters import REGIONS
from straggler.strategies.grouping import replaying
from straggler.strategies.join import clusters_of_chains
from straggler.strategies.scales import USUAL
from straggler.strategies.script import timed_cases as script_cases
from straggler.strategies.streams import UNIT_US, arrivals, timings
from straggler.strategies.timed_cases import SeededPlan, TimedCase

WhenFull = Literal["block", "drop"]
ConfigT = TypeVar("ConfigT")
ValueT = TypeVar("ValueT")
CaseT = TypeVar("CaseT")
CHAIN_EVENTS_MAX = 72
"""Most tuples of a chain, because a few chains of twice as many took half of all the time."""
SCALE_OF: Mapping[str | None, str] = {
    "redelivered": "wide identities",
    "bursty": "large values",
    "lossy": "years",
    "slow": "microseconds",
}
"""Scale of the streams of a windowed room in a region; others have the usual one."""


def with_workers(plan: Plan, **changes: Any) -> Plan:
    """Return a plan with the same changes of all workers."""
    workers = tuple([replace(worker, **changes) for worker in plan.cluster.workers])
    return replace(plan, cluster=replace(plan.cluster, workers=workers))


def crowded(plan: Plan, when_full: WhenFull) -> Plan:
    """Return a plan whose workers have room for one tuple, and block or drop all others."""
    return with_workers(plan, queue_limit=1, when_full=when_full)


def in_crowded(case: TimedCase[ConfigT], when_full: WhenFull) -> TimedCase[ConfigT]:
    """Return the case with workers that have room for one tuple, and block or drop all others."""
    plan = crowded(case.timing.plan, when_full)
    return case._replace(timing=case.timing._replace(plan=plan))


def in_all_regions(
    timed: Callable[[str | None], st.SearchStrategy[TimedCase[ConfigT]]],
) -> st.SearchStrategy[Sequence[TimedCase[ConfigT]]]:
    """Draw a case in each region, and two whose workers have room for one tuple.

    Full workers block in one of the two, and drop tuples in the other. So each kind of trouble is
    met in every example, whatever Hypothesis draws.
    """
    full = [timed(None).map(partial(in_crowded, when_full=each)) for each in get_args(WhenFull)]
    return st.tuples(*map(timed, REGIONS), *full)


def all_of(
    values: Iterable[ValueT], strategy: Callable[[ValueT], st.SearchStrategy[CaseT]]
) -> st.SearchStrategy[Sequence[CaseT]]:
    """Draw a case of each value of a choice, so that each value is met in every example."""
    return st.tuples(*map(strategy, values))


@st.composite
def windowed(
    draw: st.DrawFn, configs: st.SearchStrategy[Any], region: str | None
) -> TimedCase[Any]:
    """Draw a query and its cluster; some sources send tuples that the query refuses."""
    config = draw(configs)
    scale = SCALE_OF.get(region, USUAL)
    plan, seed = draw(timings(config, region, scale))
    if region == "calm" or (region is None and draw(st.booleans())):
        first, *others = draw(arrivals(config))
        plan = replaying([first._replace(value=inf), *others], plan)
    return TimedCase(config, SeededPlan(plan, seed))


@st.composite
def troubled(
    draw: st.DrawFn, calm: st.SearchStrategy[TimedCase[Any]], region: str | None
) -> TimedCase[Any]:
    """Let workers fail soon after arrivals, when they have something to lose, and fill up soon."""
    config, (plan, seed) = draw(calm)
    if region == "slow" or draw(st.sampled_from([False, True, False])):
        plan = crowded(plan, "drop")
    workers, fails = _workers(config), []
    events = simulate_arrivals(plan, seed).events
    for _ in range(draw(st.sampled_from([2] if region == "failing" else [1, 0, 2]))):
        event = events[draw(st.integers(0, 15)) * (len(events) - 1) // 15] if events else None
        worker = f"worker-{draw(st.integers(0, 15)) % workers}"
        if event is not None:
            at_us = event.arrival_us - plan.epoch_us + UNIT_US // 2
            fails.append(Fail(worker, at_us, 4 * UNIT_US))
    return TimedCase(config, SeededPlan(replace(plan, faults=(*plan.faults, *fails)), seed))


def _workers(config: Any) -> int:
    """Return the number of workers of a query, which rooms call by different names."""
    for name in ("workers", "tasks", "instances"):
        if hasattr(config, name):
            return int(getattr(config, name))
    raise TypeError(type(config))


def _with_tuning(plan: Plan, default: Any, **changes: object) -> Plan:
    return replace(plan, tuning=replace(plan.tuned(default), **changes))


@st.composite
def scripts(draw: st.DrawFn, region: str | None) -> TimedCase[Any]:
    """Draw scripts with any placement; many workers read some results.

    A tuple comes again after the end of its micro-batch, so workers must remember identities.
    """
    config, (plan, seed) = draw(script_cases())
    # A machine of the harness gets the arrivals of its own sensors, and hears of no silence.
    config = replace(config, idle_after_us=None)
    if region == "late" or draw(st.sampled_from([False, True])):
        config = replace(config, workflows=(*config.workflows, _read_by_all(config)), workers=4)
        plan = _with_tuning(plan, ScriptTuning(), placement="by-unit")
    if isinstance(plan.trigger, At) and plan.trigger.cuts:
        cut = draw(st.sampled_from(plan.trigger.cuts))
        again = Duplicate("source-0", max(0, cut - 1), UNIT_US // 4)
        plan = replace(plan, faults=(*plan.faults, again))
    return TimedCase(config, SeededPlan(plan, seed))


def _read_by_all(config: ScriptConfig) -> Workflow:
    """Return a workflow whose sums every worker with a sensor reads."""
    first, *others = [Sensor(name) for name, _ in config.sensors]
    sums = Window("sum", first, 4, 4)
    read = [Arithmetic("+", sums, other) for other in others]
    return Workflow("read by all", tuple([Statement(f"N{n}", each) for n, each in enumerate(read)]))


def _chain(drawn: TimedCase[JoinConfig]) -> TimedCase[Any]:
    """Return a short cluster with few hints, and with a flush, so that every pair is due."""
    plan, seed = drawn.timing
    rarely_us, each = 4 * UNIT_US, CHAIN_EVENTS_MAX // len(plan.sources)
    control = replace(plan.tuned(ChainTuning()).control, every_us=rarely_us)
    plan = _with_tuning(plan, ChainTuning(), control=control, hint_us=rarely_us)
    sources = [
        replace(source, events=min(source.events, each))
        for source in plan.sources
        if isinstance(source, Source)
    ]
    shorter = replace(plan, sources=tuple(sources), flush=True)
    return TimedCase(drawn.config, SeededPlan(shorter, seed))


def chains(region: str | None) -> st.SearchStrategy[TimedCase[Any]]:
    """Draw a short cluster of a chain in a region, or in any."""
    return clusters_of_chains(region).map(_chain)


@st.composite
def chains_everywhere(draw: st.DrawFn) -> Sequence[TimedCase[JoinConfig]]:
    """Draw clusters of each region, and some whose workers drop what finds them busy."""
    full = [draw(clusters_of_chains(each)) for each in ("bursty", "slow")]
    dropping = [in_crowded(case, "drop") for case in full]
    return (*draw(all_of(REGIONS, clusters_of_chains)), *dropping)
