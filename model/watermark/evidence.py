"""The truth of a workload of room ``watermark``, and the evidence of a trace.

Rules of this file:

* The truth is independent of the machine: rejections are decided again.
* Pairs out of order and the watermark are those of the trace.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from model.vocabulary import Trace, WatermarkConfig, Workload
from model.vocabulary.watermark import Clock, Inserted
from model.windows import evidence

Truth: TypeAlias = evidence.Truth[WatermarkConfig]
Observation: TypeAlias = evidence.Observation[Clock]

IDENTITY: Mapping[str, tuple[str, ...]] = {
    **evidence.IDENTITY,
    "clock": ("task", "seq"),
    "passing": ("seq",),
    "inserted": ("seq",),
}
"""Identifying fields of each kind of step; the others are compared."""


def truth_of(workload: Workload) -> Truth:
    """Compute the truth of a workload. Raise ``ValueError`` for an impossible configuration."""
    config = WatermarkConfig.from_json(workload.config)
    return evidence.truth_of(workload, config)


def observe_trace(truth: Truth, trace: Trace) -> Observation:
    """Arrange a trace by window; inserted watermarks are clocks of every task."""
    clocks = trace.of(Clock)
    if truth.config.upstreams:
        inserted = trace.of(Inserted)
        clocks = tuple(
            Clock(
                task, each.seq, each.batch, each.t_max_us, 0, each.t_max_us - each.wm_us, each.wm_us
            )
            for task in range(truth.config.tasks)
            for each in inserted
        )
    return evidence.arrange(truth, trace, clocks)


# ------------------------------------------------------------------------------------ arrivals


class Moment(NamedTuple):
    """A recorded clock, and the size of its micro-cluster."""

    clock: Clock
    n: int
    """Number of event times in the cluster."""

    @property
    def disorder(self) -> Fraction:
        """Disorder D: the share of pairs out of order, as they are recorded."""
        pairs = self.n * (self.n - 1) // 2
        return Fraction(self.clock.inv, pairs) if pairs else Fraction(1)


def moments_of(truth: Truth, observed: Observation) -> Mapping[int, Sequence[Moment]]:
    """Return the moments of all clocks in the order of arrival, by task.

    Every accepted arrival needs a recorded clock.
    """
    return {
        task: [Moment(clock, min(n, truth.config.k)) for n, clock in enumerate(clocks, start=1)]
        for task, clocks in observed.clocks.items()
    }
