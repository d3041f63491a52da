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

from model.vocabulary import Workload
from model.vocabulary.join_load import LoadRules
from properties import profiles
from properties.promised import REACHED
from sim.grouping.cluster import GroupingTuning
from sim.join.tuning import ChainTuning, Control
from sim.kernel.plan import Plan
from sim.script.host import ScriptTuning
from straggler.judging.plan_counterexamples import SeededPlan
from straggler.rooms import find_room
from straggler.strategies import clusters, queries
from straggler.strategies import script as scripts
from straggler.strategies.clusters import REGIONS, Shape

EXAMPLES = 9 if profiles.times() == 1 else 17
"""Number of times that clusters of all regions are drawn: 63 clusters of each room in profile
``dev``, 119 in the others."""
FOLLOWING = ChainTuning(
    control=Control(rules=LoadRules(0.3, 0.65, 0.65, 0, 0, most=8, smoothing=1.0), every_us=20_000),
    intake_us=500,
    hint_us=50_000,
    commit_us=500,
)
"""Tuning of a chain that follows its load; it looks as often for arrivals as they come."""


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


def chain_shape(config: Any) -> Shape:
    """Return what clusters for a chain that follows its load are like."""
    return queries.chain_shape(config)._replace(
        tunings=(FOLLOWING,), batches=(8,), numbers=(2,), events=(12,)
    )


def router_shape(config: Any) -> Shape:
    """Return what clusters for a router are like, with short streams."""
    measured = (GroupingTuning(measured=True),)
    return queries.router_shape(config)._replace(events=(100,), sheds=True, tunings=measured)


def script_shape(config: Any) -> Shape:
    """Return what clusters for scripts are like."""
    busy = ScriptTuning("by-unit", filters=False, result_us=scripts.SCALE_US / 4)
    keys = (tuple(sorted(config.asked_for)),)  # Scripts shed nothing else.
    return Shape(scripts.SCALE_US, config.workers, events=(40,), keys=keys, tunings=(busy,))


ROOMS: Mapping[str, tuple[st.SearchStrategy[Any], Callable[[Any], Shape]]] = {
    "slack": (queries.corrected_queries(), queries.windowed_shape),
    "watermark": (queries.corrected_watermarks(), queries.windowed_shape),
    "join": (queries.join_queries(), chain_shape),
    "grouping": (
        st.one_of(*(queries.balanced_routers(n, (1, 2)) for n in (4, 16, 8, 2))),
        router_shape,
    ),
    "script": (
        scripts.configs()
        .filter(lambda each: each.asked_for)
        .map(lambda each: replace(each, workers=3)),
        script_shape,
    ),
}
"""Queries of each room, and what their clusters are like."""


def input_of(workload: Workload) -> tuple[object, ...]:
    """Return what Spark is given, without times of arrival."""
    order = [(event.stream, event.source_id) for event in workload.arrivals]
    return order, workload.cuts, workload.config, workload.faults


@pytest.mark.parametrize("room", ROOMS)
def test_the_cluster_decides_what_spark_is_given(room: str, request: pytest.FixtureRequest) -> None:
    configs, shape = ROOMS[room]
    found = Counter[str]()

    @seed(0)  # The test measures strategies: the same clusters each time, in every profile.
    @settings(max_examples=EXAMPLES, phases=[Phase.generate])
    @given(data=st.data())
    def measure(data: st.DataObject) -> None:
        config = data.draw(configs)
        for region in REGIONS:
            case = data.draw(clusters.cases(shape(config), region))
            found.update(["clusters", *changed_by(room, config, case)])

    measure()
    request.node.user_properties.append((REACHED, dict(found)))
    shares = {name: found[name] / found["clusters"] for name in VARIATIONS}
    low = {name: share for name, share in shares.items() if share < VARIATIONS[name].share}
    assert not low, f"{low} of {found['clusters']} clusters; all shares: {shares}"


def changed_by(room: str, config: Any, case: SeededPlan) -> list[str]:
    """Return the variations of a cluster after which Spark is given another input."""
    settings_of = config.to_json()

    def simulate(plan: Plan) -> tuple[object, ...]:
        return input_of(find_room(room).simulate_plan(plan, settings_of, case.seed).workload)

    given = simulate(case.plan)
    return [name for name, each in VARIATIONS.items() if simulate(each.change(case.plan)) != given]
