"""Room ``grouping`` in time: senders route window by window, instances serve (docs/grouping.md).

Rules of this file:

* Where a tuple goes is decided by the model's senders; here is only when, and how long it takes.
* A window is over for a sender when it has sent its part of it. A rebalance waits for the last one,
  and nobody sends before it: so it knows what instances have served by then, and nothing more.
* Times are the ones that the configuration gives, or measured: what instances took for the tuples
  that they served since the last rebalance. One that served none keeps what was known of it.
"""

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.grouping.run import Run as Senders
from model.grouping.table import Rules
from model.vocabulary import GroupingConfig, Workload
from sim.grouping.crew import Crew, measured_us
from sim.grouping.line import Line, Passage
from sim.kernel.distributions import FloatArray, draw_us
from sim.kernel.seeds import Seeds

IntArray = NDArray[np.int64]


class Span(NamedTuple):
    """A window in time."""

    first: int
    """Its first arrival."""
    end: int
    """The first arrival after it."""
    began_us: float
    times_us: tuple[int, ...]
    """By which its senders went."""


class Seen(NamedTuple):
    """When the tuples of a run were where, by their position among the arrivals."""

    arrived_us: FloatArray
    instances: IntArray
    sent_us: FloatArray
    began_us: FloatArray
    ended_us: FloatArray


class Room:
    """Senders and instances on their way through a workload."""

    def __init__(
        self, workload: Workload, crew: Crew, start_us: int, rules: Rules, measured: bool = False
    ) -> None:
        """Arrivals before ``start_us`` wait for the run to start."""
        self.config = GroupingConfig.from_json(workload.config)
        if measured:
            guess = ((0, self.config.times_of(0)),)
            self.config = replace(self.config, times_us=guess)
        self.workload = workload
        self.crew = crew
        self.senders = Senders(self.config, rules)
        self.spans: list[Span] = []
        self._measured = measured
        self._line = Line(crew, self.config.instances, self.config.senders)
        at_us = np.array([each.arrival_us for each in workload.arrivals], dtype=np.int64)
        self._arrived_us: FloatArray = np.maximum(0.0, at_us - start_us)
        self._work_us = draw_us(crew.service, Seeds(workload.seed), "service", len(at_us))
        self._instances: list[int] = []
        self._passages: list[Passage] = []
        self._pending: list[tuple[IntArray, FloatArray, FloatArray]] = []

    def run(self) -> None:
        """Until every tuple has been served."""
        for number, arrivals in enumerate(self.workload.batches()):
            # The model rebalances when the first micro-batch after a full window comes.
            if self.senders.tuples >= self.config.window_tuples:
                self._send()
                self._rebalance(number)
            self._instances += self.senders.batch(arrivals, number)
        self._send()

    def _send(self) -> None:
        """What has been routed and not sent yet."""
        first = self.spans[-1].end if self.spans else 0
        end = len(self._instances)
        if first == end:
            return
        part = slice(first, end)
        passage = self._line.send(
            first,
            self._arrived_us[part].tolist(),
            self._instances[part],
            self._work_us[part].tolist(),
        )
        table = self.senders.table
        self.spans.append(Span(first, end, min(passage.asked_us), table.times_us))
        self._passages.append(passage)

    def _rebalance(self, number: int) -> None:
        now_us = self._line.ready_us
        self._line.wait(now_us)
        if not self._measured:
            return
        times_us = measured_us(self.spans[-1].times_us, self.crew, self._served(now_us))
        if times_us != self.config.times_of(number):
            pairs = (*self.config.times_us, (number, times_us))
            self.config = replace(self.config, times_us=pairs)
            self.senders.table = replace(self.senders.table, config=self.config)

    def _served(self, now_us: float) -> list[tuple[int, float]]:
        """What instances have served since the last time: how many, and how long it took."""
        passage, span = self._passages[-1], self.spans[-1]
        instances = np.array(self._instances[span.first : span.end])
        began_us, ended_us = np.array(passage.began_us), np.array(passage.ended_us)
        parts = [*self._pending, (instances, began_us, ended_us)]
        instances, began_us, ended_us = (
            np.concatenate(columns) for columns in zip(*parts, strict=True)
        )
        done = ended_us <= now_us
        self._pending = [(instances[~done], began_us[~done], ended_us[~done])]
        n = self.config.instances
        counts = np.bincount(instances[done], minlength=n)
        busy_us = np.bincount(instances[done], (ended_us - began_us)[done], minlength=n)
        return list(zip(counts.tolist(), busy_us.tolist(), strict=True))

    @cached_property
    def seen(self) -> Seen:
        """When everything was where, once the run is over."""

        def column(name: str) -> FloatArray:
            parts = [np.array(getattr(passage, name)) for passage in self._passages]
            return np.concatenate((np.empty(0), *parts))

        return Seen(
            self._arrived_us,
            np.array(self._instances, dtype=np.int64),
            *(column(name) for name in ("sent_us", "began_us", "ended_us")),
        )
