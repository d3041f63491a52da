"""Links: places, the distance between them, and messages in transit.

Rules of this file:

* Kernel time is float microseconds since the start of the run. It is not an integer because 100
  bytes take 0.04 us in the fastest tier; it is not absolute because a float as large as today's
  time since the epoch resolves only 0.25 us.
* A link sends one message at a time, in order, at its bandwidth; then the message travels for the
  latency. Messages never overtake each other: a message that is sent again after a loss holds up
  those behind it, as in a TCP connection. Only a replayed copy arrives out of order.
* Each message costs one callback on one Timeout, which is ten times faster than a process.
* A bandwidth is used here alone: by a link, and by the methods of a tier for costs without a link
  (times of instances in room ``grouping``, resizing and micro-batches in room ``join``).
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import simpy

from model.vocabulary.settings import require
from sim.kernel.distributions import Constant, Distribution, Uniform, iterate_samples

T = TypeVar("T")
_NO_COPIES: Sequence[float] = ()


class Place(NamedTuple):
    """A location: the number of a rack, of a node within it, and of a process within the node."""

    rack: int = 0
    node: int = 0
    process: int = 0


HERE = Place()
"""Location of the log."""


class Tier(NamedTuple):
    """The distance between two places. A bandwidth of 1 Mb/s is one bit per microsecond."""

    latency_us: float
    bandwidth_mbps: float

    def transfer_us(self, bits: float) -> float:
        """Return how long it takes to put ``bits`` bits on the line."""
        return bits / self.bandwidth_mbps

    def travel_us(self, bits: float) -> float:
        """Return the time from the first bit on the line until the last one has arrived."""
        return self.latency_us + self.transfer_us(bits)


class Tiers(NamedTuple):
    """The tier table: latency and bandwidth within and between processes, nodes and racks."""

    process: Tier = Tier(0.1, 20_000.0)
    node: Tier = Tier(20.0, 2_500.0)
    rack: Tier = Tier(200.0, 100.0)
    elsewhere: Tier = Tier(350.0, 10.0)

    def between(self, one: Place, other: Place) -> Tier:
        """Return the tier of the smallest unit (process, node, rack) that contains both places."""
        if one.rack != other.rack:
            return self.elsewhere
        if one.node != other.node:
            return self.rack
        return self.node if one.process != other.process else self.process


def check_tier(tier: Tier) -> None:
    """Raise ``ValueError`` with one sentence that names an impossible value."""
    good = 0 <= tier.latency_us < inf
    require(good, "Tier.latency_us", tier.latency_us, "finite and at least 0")
    require(tier.bandwidth_mbps > 0, "Tier.bandwidth_mbps", tier.bandwidth_mbps, "above 0")


ONE_MILLISECOND = Constant(1_000.0)


@dataclass(frozen=True, slots=True)
class Noise:
    """Random loss and replay of messages on a link; a lost message still occupies the link."""

    loss: float = 0.0
    """Probability that a message, or a retry of it, is lost."""
    retry_us: float | None = None
    """Time from a loss until the message is sent again; ``None``: never."""
    replay: float = 0.0
    """Probability that an arrived message arrives a second time, ``replay_after`` later."""
    replay_after: Distribution = ONE_MILLISECOND

    def __post_init__(self) -> None:
        require(0 <= self.loss <= 1, "Noise.loss", self.loss, "between 0 and 1")
        require(0 <= self.replay <= 1, "Noise.replay", self.replay, "between 0 and 1")
        if self.retry_us is not None:
            good = 0 < self.retry_us < inf
            require(good, "Noise.retry_us", self.retry_us, "finite and above 0")
            require(self.loss < 1, "Noise.loss", self.loss, "below 1, or no retry ever arrives")

    @property
    def is_random(self) -> bool:
        """Return whether a link with this noise draws random numbers."""
        return self.loss > 0 or self.replay > 0


QUIET = Noise()
RELIABLE = Noise(retry_us=200_000.0)
"""No random loss; losses by faults are sent again after 200 ms, Linux's least timeout for TCP."""


@dataclass(slots=True, eq=False)
class _Sending(Generic[T]):
    """A message on a link, from its sending until its delivery."""

    message: T
    bits: float
    """Bits that are not on the line yet."""
    nth: int
    sent_us: float = 0.0
    """Time at which the last bit is on the line."""
    due_us: float = 0.0


