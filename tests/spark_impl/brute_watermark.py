"""Specification of docs/watermark.md, tuple by tuple: room ``slack`` with another rule."""

from itertools import combinations
from typing import Any

from model.vocabulary import Event, Trace, WatermarkConfig, Workload
from model.vocabulary.watermark import Clock
from tests.spark_impl import brute


class Task(brute.Task):
    def __init__(self, config: Any, number: int) -> None:
        super().__init__(config, number)
        self.w: WatermarkConfig = config
        self.times: list[int] = []
        self.clocks: list[Clock] = []

    def inv(self) -> int:
        return sum(a > b for a, b in combinations(self.times[-self.w.k :], 2))

    def slack(self) -> int:
        m, n = self.w.max_wait_us, min(len(self.times), self.w.k)
        c, inv = n * (n - 1) // 2, self.inv()
        if self.w.reading == "fixed":
            return m
        if n == 1:
            return 0 if self.w.reading == "literal" else m
        if self.w.reading == "literal":
            return m * (c - inv) // c
        return m * inv // c if self.w.reading == "disorder" else min(m, 2 * m * inv // c)

    def seen(self, e: Event) -> None:
        self.times.append(e.event_time_us)

    def clocked(self, e: Event, slack: int, batch: int) -> None:
        self.clocks.append(Clock(self.number, e.seq, batch, self.t_max, self.inv(), slack, self.wm))

    def judge(self, batch: int) -> None:
        """Judge nothing."""

    def correlate(self, start: int, key: str, batch: int, revision: int) -> None:
        """Record no figures: values are not correlated."""

    def progressed(self, batch: int) -> None:
        """Record no progress: the clocks replace it."""

    def batch_end(self, batch: int, flushed: bool) -> None:
        if self.w.corrections:
            super().batch_end(batch, flushed)

    def recorded(self) -> list[Clock]:
        last = {clock.batch: clock for clock in self.clocks}
        return self.clocks if self.w.clocks == "arrivals" else list(last.values())


def run(workload: Workload) -> Trace:
    config = WatermarkConfig.from_json(workload.config)
    tasks = [Task(config, number) for number in range(config.tasks)]
    found = brute.trace(tasks, workload)
    return Trace("brute", [*found.steps(), *(each for task in tasks for each in task.recorded())])
