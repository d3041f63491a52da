"""Load control of a chain: the load sets block size, shedding and number of workers.

Source: docs/join.md, sections 7 and 8; ``model.join.control`` has the rules.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from model.join.control import (
    Watch,
    choose_block_size,
    decide,
    decision_at,
    share_to_shed,
    start,
    watch,
    within,
)
from model.vocabulary import Event, JoinConfig
from model.vocabulary.join import END_US, NO_WATERMARK_US, Decision
from model.vocabulary.join_load import SHEDDING, Measured
from model.vocabulary.settings import require
from sim.join.line import Line
from sim.join.machine import ChainMachine
from sim.join.tuning import Control

NO_DECISIONS = "no for a chain whose decisions are given"


class Shedding:
    """The arrivals that are shed, each decided by a uniform draw of its own."""

    def __init__(self, chances: Iterator[float]) -> None:
        self.share = 0.0
        """Share that is shed at present."""
        self.shed: set[int] = set()
        """Numbers, in the log, of the arrivals that were shed."""
        self._chances = chances
        self._drawn: list[float] = []

    def decide(self, events: Sequence[Event], first: int) -> None:
        """Decide on arrivals of an epoch whose first arrival has number ``first`` in the log.

        The first arrival always stays, so that there is no epoch without arrivals.
        """
        numbers = [event.seq for event in events if event.seq != first]
        if self.share:
            self.shed.update([each for each in numbers if self._chance(each) < self.share])

    def _chance(self, number: int) -> float:
        """Return the draw of an arrival; the order of calls does not matter."""
        while len(self._drawn) <= number:
            self._drawn.append(next(self._chances))
        return self._drawn[number]


class Concluded(NamedTuple):
    """An epoch whose measurement led to a decision."""

    measured: Measured
    decision: Decision
    """Decision for the next epoch."""


class Sample(NamedTuple):
    """The chain at one moment."""

    at_us: float
    workers: int
    mean: float
    """Mean utilisation of the workers: tuples held, divided by ``capacity``."""
    fullest: float
    """Utilisation of the fullest worker."""
    smoothed: float
    """Utilisation that shedding follows."""
    share: float
    """Share of the following arrivals that is to be shed."""
    held: int
    """Number of tuples in the stores of all workers."""
    waiting: int
    """Number of arrivals not handed over yet."""
    block_size: int
    watermark_us: int | None
    """Lower watermark of the two streams; ``None`` if a stream has none or has ended."""


class LoadControl:
    """Controls a chain by its load, by the rules of the model."""

    def __init__(
        self, config: JoinConfig, control: Control, machine: ChainMachine, shedding: Shedding
    ) -> None:
        self.samples: list[Sample] = []
        self.wanted = config.workers
        """Number of workers that the rules want."""
        require(not (config.decisions and control.scale), "scale", "yes", NO_DECISIONS)
        require(not config.decisions or control.shed == "no", "shed", control.shed, NO_DECISIONS)
        self._config, self._control = config, control
        self._machine, self._shedding = machine, shedding
        self._largest = self._block_size = config.block_size
        self._watch = Watch()
        self._smoothed = 0.0
        self.concluded: list[Concluded] = []
        """Epochs that were measured."""
        require(not (config.decisions and control.rules), "rules", control.rules, NO_DECISIONS)
        self._state = None if control.rules is None else start(control.rules, config.workers)

    def take_decision(self, epoch: int) -> int:
        """Return the number of workers of an epoch; take the block size that was decided on."""
        if self._config.decisions:
            decided = decision_at(self._config, epoch)
            self.wanted, self._largest = decided.workers, decided.block_size
            is_fixed = self._control.blocks == "fixed"
            self._block_size = self._largest if is_fixed else min(self._block_size, self._largest)
            self._machine.set_block_size(self._block_size)
        return self.wanted

    def conclude(self, epoch: int, since_us: float, now_us: float, line: Line) -> None:
        """Decide on the next epoch by the time in which workers were busy in the last one."""
        busy = [each.busy for each in line.stations[: line.workers]]
        spans_us = [each.integral_us([since_us, now_us]) for each in busy]
        measured = Measured(
            epoch=epoch,
            elapsed_us=max(1, round(now_us - since_us)),
            busy_us=tuple([round(float(end - begin)) for begin, end in spans_us]),
        )
        rules, state = self._control.rules, self._state
        assert rules is not None
        assert state is not None
        self._state, decided = decide(rules, state, measured)
        self.concluded.append(Concluded(measured, decided))
        self.wanted, self._block_size = decided.workers, decided.block_size
        self._shedding.share = decided.share
        self._machine.set_block_size(decided.block_size)

    def look(self, now_us: float, waiting: int) -> None:
        """Sample the load and apply the rules; ``waiting`` arrivals were not handed over."""
        control, limits = self._control, self._control.limits
        held, watermark_us = self._machine.gauges()
        m, mean = len(held), sum(held) / len(held) / control.capacity
        fullest = max(held) / control.capacity
        followed = mean if control.shed_by == "mean" else fullest
        self._smoothed += control.smoothing * (followed - self._smoothed)
        if control.blocks == "adaptive":
            self._block_size = choose_block_size(
                mean, control.capacity, m, limits.tau1, self._largest
            )
            self._machine.set_block_size(self._block_size)
        if control.shed != "no":
            self._shedding.share = share_to_shed(
                self._shedding.share > 0,
                self._smoothed,
                limits.tau1,
                control.base,
                SHEDDING[control.shed],
                control.margin,
            )
        if control.scale and self.wanted == m:
            self._watch, wanted = watch(self._watch, round(now_us), m, mean, limits)
            self.wanted = within(wanted, control.least, control.most)
        known_us = watermark_us if NO_WATERMARK_US < watermark_us < END_US else None
        load = (m, mean, fullest, self._smoothed, self._shedding.share)
        found = Sample(now_us, *load, sum(held), waiting, self._block_size, known_us)
        self.samples.append(found)
