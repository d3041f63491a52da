"""Network: where things stand, the tiers between them, and links that take time.

Rules of this file:

* Kernel time is float microseconds since the start of the run. It is not an integer because 100
  bytes take 0.04 us in the fastest tier; it is not absolute because a float of the size of today's
  epoch resolves only 0.25 us.
* A link sends one message at a time, in order, at its bandwidth; then the message travels for the
  latency. So messages never overtake each other, except for a replayed copy.
* One callback on one Timeout per message, no process: about ten times faster.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import simpy

from sim.distributions import Constant, Distribution, Uniform, endless, require

T = TypeVar("T")


class Place(NamedTuple):
    """Where a source or a worker stands: processes on nodes in racks, numbered within each."""

    rack: int = 0
    node: int = 0
    process: int = 0


HERE = Place()


class Tier(NamedTuple):
    """How far apart two places are. 1 Mb/s is one bit per microsecond."""

    latency_us: float
    bandwidth_mbps: float


class Tiers(NamedTuple):
    """The tier table."""

    process: Tier = Tier(0.1, 20_000.0)
    node: Tier = Tier(20.0, 2_500.0)
    rack: Tier = Tier(200.0, 100.0)
    elsewhere: Tier = Tier(350.0, 10.0)

    def between(self, one: Place, other: Place) -> Tier:
        """The tier of the smallest thing (process, node, rack) that holds both places."""
        if one.rack != other.rack:
            return self.elsewhere
        if one.node != other.node:
            return self.rack
        return self.node if one.process != other.process else self.process


def check_tier(tier: Tier) -> None:
    """Raise ``ValueError`` naming the value that makes no sense."""
    good = 0 <= tier.latency_us < inf
    require(good, "Tier.latency_us", tier.latency_us, "finite and at least 0")
    require(tier.bandwidth_mbps > 0, "Tier.bandwidth_mbps", tier.bandwidth_mbps, "above 0")


ONE_MILLISECOND = Constant(1_000.0)


@dataclass(frozen=True, slots=True)
class Noise:
    """What a link does to messages at random; a lost message still takes its time on the link."""

    loss: float = 0.0
    """Probability that a message never arrives."""
    replay: float = 0.0
    """Probability that a message that arrived arrives once more, ``replay_after`` later."""
    replay_after: Distribution = ONE_MILLISECOND

    def __post_init__(self) -> None:
        require(0 <= self.loss <= 1, "Noise.loss", self.loss, "between 0 and 1")
        require(0 <= self.replay <= 1, "Noise.replay", self.replay, "between 0 and 1")

    @property
    def is_random(self) -> bool:
        """Whether a link with this noise draws random numbers."""
        return self.loss > 0 or self.replay > 0


QUIET = Noise()


class Link(Generic[T]):
    """A one-way FIFO link between two places.

    ``receiver`` is called with each message when it arrives; read the time from the environment.
    Raises ``ValueError`` for a tier that makes no sense, and for random ``noise`` without ``rng``.
    """

    __slots__ = (
        "_armed",
        "_bandwidth_mbps",
        "_env",
        "_flying",
        "_free_at_us",
        "_held",
        "_latency_us",
        "_lose",
        "_noisy",
        "_replay",
        "_replay_after",
        "_uniform",
        "_waiting",
        "arrived",
        "busy_us",
        "lost",
        "noise",
        "receiver",
        "replayed",
        "sent",
    )

    def __init__(
        self,
        env: simpy.Environment,
        tier: Tier,
        receiver: Callable[[T], object],
        noise: Noise = QUIET,
        rng: np.random.Generator | None = None,
    ) -> None:
        check_tier(tier)
        self.receiver = receiver
        self.noise = noise
        self.sent = 0
        self.arrived = 0
        """Messages handed to the receiver, copies not counted."""
        self.lost = 0
        self.replayed = 0
        self.busy_us = 0.0
        """Sending time of all messages taken so far, whether or not it has passed yet."""
        self._env = env
        self._latency_us, self._bandwidth_mbps = tier
        self._free_at_us = 0.0
        self._flying: deque[tuple[float, T]] = deque()  # (due, message), in order
        self._armed: simpy.Event | None = None  # wakes us when the first of them is due
        self._held = 0
        self._waiting: deque[tuple[float, T]] = deque()  # (sending time left, message), while held
        self._lose: set[int] = set()
        self._replay: dict[int, float] = {}
        self._noisy = noise.is_random
        # Streams of their own, so that another ``replay_after`` does not change what is lost.
        chance, delay = rng.spawn(2) if self._noisy and rng is not None else (None, None)
        self._uniform = endless(Uniform(0, 1), chance) if self._noisy else None
        self._replay_after = endless(noise.replay_after, delay) if self._noisy else None

    @property
    def inside(self) -> int:
        """Messages taken and neither arrived nor lost, copies not counted."""
        return len(self._flying) + len(self._waiting)

    def send(self, message: T, bits: float) -> None:
        """Take a message of ``bits`` bits; it leaves after everything sent before it."""
        sending_us = bits / self._bandwidth_mbps
        self.sent += 1
        self.busy_us += sending_us
        if self._held:
            self._waiting.append((sending_us, message))
        else:
            self._start(sending_us, message)

    def hold(self) -> None:
        """Nothing goes out any more: what is not sent completely waits. Holds add up."""
        self._held += 1
        if self._held > 1:
            return
        now = self._env.now
        # Messages are due one latency after they were sent; the unsent ones are the last.
        while self._flying and self._flying[-1][0] - self._latency_us > now:
            due, message = self._flying.pop()
            before = self._flying[-1][0] - self._latency_us if self._flying else now
            left_us = due - self._latency_us - max(before, now)
            self._waiting.appendleft((left_us, message))
        if not self._flying:
            self._armed = None
        self._free_at_us = now

    def release(self) -> None:
        """Take back one hold; after the last one, sending goes on where it stopped."""
        require(self._held > 0, "the number of holds to release", self._held, "above 0")
        self._held -= 1
        if self._held:
            return
        waiting, self._waiting = self._waiting, deque()
        for sending_us, message in waiting:
            self._start(sending_us, message)

    def lose(self, nth: int) -> None:
        """The message with number ``nth`` (in sending order, from 0) will not arrive."""
        self._lose.add(nth)
        self._noisy = True

    def replay(self, nth: int, after_us: float) -> None:
        """The message with number ``nth`` will arrive a second time, ``after_us`` later."""
        self._replay[nth] = after_us
        self._noisy = True

    def _start(self, sending_us: float, message: T) -> None:
        now = self._env.now
        self._free_at_us = (self._free_at_us if self._free_at_us > now else now) + sending_us
        due = self._free_at_us + self._latency_us
        self._flying.append((due, message))
        if self._armed is None:
            self._arm(due)

    def _arm(self, due: float) -> None:
        # now + (due - now) may miss ``due`` by a rounding, hence never a negative delay.
        delay_us = due - self._env.now
        self._armed = wake = simpy.Timeout(self._env, delay_us if delay_us > 0.0 else 0.0)
        wake.callbacks.append(self._deliver)

    def _deliver(self, wake: simpy.Event) -> None:
        if wake is not self._armed:
            return  # what it was set for has been held back since
        _, message = self._flying.popleft()
        if self._flying:
            self._arm(self._flying[0][0])
        else:
            self._armed = None
        if self._noisy:
            self._deliver_noisily(message)
        else:
            self.arrived += 1
            self.receiver(message)

    def _deliver_noisily(self, message: T) -> None:
        nth = self.arrived + self.lost
        lost = nth in self._lose
        replay_after_us = self._replay.get(nth)
        if self._uniform is not None and self._replay_after is not None:
            # Three draws a message, needed or not: a changed probability moves no other number.
            lost |= next(self._uniform) < self.noise.loss
            replayed, after_us = next(self._uniform) < self.noise.replay, next(self._replay_after)
            if replayed and replay_after_us is None:
                replay_after_us = after_us
        if lost:
            self.lost += 1
            return
        self.arrived += 1
        if replay_after_us is not None:
            copy = simpy.Timeout(self._env, replay_after_us)
            copy.callbacks.append(lambda _: self._deliver_copy(message))
        self.receiver(message)

    def _deliver_copy(self, message: T) -> None:
        self.replayed += 1
        self.receiver(message)
