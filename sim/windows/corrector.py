"""The corrector of a windowed room: a worker of its own, which reads the history.

Rules of this file:

* A correction is due, planned and carried out on the state of the task at its mark. What takes time
  is reading the history: until the corrector has done that, nobody sees the revisions, and the
  pairs count as pending for the onlooker.
* A correction is one transaction: a corrector that fails makes the one under way again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, TypeAlias

import simpy

from model.vocabulary import Step
from model.vocabulary.answers import Cleared, Correction, Revision
from model.vocabulary.settings import require
from sim.kernel.plain import plain
from sim.kernel.plan import ORDINARY, Worker
from sim.kernel.station import Station


@plain
@dataclass(frozen=True, slots=True)
class WindowTuning:
    """What corrections cost. Raises ``ValueError`` with one sentence that names a bad value."""

    corrector: Worker = ORDINARY
    """The worker that makes corrections, one after the other."""
    correction_us: float = 100_000.0
    """Work of any correction, before it reads the first row."""
    row_us: float = 1.0
    """Work of a row that a correction reads; a row is read once for each window it is in."""

    def __post_init__(self) -> None:
        limit = self.corrector.queue_limit
        require(limit is None, "queue_limit of the corrector", limit, "None, which is no limit")
        for name in ("correction_us", "row_us"):
            value = getattr(self, name)
            require(0 <= value < inf, name, value, "finite and at least 0")


class Corrected(NamedTuple):
    """A correction that can be seen."""

    at_us: float
    task: int
    revisions: Sequence[Revision]
    cleared: Sequence[Cleared]


_Correcting: TypeAlias = tuple[int, Sequence[Revision], Sequence[Cleared]]


class Corrector:
    """The worker that makes the corrections of all tasks, one after the other."""

    def __init__(self, env: simpy.Environment, tuning: WindowTuning) -> None:
        self.corrected: list[Corrected] = []
        """Corrections, in the order in which they could be seen."""
        self.interrupted: set[int] = set()
        """Micro-batches in whose correction the corrector failed."""
        self.station = Station[_Correcting](
            env, tuning.corrector, self._finish, restart=self._restart
        )
        self._env, self._tuning = env, tuning
        self._batches: list[int] = []  # of the corrections that were begun

    def begin(self, task: int, batch: int, steps: Sequence[Step]) -> None:
        """Make the correction that a task recorded at the end of a batch, if it did."""
        if any(isinstance(step, Correction) for step in steps):
            revisions = [step for step in steps if isinstance(step, Revision)]
            cleared = [step for step in steps if isinstance(step, Cleared)]
            rows = sum(step.n for step in revisions)
            work_us = self._tuning.correction_us + self._tuning.row_us * rows
            self._batches.append(batch)
            self.station.offer((task, revisions, cleared), work_us)

    def _finish(self, correction: _Correcting, _arrived_us: float, _started_us: float) -> None:
        self.station.checkpoint()
        self.corrected.append(Corrected(self._env.now, *correction))

    def _restart(self) -> None:
        """Note what was broken off."""
        self.interrupted.update(self._batches[len(self.corrected) :][:1])
