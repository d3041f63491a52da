"""Specification of docs/slack.md, tuple by tuple, as obvious as can be.

Everything is remembered for ever and looked up by scanning, nothing is incremental.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from model.vocabulary import Event, SlackConfig, Trace, Workload, task_of
from model.vocabulary.slack import Judged, Progress
from model.vocabulary.windows import (
    REASON_FUTURE,
    REASON_NOT_FINITE,
    Cleared,
    Correction,
    Correlation,
    Final,
    Late,
    Rejected,
    Result,
    Revision,
)
from tests.spark_impl.brute_requirement import required

NEVER = -(1 << 63)
Window = tuple[int, str]
"""The end and the key of a window."""


class Task:
    def __init__(self, config: SlackConfig, number: int) -> None:
        self.c, self.number = config, number
        self.t_max = self.wm = NEVER
        self.k, self.alpha, self.err_prev = 0, 1.0, 0.0
        self.n, self.s1, self.s2 = 0, 0.0, 0.0
        self.accepted: dict[int, Event] = {}
        self.received: dict[Window, list[float]] = defaultdict(list)
        self.late: dict[Window, list[float]] = defaultdict(list)
        self.closed: set[Window] = set()
        self.judged: set[Window] = set()
        self.orders = 0
        self.pending: set[Late] = set()
        self.revisions: dict[tuple[int, str], int] = defaultdict(int)
        self.answers: dict[tuple[int, str], tuple[float, int, int]] = {}
        self.refused: set[tuple[int, str]] = set()
        self.steps: list[Any] = []

    def slack(self) -> int:
        c = self.c
        if c.control == "fixed":
            k = c.fixed_slack_us
        elif c.control == "max":
            k = self.k
        else:
            k = math.floor(min(max(self.alpha, 0.0), 1.0) * self.k)
        return k if c.max_slack_us is None else min(k, c.max_slack_us)

    def seen(self, e: Event) -> None:
        self.k = max(self.k, self.t_max - e.event_time_us)

    def clocked(self, e: Event, slack: int, batch: int) -> None:
        self.n, self.s1, self.s2 = self.n + 1, self.s1 + e.value, self.s2 + e.value * e.value

    def key(self, event: Event) -> str:
        return event.key if self.c.keyed else ""

    def ends(self, ts: int) -> list[int]:
        w = self.c.windows
        return [w.end_us(j) for j in w.indices(ts)]

    def arrive(self, e: Event, batch: int) -> bool:
        c, ts = self.c, e.event_time_us
        if reason := self.rejection(e):
            self.steps.append(Rejected(self.number, e.seq, e.source_id, batch, reason))
            self.refused |= {(end - c.size_us, self.key(e)) for end in self.ends(ts)}
            return False
        before = self.accepted.get(e.source_id)
        if c.dedup and before is not None and self.remembers(before):
            return False
        self.accepted.setdefault(e.source_id, e)
        self.t_max = max(self.t_max, ts)
        self.seen(e)
        slack = self.slack()
        wm_before, self.wm = self.wm, max(self.wm, self.t_max - slack)
        self.clocked(e, slack, batch)
        self.close(slack, batch)
        for end in self.ends(ts):
            if end <= self.wm:
                start = end - c.size_us
                late = Late(self.number, start, self.key(e), e.source_id, ts, batch)
                if late not in self.steps:
                    self.steps.append(late)
                self.pending.add(late._replace(batch=0))
                if end + c.feedback > wm_before:
                    self.late[end, self.key(e)].append(e.value)
            else:
                self.received[end, self.key(e)].append(e.value)
        self.judge(batch)
        return True

    def rejection(self, e: Event) -> str:
        if not math.isfinite(e.value):
            return REASON_NOT_FINITE
        if (
            self.c.max_future_us is not None
            and e.event_time_us > e.arrival_us + self.c.max_future_us
        ):
            return REASON_FUTURE
        return ""

    def remembers(self, e: Event) -> bool:
        return self.c.windows.last_end_us(e.event_time_us) + self.c.feedback > self.wm

    def close(self, slack: int, batch: int) -> None:
        for end, key in sorted(self.received):
            if end <= self.wm and (end, key) not in self.closed:
                self.closed.add((end, key))
                values = self.received[end, key]
                start, value = end - self.c.size_us, aggregate(self.c, values)
                self.steps.append(
                    Result(self.number, start, key, batch, value, len(values), slack, self.wm)
                )
                self.answers[start, key] = (value, len(values), 0)

    def judge(self, batch: int) -> None:
        c = self.c
        due = {w for w in {*self.received, *self.late} if w[0] + c.feedback <= self.wm}
        for end, key in sorted(due - self.judged):
            self.judged.add((end, key))
            received, late = self.received.get((end, key), []), self.late.get((end, key), [])
            n_rcv, n_late = len(received), len(late)
            total = n_rcv + n_late
            n_req = required(c, total, self.cv2(), received + late, self.number, self.orders)
            miss = n_rcv < n_req
            if c.control == "conformal":
                moved = self.alpha + c.learning_rate * (miss - c.delta / 2)
                self.alpha = min(max(moved, 0.0), 1.0)
            elif c.control in ("pd", "pd-clamped"):
                goal = n_req / total if c.lambda_thr is None else c.lambda_thr
                err = goal - n_rcv / total
                self.alpha = self.alpha + (c.kp * err + c.kd * (err - self.err_prev))
                self.err_prev = err
                if c.control == "pd-clamped":
                    self.alpha = min(max(self.alpha, 0.0), 1.0)
            place = (self.number, self.orders, end - c.size_us, key, batch)
            self.steps.append(Judged(*place, n_rcv, n_late, n_req, miss, self.alpha))
            self.orders += 1

    def cv2(self) -> float:
        if self.c.cv is not None:
            return self.c.cv * self.c.cv
        if not self.s1 and not self.s2:
            return 0.0
        return max(0.0, self.n * self.s2 / (self.s1 * self.s1) - 1) if self.s1 else math.inf

    def flush(self, batch: int) -> None:
        end = self.c.windows.last_end_us(self.t_max) + self.c.feedback
        self.wm = max(self.wm, end)
        self.close(self.slack(), batch)
        self.judge(batch)

    def batch_end(self, batch: int, flushed: bool) -> None:
        self.progressed(batch)
        if not self.pending:
            return
        times = [pair.event_time_us for pair in self.pending]
        if flushed:
            reason = "flush"
        elif max(times) - min(times) > self.c.gamma_us:
            reason = "gamma"
        elif self.wm - min(times) > self.c.max_age:
            reason = "age"
        else:
            return
        windows = sorted({(pair.start_us, pair.key) for pair in self.pending})
        self.steps.append(Correction(self.number, batch, reason, len(self.pending), len(windows)))
        for pair in self.pending:
            self.steps.append(Cleared(pair.task, pair.start_us, pair.key, pair.source_id, batch))
        for start, key in windows:
            inside = [
                e.value
                for e in self.accepted.values()
                if self.key(e) == key and start <= e.event_time_us < start + self.c.size_us
            ]
            self.revisions[start, key] += 1
            revision, value = self.revisions[start, key], aggregate(self.c, inside)
            self.steps.append(
                Revision(self.number, start, key, batch, revision, value, len(inside))
            )
            self.answers[start, key] = (value, len(inside), revision)
            self.correlate(start, key, batch, revision)
        self.pending.clear()

    def progressed(self, batch: int) -> None:
        step = Progress(self.number, batch, self.t_max, self.k, self.slack(), self.wm, self.alpha)
        self.steps.append(step)

    def correlate(self, start: int, key: str, batch: int, revision: int) -> None:
        c = self.c
        if start // c.slide_us % math.ceil(Fraction(c.size_us, c.slide_us)):
            return
        inside = [
            e
            for e in sorted(self.accepted.values(), key=lambda e: e.seq)
            if self.key(e) == key and start <= e.event_time_us < start + c.size_us
        ]
        delays = []
        for i, e in enumerate(inside):
            before = [each.event_time_us for each in inside[:i]]
            delays.append(max([0, *(ts - e.event_time_us for ts in before)]))
        x, y = balance(delays), balance([e.value for e in inside])
        cross, xx, yy = (
            sum(a * b for a, b in zip(*each, strict=True)) for each in ((x, y), (x, x), (y, y))
        )
        place = (self.number, start, key, batch, revision)
        self.steps.append(Correlation(*place, len(inside), cross, xx, yy))

    def finals(self) -> list[Final]:
        open_pairs = {(pair.start_us, pair.key) for pair in self.pending} | self.refused
        return [
            Final(self.number, start, key, value, n, revision, (start, key) not in open_pairs)
            for (start, key), (value, n, revision) in self.answers.items()
        ]


def balance(values: list[Any]) -> list[int]:
    return [sum(b < a for b in values) - sum(b > a for b in values) for a in values]


def aggregate(c: SlackConfig, values: list[float]) -> float:
    if c.aggregate == "count":
        return float(len(values))
    if c.aggregate in ("sum", "avg"):
        total = sum(values, 0.0)
        return total if c.aggregate == "sum" else total / len(values)
    if c.aggregate in ("min", "max"):
        return min(values) if c.aggregate == "min" else max(values)
    q = Fraction(str(c.q)) if c.aggregate == "quantile" else Fraction(1, 2)
    return sorted(values)[math.ceil(q * len(values)) - 1]


def run(workload: Workload) -> Trace:
    config = SlackConfig.from_json(workload.config)
    return trace([Task(config, number) for number in range(config.tasks)], workload)


def trace(tasks: Sequence[Task], workload: Workload) -> Trace:
    batches = list(workload.batches())
    for batch, events in enumerate(batches):
        moved = set()
        for event in events:
            number = task_of(event.key, len(tasks))
            if tasks[number].arrive(event, batch):
                moved.add(number)
        for number in moved:
            tasks[number].batch_end(batch, flushed=False)
    if workload.flush:
        for task in tasks:
            if task.accepted:
                task.flush(len(batches))
                task.batch_end(len(batches), flushed=True)
    return Trace("brute", [step for task in tasks for step in [*task.steps, *task.finals()]])
