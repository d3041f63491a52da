"""What becomes of the arrivals of a task that are given to it several at a time."""

from typing import NamedTuple, Protocol

from model.vocabulary import Step


class Passage(NamedTuple):
    """What happened, by positions among the arrivals of the task."""

    left_out: list[int]
    """Positions of those that were not accepted."""
    waits_us: list[int]
    """How long the task waited after each of the others."""
    clocks: list[Step]
    """Steps that say no more than what the clock was after one of these."""
    steps: list[tuple[int, Step]]
    """All others, each with the position of the arrival that caused it."""


class Passing(Protocol):
    """Gives a task its arrivals."""

    @property
    def passage(self) -> Passage:
        """What has happened so far."""
        ...

    def until(self, end: int, batch: int) -> None:
        """Arrivals of a batch, up to that position."""
        ...
