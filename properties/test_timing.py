"""The simulated cluster decides what Spark is given.

A promise that is checked on drawn clusters says something about timing only if timing matters. So
each cluster is run again with the average speed on all workers, without places and links, and
without faults. Spark is then given another input if the order of arrival, what is shed, the
micro-batches, decisions, measured service times or kills change. Times of arrival do not count.

Everything runs in process: Spark need not run to know what it would be given.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import fmean
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from model.vocabulary import ScriptConfig, Workload
from properties import families, profiles
from properties.packs import ClusterPack, simulate_case
from properties.promised import REACHED
from sim.kernel.plan import Plan
from sim.script.host import ScriptTuning
from straggler.judging.plan_counterexamples import SeededPlan
from straggler.rooms import find_room
from straggler.strategies import clusters, queries
from straggler.strategies import script as scripts
from straggler.strategies.clusters import REGIONS, Shape

EFFORT = profiles.choose(1, nightly=4)
"""Number of clusters for each one by day, when 24 of each room or more are drawn."""


# ----------------------------------------------------------------------------------- variations


def with_equal_speeds(plan: Plan) -> Plan:
    """Return a plan whose workers all have the average speed."""
    workers = plan.cluster.workers
    speed = fmean(worker.speed for worker in workers)
    equal = tuple([replace(worker, speed=speed) for worker in workers])
    return replace(plan, cluster=replace(plan.cluster, workers=equal))


def without_places(plan: Plan) -> Plan:
    """Return a plan in which everything is where the log is, without faults of links."""
    return replace(
        plan,
        sources=tuple([replace(source, place=None) for source in plan.sources]),
        relays=tuple([replace(relay, place=None) for relay in plan.relays]),
        cluster=replace(
            plan.cluster,
            workers=tuple([replace(worker, place=None) for worker in plan.cluster.workers]),
        ),
        faults=tuple([fault for fault in plan.faults if ">" not in fault[0]]),
    )


def without_faults(plan: Plan) -> Plan:
    """Return a plan in which nothing fails."""
    return replace(plan, faults=())


class Variation(NamedTuple):
    """A change of a plan, and the smallest share of clusters in which it has to matter."""

    change: Callable[[Plan], Plan]
    share: float


VARIATIONS: Mapping[str, Variation] = {
    "equal speeds": Variation(with_equal_speeds, 0.8),
    "no places": Variation(without_places, 0.6),
    "no faults": Variation(without_faults, 0.8),
}


# ---------------------------------------------------------------------------------------- rooms


def busy_shape(config: ScriptConfig) -> Shape:
    """Return what clusters for scripts are like."""
    busy = ScriptTuning("by-unit", filters=False, result_us=scripts.SCALE_US / 4)
    keys = (tuple(sorted(config.asked_for)),)  # Scripts shed nothing else.
    return Shape(scripts.SCALE_US, config.workers, events=(40,), keys=keys, tunings=(busy,))


@st.composite
def script_packs(draw: st.DrawFn) -> ClusterPack:
    """Draw a cluster of each region for scripts that three workers share."""
    asked = scripts.configs().filter(lambda each: bool(each.asked_for))
    config = replace(draw(asked), workers=3)
    cases = [draw(clusters.cases(busy_shape(config), each)) for each in REGIONS]
    return ClusterPack("script", (config,) * len(cases), tuple(cases))


EACH = queries.EACH // 8
"""Tuples of an instance in three windows."""


class Drawn(NamedTuple):
    """Draws for a room in one example, and the number of examples in profile ``dev``."""

    families: tuple[st.SearchStrategy[ClusterPack], ...]
    examples: int


ROOMS: Mapping[str, Drawn] = {
    "slack": Drawn((families.slack(families.TIMED), families.covered(0.9), families.covered()), 4),
    "watermark": Drawn((families.watermark(families.TIMED),), 6),
    "join": Drawn((families.CHAINS,), 4),
    "grouping": Drawn((families.light(EACH), families.shared(EACH), families.drifting(EACH)), 3),
    "script": Drawn((script_packs(),), 6),
}
"""Families of each room. No promise on Spark has clusters of scripts; theirs are busy."""


def input_of(workload: Workload) -> tuple[object, ...]:
    """Return what Spark is given, without times of arrival."""
    order = [(event.stream, event.source_id) for event in workload.arrivals]
    return order, workload.cuts, workload.config, workload.faults


@pytest.mark.parametrize("room", ROOMS)
def test_the_cluster_decides_what_spark_is_given(room: str, request: pytest.FixtureRequest) -> None:
    drawn = ROOMS[room]
    found = Counter[str]()

    @seed(0)  # The test measures strategies: the same clusters each time, in every profile.
    @settings(max_examples=drawn.examples * EFFORT, phases=[Phase.generate])
    @given(drawn=st.tuples(*drawn.families))
    def measure(drawn: tuple[ClusterPack, ...]) -> None:
        for pack in drawn:
            for config, case in zip(pack.configs, pack.cases, strict=True):
                found.update(["clusters", *changed_by(room, config, case)])

    measure()
    request.node.user_properties.append((REACHED, dict(found)))
    shares = {name: found[name] / found["clusters"] for name in VARIATIONS}
    low = {name: share for name, share in shares.items() if share < VARIATIONS[name].share}
    assert not low, f"{low} of {found['clusters']} clusters; all shares: {shares}"


def changed_by(room: str, query: Any, case: SeededPlan) -> list[str]:
    """Return the variations of a cluster after which Spark is given another input."""
    (_, config, case), run = simulate_case(room, query, case)
    given, simulate = input_of(run.workload), find_room(room).simulate_plan
    varied = {name: each.change(case.plan) for name, each in VARIATIONS.items()}
    return [
        name
        for name, plan in varied.items()
        if plan != case.plan and input_of(simulate(plan, config, case.seed).workload) != given
    ]
