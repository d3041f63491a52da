"""One task of the stream side: adaptive K-slack windows (docs/slack.md, sections 2 to 5).

Source: K-slack (Babu, Srivastava, Widom 2004), MP-K-slack (Mutschler, Philippsen 2013), the
stream module of the hybrid processing model.

Rules of this file:

* No clock, no I/O, no Spark. One arrival in, the steps it causes out, in the order of section 2.
* Nothing but the watermark decides whether a window is closed; state is never asked for that.
* A closed window is never written again by the stream: it has one writer, the correction.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from model.slack.control import Coverage, Factor
from model.slack.coverage import Known, cv_squared_of
from model.slack.rules import RULES, Rules
from model.vocabulary import Event, SlackConfig, Step
from model.vocabulary.slack import Judged, Late, Progress, Rejected, Result
from model.windows.aggregates import aggregate_of
from model.windows.by_window import ByWindow, OpenWindows
from model.windows.rules import BEFORE_TIME_US

# ---------------------------------------------------------------------------------------- state


class Counts:
    """What is known of a closed window that has not been judged."""

    __slots__ = ("late", "n_late", "n_rcv", "received")

    def __init__(
        self,
        n_rcv: int = 0,
        n_late: int = 0,
        received: Sequence[float] = (),
        late: Iterable[float] = (),
    ) -> None:
        self.n_rcv = n_rcv
        self.n_late = n_late
        self.received = received
        """Values, only where the requirement depends on them; the late ones as well."""
        self.late = list(late)


class TaskState(NamedTuple):
    """Everything a task remembers, as one value: what a checkpoint would hold."""

    t_max_us: int = BEFORE_TIME_US
    wm_us: int = BEFORE_TIME_US
    max_delay_us: int = 0
    slack_us: int = 0
    factor: Factor = Factor()
    judged: int = 0
    moments: tuple[int, float, float] = (0, 0.0, 0.0)
    accepted: tuple[tuple[int, int], ...] = ()
    """(identity, event time), sorted."""
    open_windows: tuple[tuple[int, str, tuple[float, ...]], ...] = ()
    """(window index, key, values sorted), sorted."""
    unjudged: tuple[tuple[int, str, int, int, tuple[float, ...], tuple[float, ...]], ...] = ()
    """(window index, key, n_rcv, n_late, values received, values late), everything sorted."""


# -------------------------------------------------------------------------------------- actions


class Task:
    """The machine. Batches are only numbers that it writes into its steps."""

    __slots__ = (
        "_aggregate",
        "_feedback_us",
        "_needs_values",
        "_requirement",
        "accepted",
        "config",
        "factor",
        "first_open",
        "first_unjudged",
        "judged",
        "max_delay_us",
        "n_accepted",
        "next_slack_us",
        "number",
        "open",
        "rules",
        "slack_us",
        "squares",
        "t_max_us",
        "total",
        "unjudged",
        "windows",
        "wm_us",
    )

    def __init__(self, config: SlackConfig, number: int, rules: Rules = RULES) -> None:
        self.config = config
        self.number = number
        self.rules = rules
        self.windows = config.windows
        self._feedback_us = config.feedback
        self._aggregate = aggregate_of(config)
        self._needs_values = config.needs_values
        self._requirement = rules.requirement(config)
        self.restore(TaskState())

    def restore(self, state: TaskState) -> None:
        """Forget everything and go on from ``state``."""
        self.t_max_us = state.t_max_us
        self.wm_us = state.wm_us
        self.max_delay_us = state.max_delay_us
        self.slack_us = state.slack_us
        self.factor = state.factor
        self._find_slack()
        self.judged = state.judged
        self.n_accepted, self.total, self.squares = state.moments
        self.accepted = dict(state.accepted)
        self.open = OpenWindows(
            (index, key, list(values)) for index, key, values in state.open_windows
        )
        self.unjudged = ByWindow(
            Counts,
            (
                (index, key, Counts(n_rcv, n_late, received, late))
                for index, key, n_rcv, n_late, received, late in state.unjudged
            ),
        )
        self.first_open = self.rules.first_open(self.windows, self.wm_us)
        self.first_unjudged = self.windows.first_index(self.wm_us - self._feedback_us)

    def state(self) -> TaskState:
        """Everything the task remembers; :meth:`restore` goes on from there."""
        return TaskState(
            t_max_us=self.t_max_us,
            wm_us=self.wm_us,
            max_delay_us=self.max_delay_us,
            slack_us=self.slack_us,
            factor=self.factor,
            judged=self.judged,
            moments=(self.n_accepted, self.total, self.squares),
            accepted=tuple(sorted(self.accepted.items())),
            open_windows=tuple(
                sorted(
                    (index, key, tuple(sorted(values)))
                    for index, key, values in self.open.windows()
                )
            ),
            unjudged=tuple(
                sorted(
                    (
                        index,
                        key,
                        counts.n_rcv,
                        counts.n_late,
                        tuple(sorted(counts.received)),
                        tuple(sorted(counts.late)),
                    )
                    for index, key, counts in self.unjudged.windows()
                )
            ),
        )

    def arrive(self, event: Event, batch: int) -> list[Step]:
        """One arrival: the steps it causes, in order."""
        reason = self.rules.reject(self.config, event)
        if reason is not None:
            return [Rejected(self.number, event.seq, event.source_id, batch, reason)]
        if self.rules.is_redelivery(self, event):
            return []
        steps: list[Step] = []
        self._advance_clock(event)
        self._close(batch, steps)
        self._route(event, batch, steps)
        self._judge(batch, steps)
        return steps

    def flush(self, batch: int) -> list[Step]:
        """Close and judge everything; a task that has accepted nothing does nothing."""
        steps: list[Step] = []
        if self.n_accepted:
            self.slack_us = self.next_slack_us
            self.wm_us = self.rules.flush_wm_us(self)
            self._close(batch, steps)
            self._judge(batch, steps)
        return steps

    def progress(self, batch: int) -> Progress:
        """The clock at the end of a batch, with the slack that the next arrival will find."""
        return Progress(
            self.number,
            batch,
            self.t_max_us,
            self.max_delay_us,
            self.next_slack_us,
            self.wm_us,
            self.factor.alpha,
        )

    # Steps 3 to 6 of section 2.

    def _find_slack(self) -> None:
        """It follows from two things; whoever changes one of them asks for it again."""
        alpha, max_delay_us = self.factor.alpha, self.max_delay_us
        self.next_slack_us = self.rules.slack_us(self.config, alpha, max_delay_us)

    def _advance_clock(self, event: Event) -> None:
        event_time_us, value = event.event_time_us, event.value
        self.accepted.setdefault(event.source_id, event_time_us)
        if event_time_us > self.t_max_us:
            self.t_max_us = event_time_us
        elif self.t_max_us - event_time_us > self.max_delay_us:
            self.max_delay_us = self.t_max_us - event_time_us
            self._find_slack()
        self.slack_us = self.next_slack_us
        self.wm_us = self.rules.wm_us(self.wm_us, self.t_max_us - self.slack_us)
        self.n_accepted += 1
        self.total += value
        self.squares += value * value

    def _close(self, batch: int, steps: list[Step]) -> None:
        self.first_open = self.rules.first_open(self.windows, self.wm_us)
        number, slack_us, wm_us = self.number, self.slack_us, self.wm_us
        start_us = self.windows.start_us
        for index, key, values in self.open.take(self.first_open):
            n_rcv, value = len(values), self._aggregate(values)
            counts = self.unjudged.at(index, key)
            counts.n_rcv = n_rcv
            if self._needs_values:
                counts.received = values
            steps.append(Result(number, start_us(index), key, batch, value, n_rcv, slack_us, wm_us))

    def _route(self, event: Event, batch: int, steps: list[Step]) -> None:
        route, event_us, value = self.rules.route, event.event_time_us, event.value
        key = event.key if self.config.keyed else ""
        joined = []
        for index in self.windows.indices(event_us):
            joins, is_late = route(self, index, event)
            if joins:
                joined.append(index)
            if is_late:
                # A window past its judgement is not counted any more, nor judged again.
                if index >= self.first_unjudged:
                    self._count_late(index, key, value)
                start_us = self.windows.start_us(index)
                steps.append(Late(self.number, start_us, key, event.source_id, event_us, batch))
        self.open.join(joined, key, value)

    def _count_late(self, index: int, key: str, value: float) -> None:
        counts = self.unjudged.at(index, key)
        counts.n_late += 1
        if self._needs_values:
            counts.late.append(value)

    def _judge(self, batch: int, steps: list[Step]) -> None:
        self.first_unjudged = self.windows.first_index(self.wm_us - self._feedback_us)
        due = self.unjudged.take(self.first_unjudged)
        if due:
            cv_squared = cv_squared_of(self.config, self.n_accepted, self.total, self.squares)
            # Without the values, nothing but N tells these windows apart.
            required: dict[int, int] = {}
            for index, key, counts in due:
                total = counts.n_rcv + counts.n_late
                n_req = None if self._needs_values else required.get(total)
                if n_req is None:
                    values = (*counts.received, *counts.late)
                    known = Known(total, cv_squared, values, (self.number, self.judged))
                    n_req = required[total] = self._requirement(known)
                coverage = Coverage(counts.n_rcv, total, n_req)
                steps.append(self._judge_window(index, key, counts.n_late, batch, coverage))
            self._find_slack()

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
