"""Settings of a cluster: what text becomes, and what is refused."""

import pytest

from model.vocabulary.settings import pick, read_settings, settings_of
from sim.clusters import STATED, ClusterSettings
from sim.kernel.distributions import Constant, Exponential
from sim.kernel.faults import Fail, Slow
from sim.kernel.link import HERE, Noise, Place
from sim.kernel.plan import Cluster, Plan, Worker


def settings_of_cluster(**texts: str) -> ClusterSettings:
    return pick(ClusterSettings, read_settings(texts, settings_of(ClusterSettings)))


def cluster(**settings: str) -> Cluster:
    return settings_of_cluster(**settings).cluster


def test_the_default_has_a_fast_and_a_slow_worker_at_the_log() -> None:
    assert cluster() == Cluster((Worker(), Worker(0.5)), Exponential(5_000.0))


def test_every_setting_reaches_the_cluster() -> None:
    found = cluster(
        speeds="2, 0.5",
        tiers="process,node, rack,elsewhere",
        queue_limit="7",
        when_full="drop",
        service="constant",
        service_us="40",
        tuple_bytes="10",
        loss="0.25",
        retry_us="300",
    )
    places = (HERE, Place(process=2), Place(node=3), Place(rack=4))
    assert found == Cluster(
        tuple(
            [
                Worker(speed, queue_limit=7, when_full="drop", place=place)
                for speed, place in zip((2.0, 0.5, 2.0, 0.5), places, strict=True)
            ]
        ),
        Constant(40.0),
        10,
        Noise(0.25, 300.0),
    )


def test_tiers_are_as_far_from_the_log_as_they_say() -> None:
    plan = Plan((), cluster=cluster(tiers="none,process,node,rack,elsewhere", speeds="1"))
    ways = [plan.way(plan.log_place, worker.place) for worker in plan.cluster.workers]
    assert ways == [None, *plan.tiers]
    # Each has a place of its own: no two of them share one that is nearer.
    one, other = cluster(tiers="node,node", speeds="1").workers
    assert plan.way(one.place, other.place) == plan.tiers.node


def test_faults_are_a_schedule_or_none() -> None:
    given = settings_of_cluster(faults="slow worker-1 20 5 4; fail worker-0 9 1")
    assert given.schedule == (Slow("worker-1", 20, 5, 4.0), Fail("worker-0", 9, 1))
    assert settings_of_cluster().schedule == ()


def test_the_stated_cluster_has_unequal_workers_and_two_tiers() -> None:
    plan = Plan((), cluster=STATED)
    assert len({worker.speed for worker in STATED.workers}) == 2
    ways = {plan.way(plan.log_place, worker.place) for worker in STATED.workers}
    assert ways == {plan.tiers.node, plan.tiers.rack}


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("speeds", "1,0", "speeds is 0.0; it must be a finite number > 0"),
        ("speeds", "1,,2", "speeds is ''; it must be a finite number"),
        ("tiers", "node,moon", "tiers is 'moon'; it must be one of none, process, node, rack, els"),
        ("queue_limit", "-1", "queue_limit is -1; it must be an integer >= 0"),
        ("queue_limit", "few", "queue_limit is 'few'; it must be an integer >= 0, or none"),
        ("when_full", "explode", "when_full is 'explode'; it must be one of block, drop"),
        ("service", "slow", "service is 'slow'; it must be one of exponential, constant"),
        ("service_us", "-1", "service_us is -1.0; it must be a finite number > 0"),
        ("tuple_bytes", "0", "tuple_bytes is 0; it must be an integer > 0"),
        ("loss", "1", "Noise.loss is 1.0; it must be below 1, or no retry ever arrives"),
        ("loss", "-0.1", "Noise.loss is -0.1; it must be between 0 and 1"),
        ("retry_us", "0", "Noise.retry_us is 0.0; it must be finite and above 0"),
    ],
)
def test_impossible_values_are_refused(key: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as refusal:
        cluster(**{key: text})
    assert str(refusal.value).startswith(message)


def test_an_unknown_fault_is_refused() -> None:
    with pytest.raises(ValueError, match=r"there is no fault 'explode'; there are pause, slow"):
        _ = settings_of_cluster(faults="explode worker-0 1 2").schedule
