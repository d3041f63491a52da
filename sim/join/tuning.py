"""Tuning that only room ``join`` has: costs, intake, and rules of control.

Source: docs/join.md, sections 5, 7 and 8.
"""

from dataclasses import dataclass
from math import exp
from typing import Annotated

from model.vocabulary.join_load import (
    MOST,
    Base,
    Blocks,
    Capacity,
    Least,
    Limits,
    LoadRules,
    Margin,
    Most,
    Shed,
    Smoothing,
    require_in_order,
)
from model.vocabulary.settings import Setting, Settings, require
from sim.kernel.distributions import Constant, Distribution, Lognormal

LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Costs(Settings):
    """Work at speed 1 beside that of the tuples (``Cluster.service``); bytes of a header.

    A tuple's work is due each time that it is admitted, taken, sent or dropped.
    """

    message_us: Annotated[
        float, Setting("work of a message, taken or sent; an intake is one", at_least=0)
    ] = 5.0
    comparison_us: Annotated[
        float, Setting("work of a candidate pair that the index selected", at_least=0)
    ] = 0.02
    result_us: Annotated[float, Setting("work of a result", at_least=0)] = 0.1
    work_sigma: Annotated[
        float,
        Setting("spread of the work of a service, a lognormal factor with mean 1", at_least=0),
    ] = 0.0
    header_bytes: Annotated[
        int, Setting("size of a block, an acknowledgement or a hint without tuples", above=0)
    ] = 50

    @property
    def work_factor(self) -> Distribution:
        """Distribution of the factor of the work of a service; its mean is 1."""
        sigma = self.work_sigma
        return Lognormal(exp(-sigma * sigma / 2), sigma) if sigma else Constant(1.0)


@dataclass(frozen=True, slots=True)
class Control(Settings):
    """Rules by which the mean utilisation sets block size, shedding and number of workers."""

    capacity: Capacity = 1_000
    limits: Limits = LIMITS
    blocks: Blocks = "fixed"
    shed: Shed = "no"
    base: Base = 0.0
    shed_by: Annotated[
        str,
        Setting(
            "utilisation that shedding follows: of all workers, or the fullest",
            choices=("mean", "fullest"),
        ),
    ] = "mean"
    margin: Margin = 0.05
    smoothing: Smoothing = 0.3
    scale: Annotated[bool, Setting("workers come and go")] = False
    least: Least = 1
    most: Most = MOST
    live: Annotated[
        bool, Setting("workers come and go while tuples flow; no: between two epochs")
    ] = False
    every_us: int = 1_000_000
    """Time from one decision to the next."""
    rules: LoadRules | None = None
    """Rules of a chain that decides after every epoch by the time that its workers were busy, as on
    Spark (section 14); all other rules but ``every_us`` are those of the default then."""

    @property
    def resizes(self) -> bool:
        """Return whether the load decides on the number of workers."""
        return self.scale or self.rules is not None

    def _check_together(self) -> None:
        require(self.every_us > 0, "every_us", self.every_us, "above 0")
        require_in_order(self.least, self.most, self.base, self.limits.tau2)
        require(self.scale or not self.live, "live", "yes", "no unless scale is yes")
        is_alone = self.rules is None or not (self.scale or self.shed != "no")
        require(is_alone, "rules", self.rules, "none if scale or shed is given")


UNCONTROLLED = Control()
ORDINARY = Costs()


@dataclass(frozen=True, slots=True)
class ChainTuning(Settings):
    """Costs, intake and control of a chain; ``ValueError`` with one sentence for a bad value."""

    costs: Costs = ORDINARY
    control: Control = UNCONTROLLED
    intake_us: Annotated[
        int, Setting("the intake looks for arrivals at multiples of this", above=0)
    ] = 10_000
    intake_tuples: Annotated[
        int, Setting("most arrivals of a stream that are handed over at once", above=0)
    ] = 256
    hint_us: Annotated[
        int, Setting("longest time without a message before a hint is sent", above=0)
    ] = 100_000
    drains: Annotated[
        bool, Setting("overdue tuples go on to other workers at the end of an epoch, as on Spark")
    ] = False
    commit_us: Annotated[
        int, Setting("pause after an epoch: state is saved, results are shown", at_least=0)
    ] = 10_000
    record: Annotated[
        bool, Setting("record steps of the protocol; not for a chain that scales")
    ] = False