class Link(Generic[T]):
    """A one-way FIFO link between two places.

    ``receiver`` is called with each message that arrives, ``lose_message`` with each message that
    is lost for good, ``copy_message`` with each message whose copy starts to travel. With ``once``
    the receiver's end discards copies: ``receiver`` and ``copy_message`` see none.
    The constructor raises ``ValueError`` for an impossible tier, and for random ``noise`` without
    ``rng``.
    """

    __slots__ = (
        "_armed",
        "_copying",
        "_env",
        "_faults",
        "_flying",
        "_free_us",
        "_held",
        "_latency_us",
        "_losing",
        "_noisy",
        "_rate",
        "_shares",
        "_waiting",
        "arrived",
        "copy_message",
        "lose_message",
        "lost",
        "noise",
        "once",
        "receiver",
        "replayed",
        "retried",
        "sent",
    )

    def __init__(
        self,
        env: simpy.Environment,
        tier: Tier,
        receiver: Callable[[T], object],
        noise: Noise = QUIET,
        rng: np.random.Generator | None = None,
        *,
        once: bool = False,
    ) -> None:
        check_tier(tier)
        self.receiver = receiver
        self.lose_message: Callable[[T], object] = _ignore
        self.copy_message: Callable[[T], object] = _ignore
        self.noise = noise
        self.once = once
        self.sent = 0
        self.arrived = 0
        """Number of arrived messages, copies not counted."""
        self.lost = 0
        """Number of messages lost for good."""
        self.retried = 0
        self.replayed = 0
        """Number of arrived copies, discarded ones included."""
        self._env = env
        self._latency_us = tier.latency_us
        self._rate = tier.bandwidth_mbps  # bits a microsecond, at present
        self._free_us = 0.0
        self._flying: deque[_Sending[T]] = deque()
        self._armed: simpy.Event | None = None  # fires when the first message in flight is due
        self._held = 0
        self._shares: list[float] = []
        self._waiting: deque[_Sending[T]] = deque()  # messages, while the link is on hold
        self._losing: set[int] = set()
        self._copying: dict[int, list[float]] = {}
        self._faults = False
        self._noisy = None
        if noise.is_random:
            # Streams of their own, so that another ``replay_after`` does not change what is lost.
            chance, delay = rng.spawn(2) if rng is not None else (None, None)
            self._noisy = (
                iterate_samples(Uniform(0, 1), chance),
                iterate_samples(noise.replay_after, delay),
            )

    @property
    def inside(self) -> int:
        """Number of messages on the link, neither arrived nor lost; copies not counted."""
        return len(self._flying) + len(self._waiting)

    def send(self, message: T, bits: float) -> None:
        """Send a message of ``bits`` bits, behind all messages sent before it."""
        sending = _Sending(message, bits, self.sent)
        self.sent += 1
        if self._held:
            self._waiting.append(sending)
        else:
            self._start(sending)

    def hold(self) -> None:
        """Stop sending until each hold is released; messages that are not completely sent wait."""
        self._take_back()
        self._held += 1

    def release(self) -> None:
        """Undo one hold; after the last one, sending continues where it stopped."""
        require(self._held > 0, "the number of holds to release", self._held, "above 0")
        self._held -= 1
        self._go_on()

    def congest(self, share: float) -> None:
        """Leave the link a share of its bandwidth, perhaps 0; shares of several calls multiply."""
        require(0 <= share <= 1, "share", share, "between 0 and 1")
        if share == 0:
            self.hold()
            return
        self._shares.append(share)
        self._change_rate(share)

    def clear(self, share: float) -> None:
        """Undo one :meth:`congest` of this share."""
        if share == 0:
            self.release()
            return
        require(share in self._shares, "share", share, "that of a congestion in force")
        self._shares.remove(share)
        self._change_rate(1 / share)

    def lose(self, nth: int) -> None:
        """Lose the message with number ``nth`` (in sending order, from 0)."""
        self._losing.add(nth)
        self._faults = True

    def replay(self, nth: int, after_us: float) -> None:
        """Let the message with number ``nth`` arrive once more, ``after_us`` later."""
        self._copying.setdefault(nth, []).append(after_us)
        self._faults = True

    def check(self) -> None:
        """Assert that every message has arrived, is lost for good, or is still inside."""
        assert self.sent == self.arrived + self.lost + self.inside, (self.sent, self.arrived)

    def close(self) -> None:
        """Drop all callbacks after the run; see :meth:`Station.close`."""
        self.receiver = self.lose_message = self.copy_message = _ignore

    def _change_rate(self, factor: float) -> None:
        self._take_back()
        self._rate *= factor
        self._go_on()

    def _take_back(self) -> None:
        """Queue again the messages that are not completely on the line, with their bits left."""
        if self._held:
            return
        now, flying = self._env.now, self._flying
        while flying and flying[-1].sent_us > now:
            sending = flying.pop()
            started_us = max(now, sending.sent_us - sending.bits / self._rate)
            sending.bits = (sending.sent_us - started_us) * self._rate
            self._waiting.appendleft(sending)
        if not flying:
            self._armed = None
        self._free_us = now

    def _go_on(self) -> None:
        if self._held:
            return
        waiting, self._waiting = self._waiting, deque()
        for sending in waiting:
            self._start(sending)

    def _start(self, sending: _Sending[T]) -> None:
        now, free_us = self._env.now, self._free_us
        self._free_us = (free_us if free_us > now else now) + sending.bits / self._rate
        sending.sent_us = self._free_us
        sending.due_us = self._free_us + self._latency_us
        self._flying.append(sending)
        if self._armed is None:
            self._arm(sending.due_us)

    def _arm(self, due_us: float) -> None:
        # Messages behind a retry are overdue, and now + (due - now) may miss ``due`` by a rounding.
        delay_us = due_us - self._env.now
        self._armed = wake = simpy.Timeout(self._env, delay_us if delay_us > 0.0 else 0.0)
        wake.callbacks.append(self._deliver)

    def _deliver(self, wake: simpy.Event) -> None:
        if wake is not self._armed:
            return  # an outdated alarm: its message was held back, or is sent again
        sending = self._flying[0]
        is_lost, copies_after_us = False, _NO_COPIES
        if self._faults or self._noisy is not None:
            is_lost, copies_after_us = self._draw_fate(sending.nth)
        if is_lost and self.noise.retry_us is not None:
            self._retry(sending, self.noise.retry_us)
            return
        self._flying.popleft()
        if self._flying:
            self._arm(self._flying[0].due_us)
        else:
            self._armed = None
        if is_lost:
            self.lost += 1
            self.lose_message(sending.message)
            return
        self.arrived += 1
        for after_us in copies_after_us:
            self._copy(sending.message, after_us)
        self.receiver(sending.message)

    def _draw_fate(self, nth: int) -> tuple[bool, Sequence[float]]:
        """Return whether a message is lost, and after which times (us) its copies arrive."""
        is_lost = nth in self._losing
        self._losing.discard(nth)
        copies_after_us: list[float] = []
        if self._noisy is not None:
            # Three draws a message, needed or not: a changed probability changes no other draw.
            uniform, delay = self._noisy
            is_lost |= next(uniform) < self.noise.loss
            is_copied, after_us = next(uniform) < self.noise.replay, next(delay)
            copies_after_us = [after_us] if is_copied else []
        if not is_lost:
            copies_after_us += self._copying.pop(nth, _NO_COPIES)
        return is_lost, copies_after_us

    def _retry(self, sending: _Sending[T], retry_us: float) -> None:
        """Send the first message again; those behind it wait even if the line is idle."""
        self.retried += 1
        sending.sent_us = -inf  # no hold takes this message back
        sending.due_us = self._env.now + retry_us + self._latency_us
        self._arm(sending.due_us)

    def _copy(self, message: T, after_us: float) -> None:
        if not self.once:
            self.copy_message(message)
        copy = simpy.Timeout(self._env, after_us)
        copy.callbacks.append(lambda _: self._deliver_copy(message))

    def _deliver_copy(self, message: T) -> None:
        self.replayed += 1
        if not self.once:
            self.receiver(message)


def _ignore(_: object) -> None:
    """Ignore the fate of a message."""


AnyLink: TypeAlias = Link[Any]
"""A link, whatever it carries."""
