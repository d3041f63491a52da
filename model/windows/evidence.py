"""The truth of a workload, and the evidence of a trace, side by side by window.

Rules of this file:

* The truth is independent of the machine: it is counted from the arrivals alone, by docs/slack.md,
  sections 1, 3 and 6.
* An aggregate is that of the model. Spark and ``properties/oracles/promises.py`` compute it again,
  and the model's own is compared with examples by hand.
* Whether a window was closed, or a tuple late, is never computed here; only the trace says so.
* Batches are those of the workload; a flush is the batch after the last one.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from model.vocabulary import Trace, Workload, task_of
from model.vocabulary.slack import Progress
from model.vocabulary.watermark import Clock
from model.vocabulary.windows import Cleared, Late, Result, Revision, WindowQuery
from model.windows.aggregates import Aggregate, aggregate_of

WindowId = tuple[int, int, str]
"""(task, start_us, key)"""


QueryT = TypeVar("QueryT", bound=WindowQuery)
QueryT_co = TypeVar("QueryT_co", bound=WindowQuery, covariant=True)


IDENTITY: Mapping[str, tuple[str, ...]] = {
    "result": ("task", "start_us", "key"),
    "late": ("task", "start_us", "key", "source_id"),
    "rejected": ("task", "seq"),
    "correction": ("task", "batch"),
    "cleared": ("task", "start_us", "key", "source_id"),
    "revision": ("task", "start_us", "key", "revision"),
    "final": ("task", "start_us", "key"),
}
"""Identifying fields of each kind of step, for ``model.checking.diff``; the others are compared."""


class AcceptedTuple(NamedTuple):
    """The first accepted delivery of a tuple."""

    batch: int
    source_id: int
    event_time_us: int
    value: float


# ---------------------------------------------------------------------------------------- truth


@dataclass(frozen=True, slots=True, eq=False)
class Truth(Generic[QueryT_co]):
    """Everything that the arrivals alone determine."""

    workload: Workload
    config: QueryT_co
    batches: int
    """Number of micro-batches; also the number of the flush, if there is one."""
    flush: bool
    windows: Mapping[WindowId, Sequence[AcceptedTuple]]
    """Distinct accepted tuples of every window, in arrival order."""
    incomplete: Collection[WindowId]
    """Windows of arrivals that are rejected."""
    deliveries: Mapping[tuple[int, int], Sequence[int]]
    """Batches of arrival of the tuples delivered more than once, by (task, identity)."""
    arrived: Mapping[int, Sequence[AcceptedTuple]]
    """First accepted deliveries in arrival order, by task."""
    max_delay_us: Mapping[tuple[int, int], int]
    """Largest delay up to the end of a batch, redeliveries included, by (task, batch)."""
    aggregate: Aggregate
    """Function from the values of a window, at least one, to its right answer."""
    has_exact_sums: bool

    def end_us(self, window: WindowId) -> int:
        """Return the end of a window (exclusive)."""
        return window[1] + self.config.size_us

    def is_right(self, answer: float, values: Sequence[float]) -> bool:
        """Return whether an answer equals the aggregate, within 1e-9 if sums are not exact."""
        right = self.aggregate(values)
        if answer == right or self.has_exact_sums:
            return answer == right
        scale = max(abs(right), abs(answer), *map(abs, values))
        return abs(answer - right) <= 1e-9 * scale


def truth_of(workload: Workload, config: QueryT) -> Truth[QueryT]:
    """Count windows, deliveries and delays of the arrivals that are not rejected."""
    spec = config.windows
    windows: dict[WindowId, list[AcceptedTuple]] = {}
    by_task: dict[int, list[AcceptedTuple]] = {}
    deliveries: dict[tuple[int, int], list[int]] = {}
    max_delay_us: dict[tuple[int, int], int] = {}
    clocks: dict[int, int] = {}
    delays = dict.fromkeys(range(config.tasks), 0)
    tasks: dict[str, int] = {}
    incomplete: set[WindowId] = set()
    batches = tuple(workload.batches())
    for batch, arrivals in enumerate(batches):
        for event in arrivals:
            if event.key not in tasks:
                tasks[event.key] = task_of(event.key, config.tasks)
            task, ts_us = tasks[event.key], event.event_time_us
            key = event.key if config.keyed else ""
            held = [(task, spec.start_us(index), key) for index in spec.indices(ts_us)]
            if not isfinite(event.value):  # docs/slack.md, section 2, step 1
                incomplete.update(held)
                continue
            clocks[task] = max(clocks.get(task, ts_us), ts_us)
            delays[task] = max(delays[task], clocks[task] - ts_us)
            earlier = deliveries.setdefault((task, event.source_id), [])
            earlier.append(batch)
            if len(earlier) > 1:
                continue
            arrived = AcceptedTuple(batch, event.source_id, ts_us, event.value)
            by_task.setdefault(task, []).append(arrived)
            for window in held:
                windows.setdefault(window, []).append(arrived)
        max_delay_us.update(((task, batch), delay) for task, delay in delays.items())
    max_delay_us.update(((task, len(batches)), delay) for task, delay in delays.items())
    return Truth(
        workload,
        config,
        len(batches),
        workload.flush,
        windows,
        incomplete,
        {identity: found for identity, found in deliveries.items() if len(found) > 1},
        by_task,
        max_delay_us,
        aggregate_of(config),
        has_exact_sums([event.value for event in workload.arrivals]),
    )


def has_exact_sums(values: Sequence[float]) -> bool:
    """Return whether float64 sums of these values are exact in every order.

    They are if 10 binary places suffice for each value.
    """
    finite = [value for value in values if isfinite(value)]
    return all((value * 1024).is_integer() for value in finite) and (
        sum(map(abs, finite)) < (1 << 42)
    )


# ------------------------------------------------------------------------------------- observed


Tick: TypeAlias = Progress | Clock
"""A step that shows the clock of a task."""
TickT_co = TypeVar("TickT_co", bound=Tick, covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class Observation(Generic[TickT_co]):
    """The steps of a trace that concern answers, by window."""

    trace: Trace
    results: Mapping[WindowId, Sequence[Result]]
    revisions: Mapping[WindowId, Sequence[Revision]]
    late: Mapping[WindowId, Mapping[int, Sequence[int]]]
    """Batches in which a pair was recorded as late, by window and identity."""
    cleared: Mapping[WindowId, Mapping[int, Sequence[int]]]
    clocks: Mapping[int, Sequence[TickT_co]]
    """Recorded clocks in their order, by task."""
    closed: Mapping[WindowId, int]
    """First batch at whose end the trace says that a window is closed: by its result, a late pair,
    the watermark, or a flush."""

    def is_pending(self, window: WindowId, source_id: int, batch: int) -> bool:
        """Return whether the pair was late and not cleared at the end of a batch."""
        cleared = self.cleared.get(window, {}).get(source_id, ())
        return any(
            late <= batch and not any(late <= clear <= batch for clear in cleared)
            for late in self.late.get(window, {}).get(source_id, ())
        )


def arrange(
    truth: Truth[WindowQuery], trace: Trace, ticks: Sequence[TickT_co]
) -> Observation[TickT_co]:
    """Arrange a trace by window; ``ticks`` are its steps that show a clock, in their order."""
    results: dict[WindowId, list[Result]] = {}
    for result in trace.of(Result):
        results.setdefault(result[:3], []).append(result)
    revisions: dict[WindowId, list[Revision]] = {}
    for revision in trace.of(Revision):
        revisions.setdefault(revision[:3], []).append(revision)
    clocks: dict[int, list[TickT_co]] = {}
    for tick in ticks:
        clocks.setdefault(tick.task, []).append(tick)
    late = _batches_by_pair(trace.of(Late))
    cleared = _batches_by_pair(trace.of(Cleared))
    closed = _closed_by_wm(truth, clocks)
    for window, found in results.items():
        closed[window] = min(found[0].batch, closed.get(window, found[0].batch))
    for window, by_identity in late.items():
        first = min(map(min, by_identity.values()))
        closed[window] = min(first, closed.get(window, first))
    return Observation(trace, results, revisions, late, cleared, clocks, closed)


def _closed_by_wm(
    truth: Truth[WindowQuery], clocks: Mapping[int, Sequence[Tick]]
) -> dict[WindowId, int]:
    """Return the batch at whose end each non-empty window was closed by watermark or flush."""
    wm_us = {task: [tick.wm_us for tick in clock] for task, clock in clocks.items()}
    closed: dict[WindowId, int] = {}
    for window in truth.windows:
        task, start_us, _ = window
        position = bisect_left(wm_us.get(task, ()), start_us + truth.config.size_us)
        if position < len(clocks.get(task, ())):
            closed[window] = clocks[task][position].batch
        elif truth.flush:
            closed[window] = truth.batches
    return closed


def _batches_by_pair(
    steps: Sequence[Late] | Sequence[Cleared],
) -> dict[WindowId, dict[int, list[int]]]:
    pairs: dict[WindowId, dict[int, list[int]]] = {}
    for step in steps:
        by_identity = pairs.setdefault(step[:3], {})
        by_identity.setdefault(step.source_id, []).append(step.batch)
    return pairs
