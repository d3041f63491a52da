"""Wrong changes of a right trace: of one step, or of all steps of a kind."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from model.vocabulary import Step, Trace, Workload

Change = Callable[[list[Any]], Iterable[Any]]
"""Function from the steps of one kind to the changed steps."""


class Changed(NamedTuple):
    """A change of the right trace of a workload, and the claim that must notice it."""

    workload: Workload
    word: type
    """Kind of step that changes."""
    change: Change
    claim: str
    said: str = ""
    """Part of the sentence in which the claim says so."""

    def trace(self, right: Trace) -> Trace:
        """Return a right trace with the change."""
        others: list[Step] = [step for step in right.steps() if type(step) is not self.word]
        return Trace("changed", [*others, *self.change(list(right.of(self.word)))])


def at(position: int, **fields: Any) -> Change:
    """Return a change of some fields of one step."""
    return lambda steps: [
        step._replace(**fields) if n == position % len(steps) else step
        for n, step in enumerate(steps)
    ]


def all_with(**fields: Any) -> Change:
    """Return a change of some fields of all steps."""
    return lambda steps: [step._replace(**fields) for step in steps]


def without(position: int) -> Change:
    """Return a change that leaves out one step."""
    return lambda steps: [step for n, step in enumerate(steps) if n != position % len(steps)]


def extra(step: Step) -> Change:
    """Return a change that adds a step."""
    return lambda steps: [*steps, step]
