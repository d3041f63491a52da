"""What sensors send, and what delays it. All simulated.

Every sensor sends at its own rate, one a little after the other. A tuple takes a while to get away
(jitter), and then goes over a line of its own to where tuples are sent on.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sim.kernel.disorder import Burst, Disturbance, Gap
from sim.kernel.distributions import Constant, Exponential
from sim.kernel.link import Noise, Place
from sim.kernel.plan import Plan
from sim.kernel.source import NO_DELAY, Source

SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US
JITTER = Exponential(30_000)
BURST = Exponential(400_000)


class Sending(NamedTuple):
    """Sensors that send for a while."""

    sensors: Sequence[tuple[str, int]]
    """Each with its tuples in an hour."""
    seconds: int
    place: Place | None = None
    """Where they stand; ``None``: right there, without a link in between."""
    loss: float = 0.0
    """Share of the tuples that get lost on the way to the log."""
    tuple_bytes: int = 100

    @property
    def period_us(self) -> int:
        """In which they send."""
        return self.seconds * SECOND_US


def plan_of(sending: Sending, disorder: str) -> Plan:
    """Sensors, and what disturbs them."""
    disturbances = DISORDERS[disorder](sending)
    sources = []
    for number, (sensor, per_hour) in enumerate(sending.sensors):
        interval_us = HOUR_US / per_hour
        source = Source(
            events=per_hour * sending.seconds // 3_600,
            interval=Constant(interval_us),
            start_us=int(interval_us * number / len(sending.sensors)),
            delay=NO_DELAY if disorder == CALM else JITTER,
            keys=(sensor,),
            bits=8 * sending.tuple_bytes,
            place=sending.place,
        )
        sources.append(source)
    noise = Noise(loss=sending.loss)
    name = f"{disorder}, simulated"
    return Plan(tuple(sources), disturbances=disturbances, noise=noise, name=name)


def _nothing(_: Sending) -> tuple[Disturbance, ...]:
    return ()


def _gaps(sending: Sending) -> tuple[Disturbance, ...]:
    """Every third sensor is silent for a sixth of the time."""
    start_us, length_us = sending.period_us // 2, max(1, sending.period_us // 6)
    return tuple([Gap(start_us, length_us, each) for each in range(0, len(sending.sensors), 3)])


def _bursts(sending: Sending) -> tuple[Disturbance, ...]:
    """Twice, for a tenth of the time, half of the tuples take four tenths of a second more."""
    period_us = sending.period_us
    length_us = max(1, period_us // 10)
    return tuple([Burst(period_us * at // 10, length_us, 0.5, BURST) for at in (3, 7)])


def _both(sending: Sending) -> tuple[Disturbance, ...]:
    return _gaps(sending) + _bursts(sending)


CALM = "calm"

DISORDERS: Mapping[str, Callable[[Sending], tuple[Disturbance, ...]]] = {
    CALM: _nothing,
    "jitter": _nothing,
    "gaps": _gaps,
    "bursts": _bursts,
    "gaps-and-bursts": _both,
}
"""By name; all but the first one with jitter."""
