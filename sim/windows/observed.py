"""A finished run, looked at from outside: its answers, its pairs, and what was owed when."""

from dataclasses import dataclass
from typing import Generic

from sim.distributions import FloatArray
from sim.windows.answers import Answers, First, accepted_by
from sim.windows.pairs import Owed, Pairs, owed_by, pairs_of
from sim.windows.task import TaskT
from sim.windows.timed import Room


@dataclass(frozen=True, slots=True)
class Observed(Generic[TaskT]):
    """A finished run, looked at from outside."""

    room: Room[TaskT]
    answers: Answers
    pairs: list[Pairs]
    """One element a task."""
    owed: Owed

    def window_latency_us(self, first: First) -> FloatArray:
        """From the ends of the windows, by the sources' clock, to their first answers."""
        end_us = self.answers.start_us[first.window] + self.room.config.size_us
        latency_us: FloatArray = first.at_us + (self.room.start_us - end_us)
        return latency_us


def observe(room: Room[TaskT]) -> Observed[TaskT]:
    """Look at a finished run."""
    accepted = [accepted_by(room, task) for task in room.tasks]
    answers = Answers(room, accepted)
    pairs = [
        pairs_of(room, task, columns, answers)
        for task, columns in zip(room.tasks, accepted, strict=True)
    ]
    return Observed(room, answers, pairs, owed_by(room))
