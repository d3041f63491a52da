"""What becomes of several arrivals of a task that are given to it at once."""

from typing import NamedTuple

from model.vocabulary import Step


class Passage(NamedTuple):
    """What happened, by positions among the arrivals."""

    left_out: list[int]
    """Positions of those that were not accepted."""
    waits_us: list[int]
    """How long the task waited after each of the others."""
    clocks: list[Step]
    """Steps that say no more than what the clock was after one of these."""
    steps: list[tuple[int, Step]]
    """All others, each with the position of the arrival that caused it."""
