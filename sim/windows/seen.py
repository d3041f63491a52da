"""Answers, pairs and debts of a finished run together: what figures are computed from."""

from dataclasses import dataclass

from sim.kernel.distributions import FloatArray
from sim.windows.answers import Answers, First
from sim.windows.observed import Observed
from sim.windows.pairs import Owed, Pairs, owed_by, pairs_of


@dataclass(frozen=True, slots=True)
class SeenRun:
    """A finished run with its answers and pairs."""

    observed: Observed
    answers: Answers
    pairs: list[Pairs]
    """One element a task."""
    owed: Owed

    def window_latency_us(self, first: First) -> FloatArray:
        """Return the time from the ends of windows, by the sources' clock, to first answers."""
        end_us = self.answers.start_us[first.window] + self.observed.query.size_us
        latency_us: FloatArray = first.at_us + (self.observed.room.start_us - end_us)
        return latency_us


def seen_in(observed: Observed) -> SeenRun:
    """Find answers and pairs of a finished run."""
    answers = Answers(observed)
    pairs = [pairs_of(observed, task, answers) for task in observed.tasks]
    return SeenRun(observed, answers, pairs, owed_by(observed))
