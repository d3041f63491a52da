import numpy as np
import pytest
import simpy

from sim.kernel.distributions import Constant, Exponential
from sim.kernel.link import HERE, QUIET, Link, Noise, Place, Tier, Tiers
from sim.statistics import clopper_pearson

TIERS = Tiers()
TEN = Tier(latency_us=100.0, bandwidth_mbps=10.0)  # 10 bits per microsecond


class Run:
    """A link and what came out of it, with the times."""

    def __init__(self, tier: Tier = TEN, noise: Noise = QUIET, seed: int = 0) -> None:
        self.env = simpy.Environment()
        self.got: list[tuple[float, int]] = []
        rng = np.random.default_rng(seed)
        self.link: Link[int] = Link(self.env, tier, self.receive, noise, rng)

    def receive(self, message: int) -> None:
        self.got.append((self.env.now, message))

    def at(self, time_us: float, action: str, *arguments: float) -> None:
        method = getattr(self.link, action)
        simpy.Timeout(self.env, time_us).callbacks.append(lambda _: method(*arguments))

    def finish(self) -> list[tuple[float, int]]:
        self.env.run()
        assert self.link.sent == self.link.arrived + self.link.lost + self.link.inside
        return self.got


@pytest.mark.parametrize(
    ("other", "tier"),
    [
        (Place(0, 0, 0), Tier(0.1, 20_000.0)),
        (Place(0, 0, 1), Tier(20.0, 2_500.0)),
        (Place(0, 1, 0), Tier(200.0, 100.0)),
        (Place(1, 0, 0), Tier(350.0, 10.0)),
    ],
)
def test_tier_of_two_places(other: Place, tier: Tier) -> None:
    assert TIERS.between(HERE, other) == TIERS.between(other, HERE) == tier


def test_messages_are_sent_one_after_the_other_then_travel_together() -> None:
    run = Run()
    run.link.send(1, 1_000)
    run.link.send(2, 500)
    run.at(400.0, "send", 3, 1_000)
    assert run.finish() == [(200.0, 1), (250.0, 2), (600.0, 3)]


@pytest.mark.parametrize("tier", TIERS, ids=Tiers._fields)
def test_a_saturated_link_delivers_its_bandwidth(tier: Tier) -> None:
    run = Run(tier)
    sizes = [int(bits) for bits in np.random.default_rng(1).integers(100, 10_000, 1_000)]
    for number, bits in enumerate(sizes):
        run.link.send(number, bits)
    arrivals = run.finish()
    assert [number for _, number in arrivals] == list(range(1_000))
    sending_us = arrivals[-1][0] - tier.latency_us
    assert sum(sizes) / sending_us == pytest.approx(tier.bandwidth_mbps, rel=1e-9)
    assert run.link.busy_us == pytest.approx(sending_us, rel=1e-9)


def test_a_hold_stops_what_is_not_sent_and_only_that() -> None:
    run = Run()
    for number in (1, 2, 3):
        run.link.send(number, 1_000)  # sent at 100, 200, 300
    run.at(150.0, "hold")
    run.at(160.0, "send", 4, 1_000)
    run.at(1_150.0, "release")
    # 1 was on its way; 2 was half sent and goes on with its second half.
    assert run.finish() == [(200.0, 1), (1_300.0, 2), (1_400.0, 3), (1_500.0, 4)]


def test_holds_add_up() -> None:
    run = Run()
    run.link.hold()
    run.link.send(1, 1_000)
    run.at(10.0, "hold")
    run.at(20.0, "release")
    run.at(30.0, "release")
    assert run.finish() == [(230.0, 1)]
    with pytest.raises(ValueError, match="holds to release is 0"):
        run.link.release()


def test_a_hold_before_anything_is_sent_completely() -> None:
    run = Run()
    run.link.send(1, 1_000)
    run.at(40.0, "hold")
    run.at(50.0, "release")
    run.at(60.0, "send", 2, 1_000)
    assert run.finish() == [(210.0, 1), (310.0, 2)]


def test_losing_and_replaying_chosen_messages() -> None:
    run = Run()
    for number in range(4):
        run.link.send(number, 1_000)
    run.link.lose(1)
    run.link.replay(2, 1_000.0)
    run.link.lose(99)
    assert run.finish() == [(200.0, 0), (400.0, 2), (500.0, 3), (1_400.0, 2)]
    assert (run.link.lost, run.link.replayed, run.link.arrived) == (1, 1, 3)


def noisy(noise: Noise) -> Run:
    run = Run(noise=noise, seed=4)
    for number in range(5_000):
        run.link.send(number, 10)
    run.finish()
    return run


def test_noise_has_its_probabilities() -> None:
    link = noisy(Noise(loss=0.1, replay=0.2)).link
    # A correct link fails one of the two for one seed in 5,000.
    assert clopper_pearson(link.lost, link.sent, 0.9999).contains(0.1)
    assert clopper_pearson(link.replayed, link.arrived, 0.9999).contains(0.2)


def test_more_loss_loses_more_of_the_same() -> None:
    def came(noise: Noise) -> set[int]:
        return {number for _, number in noisy(noise).got}

    calm = came(Noise(loss=0.1))
    assert came(Noise(loss=0.2)) < calm
    assert came(Noise(loss=0.1, replay=0.3, replay_after=Exponential(5.0))) == calm


def test_a_lost_message_takes_its_time() -> None:
    run = Run()
    run.link.lose(0)
    run.link.send(0, 1_000)
    run.link.send(1, 1_000)
    assert run.finish() == [(300.0, 1)]


def test_messages_without_size_keep_their_order() -> None:
    run = Run(Tier(0.1, 3.0))
    for number in range(50):
        run.link.send(number, number % 2)
    assert [number for _, number in run.finish()] == list(range(50))


def test_bad_values_are_named() -> None:
    with pytest.raises(ValueError, match=r"Tier.latency_us is -1; it must be"):
        Run(Tier(-1, 10))
    with pytest.raises(ValueError, match=r"Tier.bandwidth_mbps is 0; it must be"):
        Run(Tier(1, 0))
    with pytest.raises(ValueError, match=r"Noise.loss is 2; it must be"):
        Noise(loss=2)
    with pytest.raises(ValueError, match=r"Noise.replay is -1; it must be"):
        Noise(replay=-1, replay_after=Constant(1))
    with pytest.raises(ValueError, match="needs a random stream"):
        Link(simpy.Environment(), TEN, print, Noise(loss=0.5))
