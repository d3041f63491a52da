"""Operators upstream as docs/watermark.md, section 11, has them, arrival by arrival."""

from collections.abc import Sequence
from itertools import combinations

from model.vocabulary import Event, WatermarkConfig, task_of
from model.vocabulary.watermark import Inserted

NEVER = None


class Operator:
    """One operator upstream."""

    def __init__(self, config: WatermarkConfig) -> None:
        self.config = config
        self.times: list[int] = []
        self.wm: int | None = NEVER
        self.moment: int | None = NEVER

    def pass_on(self, event_time_us: int) -> None:
        """Move the watermark by one arrival."""
        self.times.append(event_time_us)
        cluster = self.times[-self.config.k :]
        inv = sum(a > b for a, b in combinations(cluster, 2))
        pairs = len(cluster) * (len(cluster) - 1) // 2
        wait = self.config.max_wait_us * inv // pairs if pairs else self.config.max_wait_us
        new = max(self.times) - wait
        self.wm = new if self.wm is NEVER else max(self.wm, new)


class Upstream:
    """All operators, and the watermarks that they insert."""

    def __init__(self, config: WatermarkConfig) -> None:
        self.config = config
        self.operators = [Operator(config) for _ in range(config.upstreams)]
        self.found: list[Inserted] = []
        self.clock: int | None = NEVER
        self.period: int | None = NEVER
        self.top: int | None = NEVER

    def arrive(self, event: Event) -> None:
        """Let one arrival pass."""
        self.clock = larger(self.clock, event.arrival_us)
        if self.config.insert_every_us:
            period = event.arrival_us // self.config.insert_every_us
            if period != self.period and larger(self.period, period) == period:
                self.insert(event.seq)
                self.period = period
        own = self.operators[task_of(event.key, self.config.upstreams)]
        for each in self.operators:
            if each.moment is NEVER or each is own:
                each.moment = self.clock
        own.pass_on(event.event_time_us)
        self.top = larger(self.top, event.event_time_us)
        if not self.config.insert_every_us:
            self.insert(event.seq)

    def insert(self, seq: int) -> None:
        """Insert the least watermark if it has risen."""
        marks = [each.wm for each in self.operators if not self.is_idle(each)]
        known = [mark for mark in marks if mark is not NEVER]
        if not marks or len(known) < len(marks):
            return
        if not self.found or min(known) > self.found[-1].wm_us:
            assert self.top is not NEVER
            self.found.append(Inserted(seq, 0, self.top, min(known)))

    def is_idle(self, each: Operator) -> bool:
        """Return whether an operator holds nothing back."""
        longest = self.config.idle_after_us
        if longest is None or self.clock is NEVER or each.moment is NEVER:
            return False
        return self.clock - each.moment > longest


def larger(known: int | None, new: int) -> int:
    """Return the larger number, or the only one."""
    return new if known is NEVER else max(known, new)


def insertions(config: WatermarkConfig, arrivals: Sequence[Event]) -> list[Inserted]:
    """Return the insertions of reading ``disorder``, all as if in micro-batch 0."""
    upstream = Upstream(config)
    for event in arrivals:
        upstream.arrive(event)
    return upstream.found
