"""A demand on a chain, and the hardware that is to meet it.

Source: docs/cluster.md, section "Planning".
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from model.vocabulary.settings import Setting, Settings
from sim.calibration import Calibration
from sim.join.tuning import ORDINARY, Costs
from sim.kernel.link import Tier

BUSY_MAX = 0.95
"""Largest share of the time for which a worker or a link may be busy."""
SECOND_US = 1_000_000
EPOCHS_A_START = 10
"""An epoch is this many times as long as its start."""


@dataclass(frozen=True, slots=True)
class Demand(Settings):
    """The task of a chain; ``ValueError`` with one sentence for an impossible value."""

    rate_hz: Annotated[
        float, Setting("tuples a second of both streams together", above=0, at_most=1_000_000)
    ]
    window_us: Annotated[int, Setting("length of the window", above=0)]
    latency_us: Annotated[
        int, Setting("largest latency of a pair, from the arrival of its later tuple", above=0)
    ]
    selectivity: Annotated[
        float,
        Setting("share of the pairs within the window that the index selects", above=0, at_most=1),
    ] = 0.0001

    @property
    def pairs_hz(self) -> float:
        """Pairs a second that the index selects; the streams have equal rates."""
        window_s = self.window_us / SECOND_US
        return (self.rate_hz / 2) ** 2 * 2 * window_s * self.selectivity


class Hardware(NamedTuple):
    """Costs of a worker of speed 1, and the link between two neighbours."""

    link: Tier
    tuple_us: float = 0.2
    costs: Costs = ORDINARY
    epoch_us: float = 0.0
    """Time that the start and the end of an epoch take; 0: the whole stream is one epoch."""
    speed: float = 1.0
    """Speed of the slowest worker, by which all are planned."""
    tuple_bytes: int = 100

    @property
    def busy_max(self) -> float:
        """Largest share of the time that is left for work."""
        return BUSY_MAX * (1 - 1 / EPOCHS_A_START if self.epoch_us else 1)

    @property
    def epoch_length_us(self) -> float:
        """Time from one epoch to the next; 0 if the whole stream is one."""
        return EPOCHS_A_START * self.epoch_us

    @property
    def epoch_latency_us(self) -> tuple[float, float]:
        """Time that epochs add to a latency (p50, p99): until the next start, then to the end."""
        length_us = self.epoch_length_us
        busy_us = self.epoch_us + self.busy_max * length_us
        return 0.50 * length_us + busy_us, 0.99 * length_us + busy_us


def hardware_of(found: Calibration, bandwidth_mbps: float | None = None) -> Hardware:
    """Return the hardware of a calibration, perhaps with links of another bandwidth."""
    costs = Costs(
        found.typical("message_us"),
        found.typical("comparison_us"),
        found.typical("result_us"),
        header_bytes=round(found.message_bytes),
    )
    link = found.link
    if bandwidth_mbps is not None:
        link = link._replace(bandwidth_mbps=bandwidth_mbps)
    return Hardware(
        link,
        found.typical("tuple_us"),
        costs,
        found.typical("epoch_us"),
        min(found.speeds),
        round(found.tuple_bytes),
    )
