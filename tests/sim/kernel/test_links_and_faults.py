"""Links: order, bandwidth, latency, loss, copies; and faults of links and workers."""

import numpy as np
import pytest
import simpy

from sim.kernel.distributions import Exponential
from sim.kernel.faults import (
    Congest,
    Duplicate,
    Fail,
    Fault,
    Lose,
    Pause,
    Replay,
    Slow,
    inject,
    schedule_of,
)
from sim.kernel.link import QUIET, Link, Noise, Tier
from sim.kernel.plan import Worker
from sim.kernel.station import Station, connect

TEN = Tier(latency_us=100.0, bandwidth_mbps=10.0)  # 10 bits per microsecond


class Run:
    """A link, and the messages that it delivered, with their times."""

    def __init__(
        self, tier: Tier = TEN, noise: Noise = QUIET, seed: int = 0, *, once: bool = False
    ) -> None:
        self.env = simpy.Environment()
        self.got: list[tuple[float, int]] = []
        self.lost: list[int] = []
        self.copied: list[int] = []
        rng = np.random.default_rng(seed)
        self.link: Link[int] = Link(self.env, tier, self.receive, noise, rng, once=once)
        self.link.lose_message = self.lost.append
        self.link.copy_message = self.copied.append

    def receive(self, message: int) -> None:
        self.got.append((self.env.now, message))

    def at(self, time_us: float, action: str, *arguments: float) -> None:
        method = getattr(self.link, action)
        simpy.Timeout(self.env, time_us).callbacks.append(lambda _: method(*arguments))

    def finish(self) -> list[tuple[float, int]]:
        self.env.run()
        self.link.check()
        assert self.link.inside == 0
        return self.got


def sending(messages: int, noise: Noise = QUIET, *, once: bool = False) -> Run:
    """Return a run that sends messages at once, each 100 us long."""
    run = Run(noise=noise, once=once)
    for number in range(messages):
        run.link.send(number, 1_000)
    return run


def test_messages_are_sent_one_after_the_other_then_travel_together() -> None:
    run = Run()
    run.link.send(1, 1_000)
    run.link.send(2, 500)
    run.at(400.0, "send", 3, 1_000)
    assert run.finish() == [(200.0, 1), (250.0, 2), (600.0, 3)]


# ------------------------------------------------------------------------- holds, congestion


def test_a_hold_stops_what_is_not_sent_and_only_that() -> None:
    run = sending(3)
    run.at(150.0, "hold")
    run.at(160.0, "send", 3, 1_000)
    run.at(1_150.0, "release")
    # 0 was on its way; 1 was half sent and goes on with its second half.
    assert run.finish() == [(200.0, 0), (1_300.0, 1), (1_400.0, 2), (1_500.0, 3)]


def test_holds_add_up() -> None:
    run = Run()
    run.link.hold()
    run.link.send(1, 1_000)
    run.at(10.0, "hold")
    run.at(20.0, "release")
    run.at(30.0, "release")
    assert run.finish() == [(230.0, 1)]
    with pytest.raises(ValueError, match="holds to release is 0; it must be above 0"):
        run.link.release()


def test_a_congested_link_has_a_share_of_its_bandwidth() -> None:
    run = sending(3)
    run.at(150.0, "congest", 0.5)  # 0 was on its way, half of 1 is left
    run.at(250.0, "clear", 0.5)  # 1 has just been sent
    assert run.finish() == [(200.0, 0), (350.0, 1), (450.0, 2)]


# ---------------------------------------------------------------------------- loss, copies


def test_losing_and_replaying_chosen_messages() -> None:
    run = sending(4)
    run.link.lose(1)
    run.link.replay(2, 1_000.0)
    run.link.lose(99)
    assert run.finish() == [(200.0, 0), (400.0, 2), (500.0, 3), (1_400.0, 2)]
    assert (run.link.lost, run.link.replayed, run.link.arrived) == (1, 1, 3)
    assert (run.lost, run.copied) == ([1], [2])


def test_a_lost_message_is_sent_again_and_holds_up_those_behind_it() -> None:
    run = sending(3, noise=Noise(retry_us=1_000.0))
    run.at(1_250.0, "send", 3, 1_000)
    run.link.lose(1)
    # 1 would arrive at 300; it is sent again after 1,000 and travels for 100 once more. 2 has been
    # there since 400 and waits for its turn, as in a TCP connection; 3 overtakes nobody.
    assert run.finish() == [(200.0, 0), (1_400.0, 1), (1_400.0, 2), (1_450.0, 3)]
    assert (run.link.retried, run.link.lost, run.link.arrived) == (1, 0, 4)
    assert run.lost == []


