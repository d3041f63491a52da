"""Plans: values that come back from JSON and from Python, and refuse what makes no sense."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from model.vocabulary import Event
from sim.kernel.disorder import Burst, Gap, Regime, Straggler
from sim.kernel.distributions import (
    Constant,
    Exponential,
    Lognormal,
    Mixture,
    Pareto,
    Sum,
    Uniform,
)
from sim.kernel.faults import Congest, Duplicate, Fail, Lose, Pause, Replay, Slow
from sim.kernel.link import Noise, Place, Tier, Tiers
from sim.kernel.plain import from_plain, to_plain
from sim.kernel.plan import EPOCH_2020_US, Cluster, Plan, Worker, replay
from sim.kernel.source import Recording, Row, Source
from sim.kernel.trigger import EVERY_SECOND, At, Every, EveryTuples
from sim.windows.cluster import WindowTuning


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
        (lambda: Source(1, keys=()), r"Source.keys is \(\); it must be at least one key"),
        (lambda: Source(1, low=2, high=1), r"Source.high is 1; it must be between low, 2, and"),
        (lambda: Source(1, bits=-1), r"Source.bits is -1; it must be at least 0"),
        (lambda: Plan((), epoch_us=2**60), r"Plan.epoch_us is 1152921504606846976; it must be"),
        (
            lambda: Plan((Source(1, relay=-1),), (Worker(),)),
            r"relay of source 0 is -1; it must be one of the 1 relays",
        ),
        (
            lambda: Plan((Source(1),), disturbances=(Straggler(1),)),
            r"straggler.source is 1; it must be a source, 0..0",
        ),
        (lambda: Plan((), tiers=Tiers(node=Tier(1, 0))), r"Tier.bandwidth_mbps is 0; it must be"),
        (
            lambda: Plan((Source(1),), faults=(Duplicate("source-1", 1, 1),)),
            r"target of duplicate is 'source-1'; it must be one of source-0",
        ),
        (lambda: Cluster(()), r"Cluster.workers is \(\); it must be at least one worker"),
        (
            lambda: Cluster(noise=Noise()),
            r"Cluster.noise.retry_us is None; it must be a time: a cluster's links lose nothing",
        ),
    ],
)
def test_bad_values_are_named(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message) as refusal:
        build()
    assert "\n" not in str(refusal.value)


# ------------------------------------------------------------------------------------ as plain data


SOURCE = Source(
    events=5,
    interval=Exponential(7.0),
    delay=Sum((Lognormal(3.0, 0.5), Mixture(0.1, Uniform(1.0, 2.0), Pareto(2.0, 1.5)))),
    in_order=True,
    keys=("ä", ""),
    zipf=0.5,
    place=Place(rack=1),
    relay=0,
)
ROWS = (
    Row(EPOCH_2020_US, EPOCH_2020_US + 9, "a", -1.5),
    Row(EPOCH_2020_US + 1, EPOCH_2020_US + 9, "b", 0.1, 7, "s"),
)
EVERYTHING = Plan(
    (SOURCE, Recording(ROWS)),
    (Worker(0.5, 2, 3, "drop", Place(0, 1, 2)),),
    Exponential(9.0),
    Cluster((Worker(0.1),), Constant(5.0), 10, Noise(0.1, 50.0, 0.2, Uniform(0, 4))),
    WindowTuning(Worker(2.0), 7.0),
    (
        Burst(1, 2, 0.5, Exponential(3.0), 0, 9),
        Regime(2, Constant(1)),
        Gap(1, 2, source=1),
        Straggler(0, 2.0, 5),
    ),
    (
        Pause("relay-0", 1, 2),
        Slow("worker-0", 1, 2, 3.5),
        Fail("worker-0", 1, 2),
        Congest("relay-0>log", 1, 2, 0.25),
        Lose("relay-0>log", 3),
        Replay("relay-0>log", 4, 5),
        Duplicate("source-0", 0, 1),
    ),
    Noise(loss=0.5, retry_us=8.0),
    Tiers(process=Tier(0.2, 10_000.0)),
    Place(2),
    EveryTuples(4),
    flush=False,
    epoch_us=5,
    name="everything",
)
PLANS = (
    EVERYTHING,
    Plan(()),
    Plan((Source(3),), trigger=Every(5)),
    Plan((Source(3),), trigger=At((1, 2))),
)


def written(value: object) -> str:
    return json.dumps(to_plain(value), allow_nan=False)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_a_plan_comes_back_from_json(plan: Plan) -> None:
    again = from_plain(json.loads(written(plan)))
    assert again == plan
    assert repr(again) == repr(plan)
    assert hash(again) == hash(plan)


FAIL = {"is": "Fail", "worker": "w", "at_us": 5, "for_us": 1}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"is": "Sauce", "events": 1}, "there is no 'Sauce' in a plan; did you mean 'Source'?"),
        ({"is": ["Source"]}, "there is no ['Source'] in a plan"),
        ({"is": "Source", "event": 1}, "Source has no 'event'; did you mean 'events'?; it has"),
        ({"is": "Pause", "worker": "w"}, "Pause needs at_us, for_us"),
        ({"is": "Source", "events": -1}, "Source.events is -1; it must be between 0"),
        ({"is": "Plan", "sources": [{"is": "Plan", "sources": 5}]}, "Plan.sources is 5; it must"),
        ({**FAIL, "at_us": 5.5}, "Fail.at_us is 5.5; it must be an integer"),
        ({**FAIL, "kind": "pause"}, "Fail.kind is 'pause'; it must be 'fail'"),
        ({"is": "Plan", "flush": 1}, "Plan.flush is 1; it must be true or false"),
        ({"is": "Plan", "trigger": 5}, "Plan.trigger is 5; it must be Every, EveryTuples or At"),
        ({"is": "Plan", "faults": [FAIL, "boom"]}, "Plan.faults[1] is 'boom'; it must be Pause, "),
        ({"is": "At", "cuts": [1, 2.0]}, "At.cuts[1] is 2.0; it must be an integer"),
    ],
)
def test_an_invalid_plan_is_refused_in_one_sentence(data: object, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as refusal:
        from_plain(data)
    assert len(str(refusal.value)) < 200
    assert "\n" not in str(refusal.value)
