"""Words of a chain that follows its load: rules, measurements and the state of its control.

Source: docs/join.md, sections 7, 8 and 14, whose names these are.

Rules of this file:

* Data and what it refuses. The rules themselves are written twice: for the model and for Spark.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from model.vocabulary.settings import Setting, Settings, is_int, require

BLOCK_SIZES = ("fixed", "adaptive")
SHEDDING = {"no": 1, "linear": 1, "quadratic": 2}
"""Rules of shedding, each with its power (docs/join.md, section 8)."""

# Settings that rules of load share with the control of a simulated chain.
Least = Annotated[int, Setting("fewest workers", at_least=1)]
Most = Annotated[int, Setting("most workers", at_least=1)]
MOST = 1_000
Capacity = Annotated[int, Setting("C, tuples held by a worker whose utilisation is 1", above=0)]
Blocks = Annotated[
    str, Setting("block size: fixed, or zeta(tau) up to that of the query", choices=BLOCK_SIZES)
]
Shed = Annotated[str, Setting("rule of shedding", choices=SHEDDING)]
Base = Annotated[float, Setting("B, share that is shed when shedding begins", at_least=0)]
Margin = Annotated[float, Setting("how far below tau1 shedding ends", at_least=0)]
Smoothing = Annotated[
    float, Setting("weight of the latest utilisation in the smoothed one", above=0, at_most=1)
]


@dataclass(frozen=True, slots=True)
class Limits(Settings):
    """Utilisations at which a chain reacts.

    Raises ``ValueError`` unless ``0 < tau0 < tau1 / 2 < tau1 <= tau2 <= 1``.
    """

    tau0: Annotated[float, Setting("utilisation below which workers leave")] = 0.25
    """Utilisation below which there are too many workers."""
    tau1: Annotated[float, Setting("utilisation above which tuples are shed")] = 0.8
    """Utilisation above which tuples are shed."""
    tau2: Annotated[float, Setting("utilisation above which workers are added")] = 0.8
    """Utilisation above which there are too few workers."""
    out_after_us: Annotated[int, Setting("time above tau2 until workers are added", at_least=0)] = (
        30_000_000
    )
    in_after_us: Annotated[int, Setting("time below tau0 until workers leave", at_least=0)] = (
        300_000_000
    )

    def _check_together(self) -> None:
        if not 0 < self.tau0 < self.aim < self.tau1 <= self.tau2 <= 1:
            msg = (
                f"tau0, tau1, tau2 are {self.tau0!r}, {self.tau1!r}, {self.tau2!r}; "
                "it must be 0 < tau0 < tau1/2 < tau1 <= tau2 <= 1"
            )
            raise ValueError(msg)

    @property
    def aim(self) -> float:
        """Utilisation tau* that a change aims at."""
        return self.tau1 / 2


@dataclass(frozen=True, slots=True)
class LoadRules(Limits):
    """Rules by which the utilisation sets number of workers, block size and share to shed.

    Raises ``ValueError`` with one sentence for rules that contradict each other.

    Examples:
        >>> LoadRules(most=8, shed="linear").tau1
        0.8
    """

    least: Least = 1
    most: Most = MOST
    capacity: Capacity = 1_000
    blocks: Blocks = "fixed"
    shed: Shed = "no"
    base: Base = 0.0
    margin: Margin = 0.05
    smoothing: Smoothing = 0.3
    block_size: int = 64
    """Largest block, zeta*: that of the chain, which has the setting."""

    def _check_together(self) -> None:
        Limits._check_together(self)
        require_in_order(self.least, self.most, self.base, self.tau2)
        good = is_int(self.block_size) and self.block_size >= 1
        require(good, "block_size", self.block_size, "an integer >= 1")


def require_in_order(least: int, most: int, base: float, tau2: float) -> None:
    """Raise ``ValueError`` if ``least`` is above ``most``, or ``base`` above ``tau2``."""
    require(least <= most, "least", least, f"at most {most}, which is most")
    require(base <= tau2, "base", base, f"at most {tau2}, which is tau2")


class Measured(NamedTuple):
    """Measurements of one epoch."""

    epoch: int
    elapsed_us: int
    """Time from the commit of the epoch before to that of this one; at least 1."""
    busy_us: tuple[int, ...]
    """Time in which a worker was at work, by worker."""


class LoadState(NamedTuple):
    """State of the control after an epoch."""

    at_us: int
    """Elapsed time of all epochs."""
    workers: int
    share: float
    """Share of the arrivals that is shed."""
    smoothed: float
    """Smoothed utilisation."""
    high_since_us: int | None = None
    """First moment since which the utilisation has been above tau2."""
    low_since_us: int | None = None
    """First moment since which the utilisation has been below tau0."""
