"""Load of a chain: number of workers, block size, share to shed, and bytes on the network.

Source: docs/join.md, sections 7 and 8.

Rules of this file:

* Pure arithmetic: numbers in, numbers out. The caller brings the time.
* ``utilisation`` is the number of tuples held divided by ``capacity``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor
from typing import NamedTuple

from model.vocabulary.join_load import Limits

# --------------------------------------------------------------------------------------- workers


class Watch(NamedTuple):
    """Times at which the utilisation became too high, or too low (us)."""

    high_since_us: int | None = None
    low_since_us: int | None = None


def workers_for(workers: int, utilisation: float, limits: Limits) -> int:
    """Return m', the number of workers whose mean utilisation comes closest to the aim."""
    return max(1, floor(workers * utilisation / limits.aim + 0.5))


def within(workers: int, least: int, most: int) -> int:
    """Return the number of workers, brought into a range."""
    return min(max(workers, least), most)


def is_idle(utilisation: float, limits: Limits) -> bool:
    """Return whether there are too many workers."""
    return utilisation < limits.tau0


def watch(
    seen: Watch,
    now_us: int,
    workers: int,
    utilisation: float,
    limits: Limits,
    idle: Callable[[float, Limits], bool] = is_idle,
) -> tuple[Watch, int]:
    """Return the next watch state, and the number of workers from now on."""
    high = seen.high_since_us if seen.high_since_us is not None else now_us
    low = seen.low_since_us if seen.low_since_us is not None else now_us
    if utilisation > limits.tau2:
        if now_us - high >= limits.out_after_us:
            return Watch(), workers_for(workers, utilisation, limits)
        return Watch(high, None), workers
    if idle(utilisation, limits):
        if now_us - low >= limits.in_after_us:
            return Watch(), workers_for(workers, utilisation, limits)
        return Watch(None, low), workers
    return Watch(), workers


# -------------------------------------------------------------------------------------- shedding


def shed_share(utilisation: float, tau1: float, base: float = 0.0, power: int = 1) -> float:
    """Return the share of arrivals to shed: ``base + (1 - base) * x**power`` above tau1, else 0.

    ``power`` is 1 (linear) or 2 (quadratic); x is 0 at ``tau1`` and 1 at full utilisation.
    """
    if utilisation <= tau1:
        return 0.0
    x = (min(utilisation, 1.0) - tau1) / (1 - tau1) if tau1 < 1 else 1.0
    return float(base + (1 - base) * (x if power == 1 else x * x))


def sheds(did: bool, smoothed: float, tau1: float, margin: float) -> bool:
    """Return whether to shed; ``did`` says whether the chain has been shedding.

    Shedding stops only ``margin`` below where it starts. Without a margin, a base share greater
    than 0 switches shedding on and off at ``tau1``.
    """
    return smoothed > (tau1 - margin if did else tau1)


def share_to_shed(
    did: bool, smoothed: float, tau1: float, base: float, power: int, margin: float
) -> float:
    """Return the share of arrivals to shed from now on; ``base`` if shedding merely goes on."""
    if not sheds(did, smoothed, tau1, margin):
        return 0.0
    return max(base, shed_share(smoothed, tau1, base, power))


# ------------------------------------------------------------------------------------ block size


def block_size(utilisation: float, capacity: int, workers: int, tau1: float, largest: int) -> int:
    """Return zeta(tau): the largest block that keeps workers below tau1 while the mean is."""
    if workers == 1:
        return largest
    allowed = floor(2 * capacity * (tau1 - utilisation) / (workers - 1))
    return max(1, min(allowed, largest))


def fullest(mean: float, zeta: int, capacity: int, workers: int) -> float:
    """Return the utilisation of the fullest worker if neighbours hold at most zeta tuples less."""
    return mean + zeta * (workers - 1) / (2 * capacity)


# ------------------------------------------------------------------------------------- bandwidth


@dataclass(frozen=True, slots=True)
class Traffic:
    """The stream that a chain carries, and the sizes of its messages."""

    tuples_per_s: float
    """Tuples of both streams together."""
    workers: int
    tuple_bytes: float
    header_bytes: float
    headers: int = 2
    """Headers for a block and hop: the block's own and the acknowledgement's."""
    out_bytes_per_s: float = 0.0

    def least(self) -> float:
        """Return the bytes/s without headers."""
        return self.tuples_per_s * (self.workers - 1) * self.tuple_bytes + self.out_bytes_per_s

    def bytes_per_s(self, mean_block: float) -> float:
        """Return the bytes/s with blocks of this mean size."""
        headers = self.headers * self.header_bytes / mean_block
        return self.least() + self.tuples_per_s * (self.workers - 1) * headers

    def overhead_bound(self, mean_block: float) -> float:
        """Return the share by which headers exceed the least, at most."""
        return self.headers * self.header_bytes / (mean_block * self.tuple_bytes)
