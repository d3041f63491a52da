"""Upstream operators that count the disorder, and insert watermarks (docs/watermark.md).

Rules of this file:

* No clock: the period of insertions is counted on the arrival times.
* An operator knows no identities, so a redelivery enters its cluster.
"""

from model.vocabulary import Event, Step, WatermarkConfig
from model.vocabulary.watermark import Inserted, Passing
from model.watermark.rules import Rules
from model.windows.cluster import Cluster
from model.windows.state import BEFORE_TIME_US
from model.windows.upstream import Insertion, Passed


class _Operator:
    """One upstream operator."""

    __slots__ = ("cluster", "passed_us", "t_max_us", "wm_us")

    def __init__(self, k: int) -> None:
        self.cluster = Cluster(k)
        self.t_max_us = BEFORE_TIME_US
        self.wm_us = BEFORE_TIME_US
        self.passed_us: int | None = None  # the arrival clock when it was passed last


class Upstreams:
    """All upstream operators of a query, and what they have inserted."""

    __slots__ = ("_arrived_us", "_clock_us", "_config", "_inserted_us", "_operators", "_rules")

    def __init__(self, config: WatermarkConfig, rules: Rules) -> None:
        self._config, self._rules = config, rules
        self._operators = [_Operator(config.k) for _ in range(config.upstreams)]
        self._arrived_us: int | None = None  # the latest arrival time before the present one
        self._clock_us: int | None = None  # the latest arrival time, with the present one
        self._inserted_us = BEFORE_TIME_US

    def arrive(self, event: Event, batch: int) -> Passed:
        """Take one arrival: insert what is due before it, then move the clock of its operator."""
        if self._rules.reject(self._config, event) is not None:
            return Passed()
        steps: list[Step] = []
        insertion = None
        clock_us = event.arrival_us
        self._clock_us = clock_us if self._clock_us is None else max(self._clock_us, clock_us)
        if self._config.insert_every_us:
            if self._rules.is_due(self._config.insert_every_us, self._arrived_us, event.arrival_us):
                insertion = self._insert(event, batch, steps)
            self._arrived_us = max(event.arrival_us, self._arrived_us or event.arrival_us)
        steps.append(self._advance(event, batch))
        if not self._config.insert_every_us:
            insertion = self._insert(event, batch, steps)
        return Passed(tuple(steps), insertion)

    def _advance(self, event: Event, batch: int) -> Passing:
        rules, number = self._rules, self._rules.upstream_of(event.key, self._config.upstreams)
        operator = self._operators[number]
        for each in self._operators:
            if each.passed_us is None or each is operator:
                each.passed_us = self._clock_us
        operator.t_max_us = max(operator.t_max_us, event.event_time_us)
        operator.cluster = rules.entered(operator.cluster, event.event_time_us)
        wait_us = rules.wait_us(self._config, operator.cluster)
        operator.wm_us = rules.wm_us(operator.wm_us, operator.t_max_us - wait_us)
        return Passing(
            number,
            event.seq,
            batch,
            operator.t_max_us,
            operator.cluster.inv,
            wait_us,
            operator.wm_us,
        )

    def _insert(self, event: Event, batch: int, steps: list[Step]) -> Insertion | None:
        """Insert the least watermark if all operators but idle ones have one and it has risen."""
        live = [operator.wm_us for operator in self._operators if not self._is_idle(operator)]
        wm_us = self._rules.least(live) if live else BEFORE_TIME_US
        if wm_us <= self._inserted_us:
            return None
        self._inserted_us = wm_us
        t_max_us = max(operator.t_max_us for operator in self._operators)
        steps.append(Inserted(event.seq, batch, t_max_us, wm_us))
        return Insertion(wm_us, t_max_us - wm_us)

    def _is_idle(self, operator: _Operator) -> bool:
        """Return whether an operator has been silent so long that it holds nothing back."""
        longest_us, passed_us = self._config.idle_after_us, operator.passed_us
        if longest_us is None or passed_us is None or self._clock_us is None:
            return False
        return self._clock_us - passed_us > longest_us


def upstreams_of(config: WatermarkConfig, rules: Rules) -> Upstreams | None:
    """Return the upstream operators of a query; None if its tasks have watermarks of their own."""
    return Upstreams(config, rules) if config.upstreams else None
