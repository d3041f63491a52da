"""The simulated cluster decides what Spark is given.

A promise that is checked on drawn clusters says something about timing only if timing matters. So
each cluster is run again with the average speed on all workers, without places and links, and
without faults. Spark is then given another input if the order of arrival, what is shed, the
micro-batches, decisions, measured service times or kills change. Times of arrival do not count.

Everything runs in process: Spark need not run to know what it would be given.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from model.vocabulary import Workload
from properties import profiles
from properties.promised import REACHED
from sim.kernel.plan import Plan
from straggler.rooms import find_room
from straggler.strategies import families, queries
from straggler.strategies.packs import ClusterPack, simulate_case
from straggler.strategies.timed_cases import SeededPlan
from straggler.strategies.troubled import with_workers

EFFORT = profiles.choose(1, nightly=4)
"""Factor for the number of clusters of each room, which is 12 or more by day."""


# ----------------------------------------------------------------------------------- variations


def with_equal_speeds(plan: Plan) -> Plan:
    """Return a plan whose workers all have the average speed."""
    return with_workers(plan, speed=fmean(worker.speed for worker in plan.cluster.workers))


def without_places(plan: Plan) -> Plan:
    """Return a plan without places, so that nothing needs a link, and without faults of links."""
    return replace(
        with_workers(plan, place=None),
        sources=tuple([replace(source, place=None) for source in plan.sources]),
        faults=tuple([fault for fault in plan.faults if ">" not in fault[0]]),
    )


VARIATIONS: Mapping[str, tuple[Callable[[Plan], Plan], float]] = {
    "equal speeds": (with_equal_speeds, 0.8),
    "no places": (without_places, 0.6),
    "no faults": (lambda plan: replace(plan, faults=()), 0.8),
}
"""Change of a plan, and the smallest share of clusters in which it has to matter, by name."""


# ---------------------------------------------------------------------------------------- rooms


EACH = queries.EACH // 8
"""Number of tuples of an instance in three windows."""


ROOMS: Mapping[str, tuple[int, Sequence[families.Packs]]] = {
    "slack": (4, (families.slack(families.TIMED), families.covered(0.9), families.covered())),
    "slack, long streams": (3, (families.long_streams(0.9),)),
    "watermark": (12, (families.watermark(families.TIMED),)),
    "join": (2, (families.CHAINS,)),
    "grouping": (3, (families.light(EACH), families.shared(EACH), families.drifting(EACH))),
    "script": (6, (families.scripts(),)),
}
"""Number of examples in profile ``dev``, and families of each room."""
FAULTLESS = "slack, long streams"
"""Entry of :data:`ROOMS` in which nothing fails."""


def input_of(workload: Workload) -> tuple[object, ...]:
    """Return what Spark is given, without times of arrival."""
    order = [(event.stream, event.source_id) for event in workload.arrivals]
    return order, workload.cuts, workload.config, workload.faults


@pytest.mark.parametrize("room", ROOMS)
def test_the_cluster_decides_what_spark_is_given(room: str, request: pytest.FixtureRequest) -> None:
    examples, of_room = ROOMS[room]
    found = Counter[str]()

    @seed(0)  # The test measures strategies: the same clusters each time, in every profile.
    @settings(max_examples=examples * EFFORT, phases=[Phase.generate])
    @given(drawn=st.tuples(*of_room))
    def measure(drawn: tuple[ClusterPack, ...]) -> None:
        for pack in drawn:
            for config, case in zip(pack.configs, pack.cases, strict=True):
                found.update(["clusters", *changed_by(pack.room, config, case)])

    measure()
    request.node.user_properties.append((REACHED, dict(found)))
    shares = {
        name: found[name] / found["clusters"]
        for name in VARIATIONS
        if room != FAULTLESS or name != "no faults"
    }
    low = {name: share for name, share in shares.items() if share < VARIATIONS[name][1]}
    assert not low, f"{low} of {found['clusters']} clusters; all shares: {shares}"


def changed_by(room: str, query: Any, case: SeededPlan) -> list[str]:
    """Return the variations of a cluster after which Spark is given another input."""
    run, config = simulate_case(room, query, case), query.to_json()
    given, simulate = input_of(run.workload), find_room(room).timed.simulate_plan
    varied = {name: change(run.plan) for name, (change, _) in VARIATIONS.items()}
    return [
        name
        for name, plan in varied.items()
        if plan != run.plan and input_of(simulate(plan, config, case.seed).workload) != given
    ]
