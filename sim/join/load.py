"""The load of a chain, looked at regularly: it sets block size, shedding and number of workers.

Source: docs/join.md, sections 7 and 8; ``model.join.load`` has the rules.
"""

from typing import NamedTuple

from model.join import load
from model.join.load_claims import Moment
from model.vocabulary import JoinConfig
from model.vocabulary.join import END_US, NO_WATERMARK_US
from sim.join.intake import Shedding
from sim.join.machine import Machine
from sim.join.tuning import Control


class Sample(NamedTuple):
    """The chain as it was at one moment."""

    at_us: float
    moment: Moment
    held: int
    """Tuples in stores, over all workers."""
    waiting: int
    """Arrivals that have come and were not handed over."""
    block_size: int
    watermark_us: int | None
    """The lower one of the two streams' watermarks; ``None`` if a stream has none or has ended."""


class Load:
    """Looks at a chain and decides, by the rules of the model."""

    def __init__(
        self, config: JoinConfig, control: Control, machine: Machine, shedding: Shedding
    ) -> None:
        self.samples: list[Sample] = []
        self.wanted = config.workers
        """The number of workers that there should be."""
        self._control = control
        self._machine, self._shedding = machine, shedding
        self._largest = self._block_size = config.block_size
        self._watch = load.Watch()
        self._smoothed = 0.0
        self._offered = self._shed = 0  # at the last moment

    def look(self, now_us: float, waiting: int) -> None:
        """Look at the load now; ``waiting`` arrivals were not handed over."""
        control, limits = self._control, self._control.limits
        held, watermark_us = self._machine.gauges()
        m, mean = len(held), sum(held) / len(held) / control.capacity
        self._smoothed += control.smoothing * (mean - self._smoothed)
        if control.blocks == "adaptive":
            self._block_size = load.block_size(
                mean, control.capacity, m, limits.tau1, self._largest
            )
            self._machine.set_block_size(self._block_size)
        if control.shed != "no":
            self._set_share()
        if control.scale and self.wanted == m:
            self._watch, self.wanted = load.watch(self._watch, round(now_us), m, mean, limits)
        offered, shed = self._shedding.offered, len(self._shedding.shed)
        moment = Moment(
            round(now_us),
            m,
            mean,
            max(held) / control.capacity,
            self._smoothed,
            self._shedding.share,
            offered - self._offered,
            shed - self._shed,
            self.wanted,
        )
        self._offered, self._shed = offered, shed
        known_us = watermark_us if NO_WATERMARK_US < watermark_us < END_US else None
        self.samples.append(Sample(now_us, moment, sum(held), waiting, self._block_size, known_us))

    def _set_share(self) -> None:
        rule, did = self._control.rule, self._shedding.share > 0
        self._shedding.share = load.share_to_shed(
            did, self._smoothed, rule.limits.tau1, rule.base, rule.power, rule.margin
        )
