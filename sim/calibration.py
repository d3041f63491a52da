"""A calibration: the measured costs of a cluster, as data that simulations start from.

Source: docs/cluster.md, section "Calibrating".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Annotated, TypeAlias

from model.vocabulary.settings import JsonObject, PlainData, Setting, Settings, require
from sim.kernel.link import Tier

VERSION = 1
Spread: TypeAlias = tuple[float, ...]
"""Least, median and largest of several repetitions."""
LARGEST_BYTES = 2**40
"""Largest size of a message or a tuple; beyond it sums of bits would leave all floats."""


@dataclass(frozen=True, slots=True)
class Calibration(Settings):
    """Measured costs of a cluster; ``ValueError`` with one sentence for an impossible value.

    Each cost is the least, the median and the largest of several repetitions.
    """

    master: Annotated[str, Setting("the cluster")]
    seed: Annotated[int, Setting("seed of the tuples that were joined")]
    message_us: Annotated[Spread, Setting("work of a message, taken or sent", at_least=0)]
    tuple_us: Annotated[Spread, Setting("work of a tuple, admitted, taken or sent", at_least=0)]
    comparison_us: Annotated[Spread, Setting("work of a pair that was selected", at_least=0)]
    result_us: Annotated[Spread, Setting("work of a result", at_least=0)]
    epoch_us: Annotated[Spread, Setting("an epoch of a chain without work", at_least=0)]
    batch_us: Annotated[Spread, Setting("a micro-batch of grouping without work", at_least=0)]
    latency_us: Annotated[Spread, Setting("latency between hosts, one way", at_least=0)]
    bandwidth_mbps: Annotated[Spread, Setting("bandwidth between hosts", above=0)]
    near_latency_us: Annotated[Spread, Setting("latency within a host, one way", at_least=0)]
    near_bandwidth_mbps: Annotated[Spread, Setting("bandwidth within a host", above=0)]
    message_bytes: Annotated[
        float, Setting("size of a message without tuples", at_least=1, at_most=LARGEST_BYTES)
    ]
    tuple_bytes: Annotated[
        float, Setting("size of a tuple in a block", at_least=1, at_most=LARGEST_BYTES)
    ]
    speeds: Annotated[tuple[float, ...], Setting("relative speed of each slot", above=0)]
    hosts: Annotated[tuple[int, ...], Setting("host of each slot", at_least=0)]
    version: Annotated[int, Setting("version of the format")] = VERSION

    def _check_together(self) -> None:
        require(self.version == VERSION, "version", self.version, str(VERSION))
        for name in COSTS:
            found = getattr(self, name)
            good = len(found) == 3 and all(one <= other for one, other in pairwise(found))
            require(good, name, list(found), "three numbers: the least, the median, the largest")
        good = len(self.speeds) == len(self.hosts) > 0
        require(good, "speeds", list(self.speeds), f"{len(self.hosts)} numbers, as hosts has")

    @classmethod
    def _decoded(cls, data: JsonObject) -> dict[str, PlainData]:
        return {
            name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
        }

    def typical(self, name: str) -> float:
        """Return the median of a cost."""
        found: Spread = getattr(self, name)
        return found[1]

    @property
    def link(self) -> Tier:
        """The link between two hosts."""
        return Tier(self.typical("latency_us"), self.typical("bandwidth_mbps"))

    @property
    def near(self) -> Tier:
        """The way between two slots of one host."""
        return Tier(self.typical("near_latency_us"), self.typical("near_bandwidth_mbps"))


COSTS = tuple(name for name in Calibration.__slots__ if name.endswith(("_us", "_mbps")))
"""Fields that are the spread of a cost."""


def spread_of(values: Sequence[float]) -> Spread:
    """Return the least, the median and the largest of some values."""
    return min(values), median(values), max(values)
