"""Figures of a run without workers: buffer, latency, coverage and errors (docs/slack.md, 10).

Rules of this file:

* The truth about a window is the aggregate over all of its tuples that arrived at any time.
* Windows that only the flush answered count in no figure about first answers.
* Times are microseconds since the start of the run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from model.vocabulary import Event, SlackConfig
from model.vocabulary.slack import Judged
from model.windows.aggregates import aggregate_of
from sim.kernel.disorder import IntArray
from sim.kernel.distributions import FloatArray
from sim.sweep.measurable import TENTH, Figures
from sim.timed_figures import mean
from sim.windows.observations import relative_errors

SPELL_US = 5_000_000
"""Length of the pieces of a stream that are ranked by their disorder."""


class FirstAnswer(NamedTuple):
    """First answer for a window."""

    start_us: int
    row: int
    """Position of the arrival that closed the window."""
    value: float
    n_rcv: int


class Revised(NamedTuple):
    """Corrected answer for a window."""

    at_us: int
    """End of the micro-batch that corrected it."""
    start_us: int
    value: float


@dataclass(frozen=True, eq=False)
class Course:
    """Observations of a run, with what follows from its arrivals."""

    config: SlackConfig
    events: Sequence[Event]
    epoch_us: int
    slack_us: FloatArray
    """K at each arrival."""
    first: Sequence[FirstAnswer]
    revised: Sequence[Revised]
    judged: Sequence[Judged]

    @cached_property
    def event_us(self) -> IntArray:
        """Event time of each arrival."""
        return np.array([event.event_time_us for event in self.events]) - self.epoch_us

    @cached_property
    def came_us(self) -> IntArray:
        """Time of each arrival."""
        return np.array([event.arrival_us for event in self.events]) - self.epoch_us

    @cached_property
    def delay_us(self) -> IntArray:
        """Delay of each arrival behind the largest event time so far."""
        delays: IntArray = np.maximum.accumulate(self.event_us) - self.event_us
        return delays

    @cached_property
    def errors(self) -> FloatArray:
        """Relative error of each first answer."""
        truths = self.truths([each.start_us for each in self.first])
        return relative_errors(np.array([each.value for each in self.first]), truths)

    @cached_property
    def revised_errors(self) -> FloatArray:
        """Relative error of each corrected answer."""
        truths = self.truths([each.start_us for each in self.revised])
        return relative_errors(np.array([each.value for each in self.revised]), truths)

    def truths(self, starts_us: Sequence[int]) -> FloatArray:
        """Return the truth of windows."""
        aggregate, order = aggregate_of(self.config), self._by_event_time
        values = [self.events[row].value for row in order.tolist()]
        found = [aggregate(values[low:high]) for low, high in self._bounds(starts_us).T.tolist()]
        return np.array(found, dtype=np.float64)

    def counts(self, starts_us: Sequence[int]) -> IntArray:
        """Return the number of tuples of windows."""
        low, high = self._bounds(starts_us)
        n: IntArray = high - low
        return n

    def _bounds(self, starts_us: Sequence[int]) -> IntArray:
        """Return where windows begin and end among the tuples by event time."""
        begin = np.array(starts_us, dtype=np.int64) - self.epoch_us
        sorted_us = self.event_us[self._by_event_time]
        bounds: IntArray = np.searchsorted(sorted_us, (begin, begin + self.config.size_us))
        return bounds

    @cached_property
    def _by_event_time(self) -> IntArray:
        order: IntArray = np.argsort(self.event_us, kind="stable")
        return order


# --------------------------------------------------------------------------------------- figures


def figures_at(course: Course, moment: float) -> Figures:
    """Return figures of the whole run, and some at a moment, a share of the run.

    At the moment: ``slack_us``, the mean K over the tenth of the run that ends there, and the mean
    errors over all windows answered so far (``first_error``, ``current_error``). ``below_share`` is
    the share of judged windows with less coverage than required, by all tuples of the run;
    ``miss_share`` is what the controller knows of it. ``latency_by_max`` is the latency as a
    multiple of that of MP-K-slack on the same arrivals. ``calm_slack_us`` and ``stormy_slack_us``
    are the mean K in the quarters of the stream with least and most disorder.
    """
    end_us = int(course.came_us[-1])
    share = course.came_us / end_us
    rows = (share > moment - TENTH) & (share <= moment)
    first_error, current_error = _errors_at(course, moment * end_us)
    return {
        "arrivals": len(course.events),
        **mean("mean_slack_us", course.slack_us),
        **mean("slack_us", course.slack_us[rows]),
        **_spells(course),
        **_latencies(course),
        **_quality(course),
        "first_error": first_error,
        "current_error": current_error,
    }


def _quality(course: Course) -> Figures:
    n = course.counts([each.start_us for each in course.first])
    n_rcv = np.array([each.n_rcv for each in course.first])
    return {
        **mean("mean_coverage", n_rcv / n),
        **mean("mean_first_error", course.errors),
        **mean("wrong_share", course.errors >= course.config.eps),
        **mean("miss_share", np.array([each.miss for each in course.judged], dtype=np.float64)),
        **mean("below_share", is_below(course)),
    }


def is_below(course: Course) -> FloatArray:
    """Return 1 for each judged window that had too few tuples in time, by all tuples of the run."""
    rows = [(each.start_us, each.n_rcv, each.n_late, each.n_req) for each in course.judged]
    start_us, n_rcv, n_late, n_req = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    n = course.counts(start_us.tolist())
    below: FloatArray = (n_rcv * (n_rcv + n_late) < n_req * n).astype(np.float64)
    return below


def _spells(course: Course) -> Figures:
    """Return the mean K in the quarters of the stream with least and most disorder."""
    spell = course.came_us // SPELL_US
    count = np.bincount(spell)
    # The last spell is cut off, and one without arrivals has no disorder.
    known = np.flatnonzero(count[:-1])
    if len(known) < 4:
        return {}
    delay_us = (np.bincount(spell, course.delay_us)[known]) / count[known]
    slack_us = (np.bincount(spell, course.slack_us)[known]) / count[known]
    order, quarter = np.argsort(delay_us, kind="stable"), len(known) // 4
    return {
        "calm_slack_us": float(slack_us[order[:quarter]].mean()),
        "stormy_slack_us": float(slack_us[order[-quarter:]].mean()),
    }


# --------------------------------------------------------------------------------------- latency


def _latencies(course: Course) -> Figures:
    starts_us = np.array([each.start_us for each in course.first]) - course.epoch_us
    rows = np.array([each.row for each in course.first])
    latency_us = mean_latency_us(course, starts_us, rows)
    of_max_us = mean_latency_us(course, *closed_by_max(course))
    return {
        "mean_latency_us": latency_us,
        "latency_of_max_us": of_max_us,
        "latency_by_max": latency_us / of_max_us,
    }


def mean_latency_us(course: Course, starts_us: IntArray, rows: IntArray) -> float:
    """Return the mean time from arrival to first answer over the (tuple, window) pairs in time.

    The arrival at position ``rows[i]`` closed the window that starts at ``starts_us[i]``.
    """
    slide_us, size_us, count = course.config.slide_us, course.config.size_us, len(course.events)
    first, last = starts_us.min() // slide_us, starts_us.max() // slide_us
    closed = np.full(last - first + 1, -1)
    closed[starts_us // slide_us - first] = rows
    position = np.arange(count)
    total_us, pairs = 0.0, 0
    latest = course.event_us // slide_us
    for back in range(-(-size_us // slide_us)):
        window = latest - back
        is_within = (window * slide_us + size_us > course.event_us) & (window >= first)
        at = position[is_within & (window <= last)]
        row = closed[window[at] - first]
        in_time = at < row
        total_us += float((course.came_us[row[in_time]] - course.came_us[at[in_time]]).sum())
        pairs += int(in_time.sum())
    return total_us / pairs


def closed_by_max(course: Course) -> tuple[IntArray, IntArray]:
    """Return the windows that MP-K-slack closes before the flush, and by which arrivals."""
    slide_us, size_us = course.config.slide_us, course.config.size_us
    longest_us = np.maximum.accumulate(course.delay_us)
    mark_us = np.maximum.accumulate(np.maximum.accumulate(course.event_us) - longest_us)
    first = (int(course.event_us.min()) - size_us) // slide_us + 1
    starts_us = np.arange(first, int(course.event_us.max()) // slide_us + 1) * slide_us
    rows = np.searchsorted(mark_us, starts_us + size_us)
    is_closed = rows < len(course.events)
    return starts_us[is_closed], rows[is_closed]


# ---------------------------------------------------------------------------------------- errors


def _errors_at(course: Course, now_us: float) -> tuple[float | None, float | None]:
    """Return the mean error of first answers, and of answers in force, at a moment."""
    came_us = course.came_us
    in_force: dict[int, float] = {}
    first = []
    for answer, error in zip(course.first, course.errors.tolist(), strict=True):
        if came_us[answer.row] <= now_us:
            in_force[answer.start_us] = error
            first.append(error)
    if not first:
        return None, None
    for revised, error in zip(course.revised, course.revised_errors.tolist(), strict=True):
        if revised.at_us <= now_us:
            in_force[revised.start_us] = error
    return float(np.mean(first)), float(np.mean(list(in_force.values())))
