"""One task of the stream side: windows under a watermark that follows the disorder.

Source: docs/watermark.md, section 3; what it has in common with room ``slack`` is in
``model/windows``.

Rules of this file:

* No clock, no I/O, no Spark. One arrival in, the steps it causes out, in the order of section 3.
* Nothing but the watermark decides whether a window is closed; state is never asked for that.
* A closed window is never written again by the stream: it has one writer, the correction.
"""

from typing import NamedTuple

from model.vocabulary import Event, Step, WatermarkConfig
from model.vocabulary.answers import Late, Rejected, Result
from model.vocabulary.watermark import Clock
from model.watermark.rules import RULES, Rules
from model.windows.aggregates import aggregate_of
from model.windows.by_window import OpenWindows
from model.windows.cluster import Cluster
from model.windows.rules import BEFORE_TIME_US

# ---------------------------------------------------------------------------------------- state


class TaskState(NamedTuple):
    """Everything a task remembers, as one value: what a checkpoint would hold."""

    t_max_us: int = BEFORE_TIME_US
    wm_us: int = BEFORE_TIME_US
    wait_us: int = 0
    n_accepted: int = 0
    cluster_us: tuple[int, ...] = ()
    """Event times in the order of arrival."""
    accepted: tuple[tuple[int, int], ...] = ()
    """(identity, event time), sorted."""
    open_windows: tuple[tuple[int, str, tuple[float, ...]], ...] = ()
    """(window index, key, values sorted), sorted."""


# -------------------------------------------------------------------------------------- actions


class Task:
    """The machine. Batches are only numbers that it writes into its steps."""

    __slots__ = (
        "_aggregate",
        "accepted",
        "cluster",
        "config",
        "first_open",
        "last_clock",
        "n_accepted",
        "number",
        "open",
        "rules",
        "t_max_us",
        "wait_us",
        "windows",
        "wm_us",
    )

    def __init__(self, config: WatermarkConfig, number: int, rules: Rules = RULES) -> None:
        self.config = config
        self.number = number
        self.rules = rules
        self.windows = config.windows
        self._aggregate = aggregate_of(config)
        self.last_clock: list[Step] = []
        """Of this batch, if it is due at its end."""
        self.restore(TaskState())

    def restore(self, state: TaskState) -> None:
        """Forget everything and go on from ``state``."""
        self.t_max_us = state.t_max_us
        self.wm_us = state.wm_us
        self.wait_us = state.wait_us
        self.n_accepted = state.n_accepted
        self.cluster = Cluster(self.config.k, state.cluster_us)
        self.accepted = dict(state.accepted)
        self.open = OpenWindows(
            (index, key, list(values)) for index, key, values in state.open_windows
        )
        self.first_open = self.rules.first_open(self.windows, self.wm_us)

    def state(self) -> TaskState:
        """Everything the task remembers; :meth:`restore` goes on from there."""
        return TaskState(
            t_max_us=self.t_max_us,
            wm_us=self.wm_us,
            wait_us=self.wait_us,
            n_accepted=self.n_accepted,
            cluster_us=tuple(self.cluster.times_us),
            accepted=tuple(sorted(self.accepted.items())),
            open_windows=tuple(
                sorted(
                    (index, key, tuple(sorted(values)))
                    for index, key, values in self.open.windows()
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
        clock = self._advance_clock(event, batch)
        steps: list[Step] = []
        if self.config.clocks == "arrivals":
            steps.append(clock)
        else:
            self.last_clock = [clock]
        self.close(batch, steps)
        self.route(event, batch, steps)
        return steps

    def flush(self, batch: int) -> list[Step]:
        """Close everything; a task that has accepted nothing does nothing."""
        steps: list[Step] = []
        if self.n_accepted:
            self.wm_us = self.rules.flush_wm_us(self)
            self.close(batch, steps)
        return steps

    def end_batch(self) -> list[Step]:
        """A micro-batch is over: the clock of its last accepted arrival, if it is due now."""
        self.cluster = self.rules.carried(self.cluster)
        steps, self.last_clock = self.last_clock, []
        return steps

    # Steps 3 to 5 of section 3.

    def _advance_clock(self, event: Event, batch: int) -> Clock:
        event_time_us = event.event_time_us
        self.accepted.setdefault(event.source_id, event_time_us)
        self.n_accepted += 1
        self.t_max_us = max(self.t_max_us, event_time_us)
        self.cluster = self.rules.entered(self.cluster, event_time_us)
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

    def close(self, batch: int, steps: list[Step]) -> None:
        """Answer the windows that the watermark has passed."""
        self.first_open = self.rules.first_open(self.windows, self.wm_us)
        for index, key, values in self.open.take(self.first_open):
            steps.append(
                Result(
                    self.number,
                    self.windows.start_us(index),
                    key,
                    batch,
                    self._aggregate(values),
                    len(values),
                    self.wait_us,
                    self.wm_us,
                )
            )

    def route(self, event: Event, batch: int, steps: list[Step]) -> None:
        """Put an accepted arrival into its windows, or record that it is late."""
        key, event_us = event.key if self.config.keyed else "", event.event_time_us
        joined = []
        for index in self.windows.indices(event_us):
            joins, is_late = self.rules.route(self, index, event)
            if joins:
                joined.append(index)
            if is_late:
                start_us = self.windows.start_us(index)
                steps.append(Late(self.number, start_us, key, event.source_id, event_us, batch))
        self.open.join(joined, key, event.value)