def test_a_copy_that_is_recognised_is_discarded() -> None:
    run = sending(3, once=True)
    run.link.replay(1, 10.0)
    assert run.finish() == [(200.0, 0), (300.0, 1), (400.0, 2)]
    assert (run.link.replayed, run.copied) == (1, [])


def test_more_loss_loses_more_of_the_same() -> None:
    def came(noise: Noise) -> set[int]:
        run = Run(noise=noise, seed=4)
        for number in range(5_000):
            run.link.send(number, 10)
        return {number for _, number in run.finish()}

    calm = came(Noise(loss=0.1))
    assert came(Noise(loss=0.2)) < calm
    assert came(Noise(loss=0.1, replay=0.3, replay_after=Exponential(5.0))) == calm


# ------------------------------------------------------------------------------- invariants


@pytest.mark.parametrize("seed", range(20))
def test_order_and_conservation_whatever_goes_wrong(seed: int) -> None:
    rng = np.random.default_rng(seed)
    noise = Noise(loss=0.1, retry_us=40.0 if seed % 2 else None, replay=0.1)
    run = Run(Tier(20.0, 1.0), noise, seed, once=seed % 4 < 2)
    for number, time_us in enumerate(sorted(rng.uniform(0, 1_000, 200).tolist())):
        run.at(time_us, "send", number, float(rng.integers(0, 20)))
    for time_us in rng.uniform(0, 1_000, 5).tolist():
        for begin, end, given in (("hold", "release", ()), ("congest", "clear", (0.3,))):
            run.at(time_us, begin, *given)
            run.at(time_us + 60.0, end, *given)
    for stop_us in range(50, 1_500, 50):
        run.env.run(until=stop_us)
        run.link.check()
    got = [number for _, number in run.finish()]
    assert len(got) == run.link.arrived + (0 if run.link.once else run.link.replayed)
    assert run.link.arrived + run.link.lost == 200
    assert run.link.replayed > 0
    assert (run.link.retried if seed % 2 else run.link.lost) > 0
    # Without its copies, in the order in which it was sent.
    firsts = list(dict.fromkeys(got))
    assert firsts == sorted(firsts)
    if seed % 2:
        assert firsts == list(range(200))


# ------------------------------------------------------------------------------------- faults


def test_a_schedule_is_read_from_a_line() -> None:
    text = (
        "pause a 10 20; fail a 10 20;slow a 10 20 2.5; congest a 10 20; "
        "lose a 3; replay a 3 20; duplicate a 3 20;"
    )
    at = ("a", 10, 20)
    numbered = (Lose("a", 3), Replay("a", 3, 20), Duplicate("a", 3, 20))
    assert schedule_of(text) == (Pause(*at), Fail(*at), Slow(*at, 2.5), Congest(*at), *numbered)
    assert schedule_of("congest b>log 10 20 0.25; ") == (Congest("b>log", 10, 20, 0.25),)


def served_at(*schedule: Fault) -> list[tuple[float, int]]:
    """Send four messages over link ``l`` to worker ``w``; each takes 10 us at either."""
    env = simpy.Environment()
    served: list[tuple[float, int]] = []
    station: Station[int] = Station(env, Worker(), lambda item, *_: served.append((env.now, item)))
    link: Link[int] = Link(env, Tier(0.0, 1.0), print)
    connect(link, lambda item, entered: station.offer(item, 10.0, entered))
    inject(env, schedule, {"w": station}, {"l": link})
    for item in range(4):
        link.send(item, 10)
    env.run()
    station.check()
    link.check()
    return served


def test_effects() -> None:
    assert served_at() == [(20, 0), (30, 1), (40, 2), (50, 3)]
    assert served_at(Duplicate("s", 0, 1)) == served_at()
    assert served_at(Pause("w", 15, 100)) == [(120, 0), (130, 1), (140, 2), (150, 3)]
    assert served_at(Fail("w", 15, 10)) == [(40, 2), (50, 3)]
    assert served_at(Slow("w", 20, 10, 2.0)) == [(20, 0), (35, 1), (45, 2), (55, 3)]
    assert served_at(Congest("l", 5, 100)) == [(120, 0), (130, 1), (140, 2), (150, 3)]
    assert served_at(Lose("l", 1)) == [(20, 0), (40, 2), (50, 3)]
    assert served_at(Replay("l", 0, 100)) == [(20, 0), (30, 1), (40, 2), (50, 3), (120, 0)]


def test_a_fault_comes_before_everything_else_of_its_instant() -> None:
    # At 20 the first item would be done and the second arrives; the failure takes both.
    assert served_at(Fail("w", 20, 5)) == [(40, 2), (50, 3)]
