"""Plans: replays and tunings; impossible values of all parts of a run are named."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

import pytest
import simpy

from model.vocabulary import Event
from sim.kernel.disorder import Burst, Disturbance, Gap, Regime, check_disturbance
from sim.kernel.distributions import Constant, Exponential, Lognormal, Mixture, Pareto, Uniform
from sim.kernel.faults import (
    Congest,
    Duplicate,
    Fail,
    Fault,
    Lose,
    Pause,
    Slow,
    inject,
    schedule_of,
)
from sim.kernel.link import Link, Noise, Tier, Tiers
from sim.kernel.plan import Cluster, Plan, Worker, replay
from sim.kernel.source import Recording, Row, Source
from sim.kernel.station import Station
from sim.kernel.trigger import EVERY_SECOND, At, Every, EveryTuples


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


def disturbed(disturbance: Disturbance) -> None:
    check_disturbance(disturbance, sources=2)


def struck(*schedule: Fault) -> None:
    """Let faults strike a run with one worker and one link."""
    env = simpy.Environment()
    station, link = Station[int](env, Worker(), print), Link[int](env, Tier(0.0, 1.0), print)
    inject(env, schedule, {"w": station}, {"l": link})


REFUSED: tuple[tuple[Callable[[], object], str], ...] = (
    (lambda: Source(-1), "Source.events is -1; it must be between 0 and 999999999"),
    (lambda: Source(1, keys=()), "Source.keys is (); it must be at least one key"),
    (lambda: Source(1, low=2, high=1), "Source.high is 1; it must be between low, 2, and"),
    (lambda: Source(1, bits=-1), "Source.bits is -1; it must be at least 0"),
    (lambda: Plan((), epoch_us=2**60), "Plan.epoch_us is 1152921504606846976; it must be"),
    (lambda: Plan((), tiers=Tiers(node=Tier(1, 0))), "Tier.bandwidth_mbps is 0; it must be above"),
    (lambda: Plan((Source(1),), disturbances=(Gap(0, 1, 1),)), "gap.source is 1; it must be"),
    (lambda: Plan((Source(1),), faults=(Duplicate("a", 1, 1),)), "target of duplicate is 'a'; it"),
    (lambda: Cluster(()), "Cluster.workers is (); it must be at least one worker"),
    (lambda: Cluster(noise=Noise()), "Cluster.noise.retry_us is None; it must be a time"),
    (lambda: Every(0), "Every.interval_us is 0; it must be above 0"),
    (lambda: EveryTuples(-1), "EveryTuples.tuples is -1; it must be above 0"),
    (lambda: At((9, 3)), "At.cuts is [9, 3]; it must be ascending, from 0 on"),
    (lambda: Constant(inf), "Constant.us is inf; it must be finite and at least 0"),
    (lambda: Uniform(-1, 2), "Uniform.low_us is -1"),
    (lambda: Uniform(3, 2), "Uniform.high_us is 2"),
    (lambda: Exponential(0), "Exponential.mean_us is 0"),
    (lambda: Pareto(0, 1), "Pareto.minimum_us is 0"),
    (lambda: Lognormal(1, -1), "Lognormal.sigma is -1"),
    (lambda: Mixture(1.5, Constant(1)), "Mixture.share is 1.5"),
    (
        lambda: disturbed(Burst(-1, 1, 0.5, Constant(1))),
        "burst.start_us is -1; it must be at",
    ),
    (lambda: disturbed(Burst(0, 1, 1.5, Constant(1))), "burst.share is 1.5; it must be between 0"),
    (lambda: disturbed(Gap(0, 1, source=2)), "gap.source is 2; it must be a source, 0..1"),
    (lambda: disturbed(Regime(-5, Constant(1))), "regime.start_us is -5; it must be at least"),
    (lambda: Noise(loss=2), "Noise.loss is 2; it must be between 0 and 1"),
    (lambda: Noise(retry_us=0), "Noise.retry_us is 0; it must be finite and above 0"),
    (lambda: schedule_of("pause a 1"), "'pause a 1' is not a fault; write pause worker at_us"),
    (lambda: schedule_of("slow a 1 2 inf"), "slow.factor is inf; it must be finite"),
    (lambda: struck(Pause("w", -1, 1)), "pause.at_us is -1; it must be at least 0"),
    (lambda: struck(Fail("w", 1, 0)), "fail.for_us is 0; it must be above 0"),
    (lambda: struck(Fail("w", 1, 10**58)), "0; it must be less than 2"),
    (lambda: struck(Slow("w", 1, 1, 0)), "slow.factor is 0; it must be above 0"),
    (lambda: struck(Congest("l", 1, 1, 1.0)), "congest.share is 1.0; it must be at least"),
    (lambda: struck(Lose("l", -2)), "lose.nth is -2; it must be at least 0"),
    (lambda: struck(Congest("x", 1, 1)), "target of congest is 'x'; it must be one of l"),
    (lambda: struck(Fail("l", 1, 1)), "target of fail is 'l'; it must be one of w"),
    (lambda: inject(simpy.Environment(), [Lose("a", 1)], {}, {}), "this run has no links"),
)
"""Values of all parts of a run, and what is said of them."""


@pytest.mark.parametrize(("build", "message"), REFUSED)
def test_a_bad_value_is_named_in_one_sentence(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as refusal:
        build()
    assert len(str(refusal.value)) < 200
    assert "\n" not in str(refusal.value)
