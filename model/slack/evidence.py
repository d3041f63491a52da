"""What a workload makes true in room ``slack``, and what a trace of it says.

Rules of this file:

* Independent of the machine: whether an arrival is rejected is decided here anew.
"""

from math import isfinite
from typing import TypeAlias

from model.vocabulary import Event, SlackConfig, Trace, Workload
from model.vocabulary.slack import Progress
from model.windows import evidence

Truth: TypeAlias = evidence.Truth[SlackConfig]
Observed: TypeAlias = evidence.Observed[Progress]


def truth_of(workload: Workload) -> Truth:
    """Count what is true; ``ValueError`` for a configuration that cannot be."""
    config = SlackConfig.from_json(workload.config)
    return evidence.truth_of(workload, config, lambda event: is_rejected(config, event))


def observed_in(truth: Truth, trace: Trace) -> Observed:
    """Arrange a trace by window."""
    return evidence.observed_in(truth, trace, trace.of(Progress))


def is_rejected(config: SlackConfig, event: Event) -> bool:
    """Section 2, step 1."""
    return (
        not isfinite(event.value)
        or (config.needs_positive_values and event.value < 0)
        or (
            config.max_future_us is not None
            and event.event_time_us > event.arrival_us + config.max_future_us
        )
    )
