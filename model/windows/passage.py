"""What becomes of several arrivals of a task that are given to it at once."""

from typing import NamedTuple

from model.vocabulary import Step


class Passage(NamedTuple):
    """What happened, by positions among the arrivals."""

    accepted: list[int]
    """Positions of those that were accepted."""
    waits_us: list[int]
    """How long the task waited after each of them."""
    clocks: list[Step]
    """Steps that say no more than what the clock was after one of them."""
    steps: list[tuple[int, Step]]
    """All others, each with the position of the arrival that caused it."""
