"""The truth of a workload of room ``slack``, and the evidence of a trace.

Rules of this file:

* Evidence is independent of the machine: this file decides by itself which arrivals are rejected.
"""

from bisect import bisect_left
from collections.abc import Mapping
from typing import TypeAlias

from model.vocabulary import SlackConfig, Trace, Workload
from model.vocabulary.slack import ADAPTIVE_CONTROLS, Judged, Progress
from model.windows import evidence

Truth: TypeAlias = evidence.Truth[SlackConfig]
Observation: TypeAlias = evidence.Observation[Progress]

IDENTITY: Mapping[str, tuple[str, ...]] = {
    **evidence.IDENTITY,
    "judged": ("task", "order"),
    "progress": ("task", "batch"),
}
"""Identifying fields of each kind of step; the others are compared."""


def truth_of(workload: Workload) -> Truth:
    """Compute the truth of a workload. Raise ``ValueError`` for an impossible configuration."""
    config = SlackConfig.from_json(workload.config)
    return evidence.truth_of(workload, config)


def observe_trace(truth: Truth, trace: Trace) -> Observation:
    """Arrange a trace by window."""
    return evidence.arrange(truth, trace, trace.of(Progress))


class Start:
    """The least K of each task at its start (us), by the judgements in a trace."""

    def __init__(self, truth: Truth, observed: Observation) -> None:
        config = truth.config
        least_us = config.start_slack if config.control in ADAPTIVE_CONTROLS else 0
        limit_us = config.max_slack_us
        self._least_us = least_us if limit_us is None else min(least_us, limit_us)
        self._delta = config.delta
        self._batches: dict[int, list[int]] = {}
        """Batches of the judgements of each task, ascending."""
        for step in sorted(observed.trace.of(Judged), key=lambda step: step.batch):
            self._batches.setdefault(step.task, []).append(step.batch)

    def most_us(self, task: int, batch: int) -> int:
        """Return what the first arrival of a batch may have had to wait for at least."""
        judged = bisect_left(self._batches.get(task, ()), batch)
        return self._least_us if judged * self._delta < 2 else 0

    def least_us(self, task: int, batch: int) -> int:
        """Return what every arrival of a batch had to wait for at least.

        A trace without any judgement does not say whether there were some: 0.
        """
        return self.most_us(task, batch + 1) if self._batches else 0
