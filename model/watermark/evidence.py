"""The truth of a workload of room ``watermark``, and the evidence of a trace.

Rules of this file:

* The truth is independent of the machine: pairs out of order are counted again, for all clusters of
  a task at once, and rejections are decided again.
* The watermark is never computed here; only the trace says where it was.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import isfinite
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from model.vocabulary import Event, Trace, WatermarkConfig, Workload, task_of
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
    return evidence.truth_of(workload, config, lambda event: is_rejected(config, event))


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


def is_rejected(config: WatermarkConfig, event: Event) -> bool:
    """Return whether docs/watermark.md, section 3, step 1, rejects an arrival."""
    limit_us = config.max_future_us
    return not isfinite(event.value) or (
        limit_us is not None and event.event_time_us > event.arrival_us + limit_us
    )


def share_of(reading: str, disorder: Fraction) -> Fraction:
    """Return the share of M that a reading waits."""
    return {
        "disorder": disorder,
        "literal": 1 - disorder,
        "scaled": min(Fraction(1), 2 * disorder),
        "fixed": Fraction(1),
    }[reading]


# ------------------------------------------------------------------------------------ arrivals


class Moment(NamedTuple):
    """A recorded clock and its micro-cluster, counted again."""

    clock: Clock
    event: Event
    before: Clock | None
    """The clock of the task's previous arrival."""
    n: int
    """Number of event times in the cluster."""
    inv: int
    """Number of its pairs out of order."""

    @property
    def disorder(self) -> Fraction:
        """Disorder D: the share of pairs out of order."""
        pairs = self.n * (self.n - 1) // 2
        return Fraction(self.inv, pairs) if pairs else Fraction(1)


@lru_cache(maxsize=1)  # many claims look at one trace
def moments_of(truth: Truth, observed: Observation) -> Mapping[int, Sequence[Moment]]:
    """Return the moments of all clocks in the order of arrival, by task.

    Every accepted arrival needs a recorded clock. Clocks of unknown arrivals are left out; see
    :func:`arrivals_by_task`.
    """
    events = {event.seq: event for event in truth.workload.arrivals}
    moments: dict[int, list[Moment]] = {}
    for task, recorded in observed.clocks.items():
        clocks = [clock for clock in recorded if clock.seq in events]
        found = [events[clock.seq] for clock in clocks]
        counted = inversions([event.event_time_us for event in found], truth.config.k)
        moments[task] = [
            Moment(clock, event, clocks[n - 1] if n else None, min(n + 1, truth.config.k), inv)
            for n, (clock, event, inv) in enumerate(zip(clocks, found, counted, strict=True))
        ]
    return moments


def closings(observed: Observation) -> Callable[[int, int], Clock | None]:
    """Return a function from a task and the end of a window to the first clock that reached it."""
    reached = {
        task: list(accumulate((clock.wm_us for clock in clocks), max))
        for task, clocks in observed.clocks.items()
    }

    def closing(task: int, end_us: int) -> Clock | None:
        position = bisect_left(reached.get(task, ()), end_us)
        clocks = observed.clocks.get(task, ())
        return clocks[position] if position < len(clocks) else None

    return closing


def arrivals_by_task(truth: Truth) -> Mapping[int, Sequence[Event]]:
    """Return the arrivals that are not rejected, by task."""
    config, arrivals = truth.config, truth.workload.arrivals
    by_task: dict[int, list[Event]] = {}
    for event in arrivals:
        if not is_rejected(config, event):
            by_task.setdefault(task_of(event.key, config.tasks), []).append(event)
    return by_task


def inversions(times_us: Iterable[int], k: int) -> list[int]:
    """Return, after each arrival, the number of pairs out of order among the last k event times.

    Two arrivals at distance ``apart`` share a cluster from the later arrival until the earlier one
    leaves. So each distance contributes the sum over a contiguous range of pairs.
    """
    times = np.array(list(times_us), dtype=np.int64)
    total: NDArray[np.int64] = np.zeros(len(times), dtype=np.int64)
    for apart in range(1, min(k, len(times))):
        reversed_at = np.zeros(len(times) + 1, dtype=np.int64)
        reversed_at[apart + 1 :] = np.cumsum(times[:-apart] > times[apart:])
        last = np.arange(1, len(times) + 1)
        first = np.maximum(last - (k - apart), 0)
        total += reversed_at[last] - reversed_at[first]
    return [int(inv) for inv in total]
