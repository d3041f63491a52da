"""Upstream operators that count the disorder, and insert watermarks (docs/watermark.md).

Rules of this file:

* No clock: the period of insertions and the silence of an operator are counted on arrival times.
* An operator knows no identities, so a redelivery enters its cluster.
"""

from dataclasses import dataclass

from model.vocabulary import Event, Step, WatermarkConfig, task_of
from model.vocabulary.watermark import Inserted, Passing
from model.watermark.rules import Rules
from model.windows.cluster import Cluster
from model.windows.machine import Insertion, Passed, Upstream
from model.windows.state import BEFORE_TIME_US


@dataclass(slots=True)
class _Operator:
    """One upstream operator."""

    cluster: Cluster
    passed_us: int | None = None
    """The arrival clock at the last passing; None before the first."""
    t_max_us: int = BEFORE_TIME_US
    wm_us: int = BEFORE_TIME_US


class Upstreams:
    """All upstream operators of a query, and what they have inserted."""

    __slots__ = ("_arrived_us", "_began_us", "_config", "_inserted_us", "_operators", "_rules")

    def __init__(self, config: WatermarkConfig, rules: Rules) -> None:
        self._config, self._rules = config, rules
        self._operators = [_Operator(Cluster(config.k)) for _ in range(config.upstreams)]
        self._arrived_us: int | None = None  # the latest arrival time so far
        self._began_us = 0  # that of the first arrival
        self._inserted_us = BEFORE_TIME_US

    def arrive(self, event: Event, batch: int) -> Passed:
        """Take one arrival: insert what is due before it, then move the clock of its operator."""
        if self._rules.reject(event) is not None:
            return Passed()
        steps: list[Step] = []
        insertion = None
        now_us = event.arrival_us
        if self._arrived_us is None:
            self._arrived_us = self._began_us = now_us
        before_us = self._arrived_us
        self._arrived_us = max(before_us, now_us)
        period_us = self._config.insert_every_us
        if period_us and now_us // period_us > before_us // period_us:
            insertion = self._insert(event, batch, self._arrived_us, steps)
        steps.append(self._advance(event, batch, self._arrived_us))
        if not period_us:
            insertion = self._insert(event, batch, self._arrived_us, steps)
        return Passed(tuple(steps), insertion)

    def _advance(self, event: Event, batch: int, arrived_us: int) -> Passing:
        number = task_of(event.key, self._config.upstreams)
        operator = self._operators[number]
        operator.passed_us = arrived_us
        operator.t_max_us = max(operator.t_max_us, event.event_time_us)
        operator.cluster.enter(event.event_time_us)
        wait_us = self._rules.wait_us(self._config, operator.cluster)
        operator.wm_us = max(operator.wm_us, operator.t_max_us - wait_us)
        return Passing(
            number,
            event.seq,
            batch,
            operator.t_max_us,
            operator.cluster.inv,
            wait_us,
            operator.wm_us,
        )

    def _insert(
        self, event: Event, batch: int, arrived_us: int, steps: list[Step]
    ) -> Insertion | None:
        """Insert the least watermark of the operators that are not idle, if it has risen."""
        awake = [each for each in self._operators if not self._is_idle(each, arrived_us)]
        wm_us = min([each.wm_us for each in awake], default=self._inserted_us)
        if wm_us <= self._inserted_us:
            return None
        self._inserted_us = wm_us
        t_max_us = max(operator.t_max_us for operator in self._operators)
        steps.append(Inserted(event.seq, batch, t_max_us, wm_us))
        return Insertion(wm_us, t_max_us - wm_us)

    def _is_idle(self, operator: _Operator, arrived_us: int) -> bool:
        """Return whether an operator has been silent for too long to hold a watermark back."""
        last_us = self._began_us if operator.passed_us is None else operator.passed_us
        idle_after_us = self._config.idle_after_us
        return idle_after_us is not None and arrived_us - last_us > idle_after_us


def upstreams_of(config: WatermarkConfig, rules: Rules) -> Upstream | None:
    """Return the upstream operators of a query; None if its tasks have watermarks of their own."""
    return Upstreams(config, rules).arrive if config.upstreams else None
