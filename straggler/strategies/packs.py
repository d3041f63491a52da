"""Packs of clusters that run together in one job, each with its query, and their simulation."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from math import ceil
from typing import Any, NamedTuple

from hypothesis import assume
from hypothesis import strategies as st

from sim.kernel.run import TimedRun
from sim.kernel.source import Source
from sim.kernel.trigger import EveryTuples
from straggler.rooms import find_room
from straggler.strategies import clusters
from straggler.strategies.clusters import REGIONS, Shape
from straggler.strategies.scales import SCALES, USUAL
from straggler.strategies.timed_cases import SeededPlan

BATCHES_MAX = 3
"""Most micro-batches of a cluster, because Spark takes long for each, however small."""


class ClusterPack(NamedTuple):
    """Clusters of one room that run together, each with its query."""

    room: str
    configs: tuple[Any, ...]
    cases: tuple[SeededPlan, ...]

    def __repr__(self) -> str:
        """Return one line, because the plans would fill pages."""
        return f"<{len(self.cases)} clusters for {self.configs[0]}>"


@st.composite
def packs(
    draw: st.DrawFn,
    name: str,
    size: int,
    configs: st.SearchStrategy[Any] | Sequence[st.SearchStrategy[Any]],
    shape: Callable[[Any], Shape],
    regions: Sequence[str] = REGIONS,
    scales: Sequence[str] = (USUAL,),
) -> ClusterPack:
    """Draw ``size`` clusters, each from one of ``regions`` and of ``scales`` in turn.

    All of them share one query drawn from ``configs``. If there are several strategies, each
    cluster has a query of its own, drawn from these strategies in turn.
    """
    # Hypothesis tries the simplest example first, in which all clusters of a region are alike.
    assume(draw(st.integers(0, 7)))
    if isinstance(configs, st.SearchStrategy):
        chosen = [draw(configs)] * size
    else:
        chosen = [draw(configs[number % len(configs)]) for number in range(size)]
    turn = draw(st.integers(0, len(scales) - 1))  # Each region meets each scale.
    cases = []
    for number, config in enumerate(chosen):
        scaled = SCALES[scales[(number + turn) % len(scales)]](shape(config))
        region = regions[number % len(regions)]
        drawn = clusters.cases(scaled, region)
        if region == "failing":
            drawn = drawn.filter(partial(_is_killed_with_state, name, config))
        cases.append(draw(drawn))
    return ClusterPack(name, tuple(chosen), tuple(cases))


def _is_killed_with_state(room: str, config: Any, case: SeededPlan) -> bool:
    """Return whether a worker fails behind the first micro-batch and before the flush."""
    workload = simulate_case(room, config, case).workload
    return any(0 < each.at < len(list(workload.batches())) for each in workload.faults)


def join_packs(*packs: ClusterPack) -> ClusterPack:
    """Return one pack of all clusters, for a room whose queries may differ in a pack."""
    configs = chain.from_iterable(pack.configs for pack in packs)
    cases = chain.from_iterable(pack.cases for pack in packs)
    return ClusterPack(packs[0].room, tuple(configs), tuple(cases))


@lru_cache(4)  # A draw simulates a cluster that fails, and the property runs it, too.
def simulate_case(room: str, query: Any, case: SeededPlan) -> TimedRun:
    """Simulate a cluster, with a coarser trigger if its own makes too many micro-batches."""
    of_room, config, plan = find_room(room), query.to_json(), case.plan
    sheds = any(worker.when_full == "drop" for worker in plan.cluster.workers)
    if isinstance(plan.trigger, EveryTuples) and not sheds:  # nearly all that is sent arrives
        sent = sum(each.events for each in plan.sources if isinstance(each, Source))
        if plan.trigger.tuples * BATCHES_MAX < sent:
            case = _coarser(case, sent)
    run: TimedRun = of_room.timed.simulate_plan(case.plan, config, case.seed)
    if len(list(run.workload.batches())) > BATCHES_MAX:
        case = _coarser(case, len(run.workload.arrivals))
        run = of_room.timed.simulate_plan(case.plan, config, case.seed)
    return run


def _coarser(case: SeededPlan, tuples: int) -> SeededPlan:
    """Return the case with a trigger that makes few enough micro-batches of so many tuples."""
    trigger = EveryTuples(ceil(tuples / BATCHES_MAX))
    return SeededPlan(replace(case.plan, trigger=trigger), case.seed)
