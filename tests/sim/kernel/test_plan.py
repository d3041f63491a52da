"""Plans: values that print as Python, and refuse what makes no sense."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import pytest

import sim.kernel.disorder
import sim.kernel.distributions
import sim.kernel.link
import sim.kernel.plan
import sim.kernel.source
import sim.kernel.station
from model.vocabulary import Event
from sim.kernel.disorder import Gap, Straggler
from sim.kernel.distributions import Constant, Exponential
from sim.kernel.faults import Congest, Duplicate, Fail, Slow
from sim.kernel.link import HERE, Noise, Place, Tier, Tiers
from sim.kernel.plan import EPOCH_2020_US, Cluster, Plan, Worker, replay
from sim.kernel.source import Recording, Row, Source
from sim.kernel.trigger import EVERY_SECOND, At

ROW = Row(EPOCH_2020_US, EPOCH_2020_US + 5, "a", 1.0)


def build() -> Plan:
    return Plan(
        (Source(3, place=Place(1)), Recording((ROW,), relay=0)),
        relays=(Worker(speed=0.5),),
        relay_service=Exponential(5.0),
        cluster=Cluster((Worker(queue_limit=3, when_full="drop"), Worker(0.1)), Constant(2.0)),
        disturbances=(Gap(1, 2),),
        faults=(
            Slow("worker-0", 1, 2, 3.0),
            Congest("source-0>log", 1, 2),
            Duplicate("source-1", 0, 1),
        ),
        noise=Noise(loss=0.1, retry_us=5.0),
    )


def test_plans_are_values_that_print_as_python() -> None:
    assert build() == build()
    assert hash(build()) == hash(build())
    modules: tuple[Any, ...] = (
        sim.kernel.disorder,
        sim.kernel.distributions,
        sim.kernel.link,
        sim.kernel.plan,
        sim.kernel.source,
        sim.kernel.station,
        sim.kernel.faults,
        sim.kernel.trigger,
    )
    names = {name: value for module in modules for name, value in vars(module).items()}
    assert eval(repr(build()), names) == build()


def test_a_replay_starts_with_the_first_arrival() -> None:
    events = [Event(0, 7, "a", 500, 1.0, 900, "r"), Event(1, 3, "b", 400, 2.0, 950, "s")]
    plan = replay(events, "recorded")
    assert plan.epoch_us == 900
    assert plan.sources == (
        Recording((Row(500, 900, "a", 1.0, 7, "r"), Row(400, 950, "b", 2.0, 3, "s"))),
    )
    assert (plan.trigger, plan.flush) == (EVERY_SECOND, True)
    assert replay(events, "recorded", (1,), flush=False).trigger == At((1,))
    assert replay([], "nothing").sources == (Recording(()),)


def test_the_third_worker_of_two_is_like_the_first() -> None:
    cluster = Cluster((Worker(1.0), Worker(0.5)))
    assert [cluster.worker(number).speed for number in range(5)] == [1.0, 0.5, 1.0, 0.5, 1.0]


def test_a_way_has_the_tier_between_its_ends_and_needs_two() -> None:
    plan = Plan((), tiers=Tiers(rack=Tier(7.0, 8.0)))
    assert plan.way(HERE, Place(node=3)) == Tier(7.0, 8.0)
    assert plan.way(None, HERE) is None
    assert plan.way(HERE, None) is None


@dataclass(frozen=True)
class RoomTuning:
    """The tuning of an imaginary room."""

    pace: float = 1.0


def test_tuning_is_that_of_the_room_or_its_default() -> None:
    assert Plan(()).tuned(RoomTuning()) == RoomTuning()
    tuned = Plan((), tuning=RoomTuning(2.0))
    assert tuned.tuned(RoomTuning()).pace == 2.0
    with pytest.raises(ValueError, match=r"Plan.tuning is 'fast'; it must be a RoomTuning"):
        replace(tuned, tuning="fast").tuned(RoomTuning())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Source(-1), r"Source.events is -1; it must be between 0 and 999999999"),
        (lambda: Source(1, start_us=-1), r"Source.start_us is -1; it must be at least 0"),
        (lambda: Source(1, keys=()), r"Source.keys is \(\); it must be at least one key"),
        (lambda: Source(1, zipf=-1), r"Source.zipf is -1; it must be at least 0"),
        (lambda: Source(1, low=2, high=1), r"Source.high is 1; it must be between low, 2, and"),
        (lambda: Source(1, low=-(2**54)), r"Source.low is -18014398509481984; it must be"),
        (lambda: Source(1, bits=-1), r"Source.bits is -1; it must be at least 0"),
        (lambda: Recording((), bits=-1), r"Recording.bits is -1; it must be at least 0"),
        (lambda: Plan((), epoch_us=2**60), r"Plan.epoch_us is 1152921504606846976; it must be"),
        (lambda: Plan((Source(1, relay=0),)), r"relay of source 0 is 0; it must be one of the 0"),
        (
            lambda: Plan((Source(1, relay=-1),), (Worker(),)),
            r"relay of source 0 is -1; it must be one of the 1 relays",
        ),
        (lambda: Plan((), disturbances=(Gap(0, 0),)), r"gap.length_us is 0; it must be above 0"),
        (
            lambda: Plan((Source(1),), disturbances=(Straggler(1),)),
            r"straggler.source is 1; it must be a source, 0..0",
        ),
        (lambda: Plan((), noise=Noise(loss=-0.1)), r"Noise.loss is -0.1; it must be"),
        (lambda: Plan((), tiers=Tiers(node=Tier(1, 0))), r"Tier.bandwidth_mbps is 0; it must be"),
        (lambda: Plan((), faults=(Fail("w", 1, 0),)), r"fail.for_us is 0; it must be above 0"),
        (
            lambda: Plan((Source(1),), faults=(Duplicate("source-1", 1, 1),)),
            r"target of duplicate is 'source-1'; it must be one of source-0",
        ),
        (lambda: Source(1, delay=Constant(-1)), r"Constant.us is -1; it must be finite"),
        (lambda: Cluster(()), r"Cluster.workers is \(\); it must be at least one worker"),
        (lambda: Cluster(tuple_bytes=0), r"Cluster.tuple_bytes is 0; it must be above 0"),
        (
            lambda: Cluster(noise=Noise()),
            r"Cluster.noise.retry_us is None; it must be a time: a cluster's links lose nothing",
        ),
        (lambda: Worker(speed=inf), r"Worker.speed is inf; it must be finite and above 0"),
    ],
)
def test_bad_values_are_named(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message) as refusal:
        build()
    assert "\n" not in str(refusal.value)
