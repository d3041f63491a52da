"""The truth of a workload of room ``slack``, and the evidence of a trace.

Rules of this file:

* Evidence is independent of the machine: this file decides by itself which arrivals are rejected.
"""

from collections.abc import Mapping
from typing import TypeAlias

from model.vocabulary import SlackConfig, Trace, Workload
from model.vocabulary.slack import Progress
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
