"""One task of the stream side: windows under a watermark that follows the disorder.

Source: docs/watermark.md, section 3; the part that room ``slack`` shares is in
``model/windows/machine.py``.

Rules of this file:

* No clock, no I/O, no Spark. One arrival in, the steps it causes out, in the order of section 3.
* Only the watermark decides whether a window is closed, never the set of open windows.
"""

from collections.abc import Sequence

from model.vocabulary import Event, Step, WatermarkConfig
from model.vocabulary.watermark import Clock
from model.watermark.rules import RULES, Rules
from model.watermark.upstream import upstreams_of
from model.windows.cluster import Cluster
from model.windows.machine import Insertion, SavedStream, WindowTask
from model.windows.pipeline import WindowModel

# -------------------------------------------------------------------------------------- actions


class Task(WindowTask[WatermarkConfig]):
    """The machine of one task."""

    __slots__ = ("cluster", "last_clock", "wait_us")

    rules: Rules

    def __init__(self, config: WatermarkConfig, number: int, rules: Rules = RULES) -> None:
        super().__init__(config, number, rules)
        self.restore_stream(SavedStream())
        self.wait_us = 0
        self.cluster = Cluster(config.k)
        self.last_clock: list[Step] = []
        """The clock to record at the end of this batch, if any."""

    def arrive(self, event: Event, batch: int) -> list[Step]:
        """Take one arrival; return the steps it causes, in order."""
        refused = self.refuse(event, batch)
        if refused is not None:
            return refused
        steps: list[Step] = []
        if self.config.upstreams:
            self._accept(event)
            self.route(event, batch, steps)
            return steps
        clock = self._advance_clock(event, batch)
        if self.config.clocks == "arrivals":
            steps.append(clock)
        else:
            self.last_clock = [clock]
        self.close(batch, self.wait_us, steps)
        self.route(event, batch, steps)
        return steps

    def insert(self, insertion: Insertion, batch: int) -> list[Step]:
        """Take a watermark from upstream; return the results of the windows that it closes."""
        steps: list[Step] = []
        self.wm_us, self.wait_us = max(self.wm_us, insertion.wm_us), insertion.slack_us
        self.close(batch, self.wait_us, steps)
        return steps

    def flush(self, batch: int) -> list[Step]:
        """Close every window; a task that has accepted nothing does nothing."""
        steps: list[Step] = []
        if self.n_accepted:
            self.wm_us = self.rules.flush_wm_us(self)
            self.close(batch, self.wait_us, steps)
        return steps

    def end_batch(self, _batch: int) -> Sequence[Step]:
        """End a micro-batch; return the clock of its last accepted arrival, if it is due now."""
        steps, self.last_clock = self.last_clock, []
        return steps

    def _accept(self, event: Event) -> None:
        self.accepted.setdefault(event.source_id, event.event_time_us)
        self.n_accepted += 1
        self.t_max_us = max(self.t_max_us, event.event_time_us)

    def _advance_clock(self, event: Event, batch: int) -> Clock:
        """Take steps 3 to 5 of section 3."""
        event_time_us = event.event_time_us
        self._accept(event)
        self.cluster.enter(event_time_us)
        self.wait_us = self.rules.wait_us(self.config, self.cluster)
        self.wm_us = self.rules.wm_us(self.wm_us, self.t_max_us - self.wait_us)
        return Clock(
            self.number,
            event.seq,
            batch,
            self.t_max_us,
            self.cluster.inv,
            self.wait_us,
            self.wm_us,
        )


# ------------------------------------------------------------------------------- whole workloads


MODEL = WindowModel(
    WatermarkConfig.from_json, Task, RULES, lambda config: config.corrections, upstreams_of
)
"""The reference of the room."""
