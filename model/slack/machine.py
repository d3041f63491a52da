"""One task of the stream side: adaptive K-slack windows (docs/slack.md, sections 2 to 5).

Source: K-slack (Babu, Srivastava, Widom 2004), MP-K-slack (Mutschler, Philippsen 2013), the
stream module of the hybrid processing model. The part that room ``watermark`` shares is in
``model/windows/machine.py``.

Rules of this file:

* No clock, no I/O, no Spark. One arrival in, the steps it causes out, in the order of section 2.
* Only the watermark decides whether a window is closed, never the set of open windows.
* Each closed window with a tuple is judged at most once, L after its end.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from model.slack.requirement import WindowFacts, cv_squared_of, requirement_of
from model.slack.rules import RULES, Coverage, Factor, Rules
from model.vocabulary import Event, SlackConfig, Step
from model.vocabulary.slack import Judged, Progress
from model.windows.machine import SavedStream, WindowTask
from model.windows.pipeline import WindowModel
from model.windows.state import ByWindow

# ---------------------------------------------------------------------------------------- state


@dataclass(slots=True)
class Counts:
    """Tuple counts of a closed window that has not been judged."""

    n_rcv: int = 0
    n_late: int = 0
    received: Sequence[float] = ()
    """Values in the first answer; kept, like ``late``, only if the requirement needs values."""
    late: list[float] = field(default_factory=list)
    has_negative: bool = False


class TaskState(NamedTuple):
    """Everything a task remembers, as one value: the content of a checkpoint."""

    stream: SavedStream = SavedStream()
    max_delay_us: int = 0
    recent: tuple[tuple[int, int], ...] = ()
    """Delays that are remembered, as (clock of the task at that moment, delay)."""
    slack_us: int = 0
    factor: Factor = Factor()
    judged: int = 0
    moments: tuple[float, float] = (0.0, 0.0)
    """Sum and sum of squares of the accepted values."""
    unjudged: tuple[tuple[int, str, int, int, tuple[float, ...], tuple[float, ...], bool], ...] = ()
    """(window index, key, n_rcv, n_late, values received, values late, whether one of the values is
    negative), everything sorted."""


# -------------------------------------------------------------------------------------- actions


class Task(WindowTask[SlackConfig]):
    """The machine of one task."""

    __slots__ = (
        "_feedback_us",
        "_needs_values",
        "_recent",
        "_recent_us",
        "_requirement",
        "factor",
        "first_unjudged",
        "judged",
        "max_delay_us",
        "next_slack_us",
        "slack_us",
        "squares",
        "total",
        "unjudged",
    )

    rules: Rules

    def __init__(self, config: SlackConfig, number: int, rules: Rules = RULES) -> None:
        super().__init__(config, number, rules)
        self._feedback_us = config.feedback
        self._needs_values = config.needs_values
        self._requirement = requirement_of(config)
        self._recent_us = rules.recent_us(config)
        self.restore(TaskState())

    def restore(self, state: TaskState) -> None:
        """Forget everything and continue from ``state``."""
        self.restore_stream(state.stream)
        self.total, self.squares = state.moments
        self.max_delay_us = state.max_delay_us
        self._recent = deque(state.recent)
        self.slack_us = state.slack_us
        self.factor = state.factor
        self.judged = state.judged
        self.unjudged = ByWindow(
            Counts,
            (
                (index, key, Counts(n_rcv, n_late, received, [*late], has_negative))
                for index, key, n_rcv, n_late, received, late, has_negative in state.unjudged
            ),
        )
        self.first_unjudged = self.windows.first_index(self.wm_us - self._feedback_us)
        self._update_next_slack()

    def state(self) -> TaskState:
        """Return everything the task remembers, for :meth:`restore`."""
        unjudged = (
            (
                index,
                key,
                counts.n_rcv,
                counts.n_late,
                tuple(sorted(counts.received)),
                tuple(sorted(counts.late)),
                counts.has_negative,
            )
            for index, key, counts in self.unjudged.entries()
        )
        return TaskState(
            stream=self.save_stream(),
            max_delay_us=self.max_delay_us,
            recent=tuple(self._recent),
            slack_us=self.slack_us,
            factor=self.factor,
            judged=self.judged,
            moments=(self.total, self.squares),
            unjudged=tuple(sorted(unjudged)),
        )

    def arrive(self, event: Event, batch: int) -> list[Step]:
        """Take one arrival; return the steps it causes, in order."""
        refused = self.refuse(event, batch)
        if refused is not None:
            return refused
        steps: list[Step] = []
        self._advance_clock(event)
        self._close_windows(batch, steps)
        self._route_tuple(event, batch, steps)
        self._judge_windows(batch, steps)
        return steps

    def flush(self, batch: int) -> list[Step]:
        """Close and judge every window; a task that has accepted nothing does nothing."""
        steps: list[Step] = []
        if self.n_accepted:
            self.slack_us = self.next_slack_us
            self.wm_us = self.rules.flush_wm_us(self)
            self._close_windows(batch, steps)
            self._judge_windows(batch, steps)
        return steps

    def end_batch(self, batch: int) -> Sequence[Step]:
        """Return the clock at the end of a batch or flush, with the slack of the next arrival."""
        return (
            Progress(
                self.number,
                batch,
                self.t_max_us,
                self.max_delay_us,
                self.next_slack_us,
                self.wm_us,
                self.factor.alpha,
            ),
        )

    # ------------------------------------------------------------ transitions, in their order

    def _update_next_slack(self) -> None:
        """Compute the slack of the next arrival, after a judgement or another largest delay."""
        alpha, max_delay_us = self.factor.alpha, self.max_delay_us
        slack_us = self.rules.slack_us(self.config, alpha, max_delay_us)
        self.next_slack_us = max(slack_us, self.rules.start_slack_us(self.config, self.judged))

    def _advance_clock(self, event: Event) -> None:
        event_time_us, value = event.event_time_us, event.value
        self.accepted.setdefault(event.source_id, event_time_us)
        if event_time_us > self.t_max_us:
            self.t_max_us = event_time_us
        delay_us, known_us = self.t_max_us - event_time_us, self.max_delay_us
        if self._recent_us is not None:
            self.max_delay_us = self._largest_recent_us(delay_us, self._recent_us)
        elif delay_us > known_us:
            self.max_delay_us = delay_us
        if self.max_delay_us != known_us:
            self._update_next_slack()
        self.slack_us = self.next_slack_us
        self.wm_us = self.rules.wm_us(self.wm_us, self.t_max_us - self.slack_us)
        self.n_accepted += 1
        self.total += value
        self.squares += value * value

    def _largest_recent_us(self, delay_us: int, recent_us: int) -> int:
        """Remember a delay and forget those that are too old; return the largest one left."""
        recent, clock_us = self._recent, self.t_max_us
        # A delay is never the largest again once a later one is as large.
        while recent and recent[-1][1] <= delay_us:
            recent.pop()
        recent.append((clock_us, delay_us))
        while recent[0][0] < clock_us - recent_us:
            recent.popleft()
        return recent[0][1]

    def _close_windows(self, batch: int, steps: list[Step]) -> None:
        for index, key, values in self.close(batch, self.slack_us, steps):
            counts = self.unjudged.at(index, key)
            counts.n_rcv = len(values)
            counts.has_negative |= min(values) < 0
            if self._needs_values:
                counts.received = values

    def _route_tuple(self, event: Event, batch: int, steps: list[Step]) -> None:
        for index in self.route(event, batch, steps):
            # A late tuple of a judged window is neither counted nor judged again.
            if index >= self.first_unjudged:
                counts = self.unjudged.at(index, event.key if self.config.keyed else "")
                counts.n_late += 1
                counts.has_negative |= event.value < 0
                if self._needs_values:
                    counts.late.append(event.value)

    def _judge_windows(self, batch: int, steps: list[Step]) -> None:
        self.first_unjudged = self.windows.first_index(self.wm_us - self._feedback_us)
        due = self.unjudged.take(self.first_unjudged)
        if not due:
            return
        cv_squared = cv_squared_of(self.n_accepted, self.total, self.squares)
        # If no values are needed, windows of the same N and sign have the same requirement.
        required: dict[tuple[int, bool], int] = {}
        for index, key, counts in due:
            total = counts.n_rcv + counts.n_late
            kind = (total, counts.has_negative)
            n_req = None if self._needs_values else required.get(kind)
            if n_req is None:
                values = (*counts.received, *counts.late)
                known = WindowFacts(total, cv_squared, values, counts.has_negative)
                n_req = required[kind] = self._requirement(known)
            coverage = Coverage(counts.n_rcv, total, n_req)
            steps.append(self._judge_window(index, key, counts.n_late, batch, coverage))
        self._update_next_slack()

    def _judge_window(
        self, index: int, key: str, n_late: int, batch: int, coverage: Coverage
    ) -> Judged:
        n_rcv, _, n_req = coverage
        self.factor = self.rules.law(self.config, self.factor, coverage)
        self.judged += 1
        return Judged(
            self.number,
            self.judged - 1,
            self.windows.start_us(index),
            key,
            batch,
            n_rcv,
            n_late,
            n_req,
            coverage.miss,
            self.factor.alpha,
        )


# ------------------------------------------------------------------------------- whole workloads

MODEL = WindowModel(SlackConfig.from_json, Task, RULES)
"""The reference of the room."""
