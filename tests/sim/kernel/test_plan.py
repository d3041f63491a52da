"""Plans: values that come back from JSON and from Python, and refuse what makes no sense."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from model.vocabulary import Event
from sim.kernel.disorder import Straggler
from sim.kernel.faults import Duplicate
from sim.kernel.link import Noise, Tier, Tiers
from sim.kernel.plain import from_plain
from sim.kernel.plan import Cluster, Plan, Worker, replay
from sim.kernel.source import Recording, Row, Source
from sim.kernel.trigger import EVERY_SECOND, At


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
