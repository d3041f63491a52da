"""Watermarks from operators upstream (docs/watermark.md, section 11).

Tasks share nothing within a micro-batch. Every task therefore gets the arrivals of all tasks and
computes all operators by itself: the same numbers in every task.

Rules of this file:

* An operator's watermark never falls, so the least watermark after an arrival is the least of all
  watermarks that a later arrival finds at its operator, and of those at the end. This holds as
  long as no operator can be idle.
* Otherwise a *spell* is the run of arrivals from one passing of an operator to the next, cut where
  the operator becomes idle. The least watermark is the least of all spells that are there.
* A watermark travels between the arrivals of the task, as a row with the key ``INSERTED``.
* The task to which an arrival belongs records its passing and the insertion at it.
"""

from typing import NamedTuple

import numpy as np

from model.vocabulary import WatermarkConfig
from spark_impl.runtime.arrays import Bools, Ints, Records
from spark_impl.watermark.rule import CLOCK
from spark_impl.windows.disorder import cluster_sizes, count_inversions, wait_us
from spark_impl.windows.records import INSERTED, NO_CLOCK, Rows, fill_records
from spark_impl.windows.room import HOLDER, Path, Rule

OPERATOR = np.dtype([("t_max_us", "<i8"), ("wm_us", "<i8"), ("inv", "<i8"), ("n", "<i8")])
"""An operator between two micro-batches; ``n`` is the size of its cluster."""
PASSING = np.dtype([("upstream", "<i8"), *((name, CLOCK[name]) for name in CLOCK.names or ())])
"""The clock of an operator after an arrival."""
INSERTION = np.dtype([("seq", "<i8"), ("t_max_us", "<i8"), ("wm_us", "<i8")])
"""A watermark that all tasks receive."""

_LAST_US = (1 << 63) - 1


class UpstreamMemory(NamedTuple):
    """All operators between two micro-batches."""

    t_max_us: int = NO_CLOCK
    """Largest event time upstream."""
    inserted_us: int = NO_CLOCK
    """The last watermark that was inserted."""
    slack_us: int = 0
    """Distance of that watermark from ``t_max_us`` then; 0 before the first insertion."""
    period: int = -(1 << 63)
    """The latest period in which something arrived."""
    operators: Records = np.empty(0, OPERATOR)
    """Empty before the first micro-batch."""
    clusters: Ints = np.empty(0, np.int64)
    """The last k event times of every operator, one cluster after the other."""
    moments: Ints = np.empty(0, np.int64)
    """The arrival clock at the last passing of every operator, at the first passing of any one for
    those that were never passed. The largest is the clock now. Empty without ``idle_after_us``."""


class UpstreamRule(Rule):
    """The operators upstream and the watermarks of one task during one micro-batch."""

    def __init__(
        self, config: WatermarkConfig, task: int, n_keys: int, memory: UpstreamMemory
    ) -> None:
        del task, n_keys  # all tasks receive the same watermarks
        self._config = config
        if not len(memory.operators):
            unused = fill_records(OPERATOR, config.upstreams, t_max_us=NO_CLOCK, wm_us=NO_CLOCK)
            memory = memory._replace(operators=unused)
        self._memory = memory
        self._passings = np.empty(0, PASSING)
        self._inserted = np.empty(0, INSERTION)

    def receive(self, rows: Rows, operator: Ints, mine: Bools) -> Rows:
        """Let all arrivals pass; return those of the task, with watermarks between them."""
        if not len(rows.seq):
            return rows
        known = self._memory.operators["wm_us"]
        passings, before = self._pass(rows, operator)
        t_max = np.maximum.accumulate(np.maximum(passings["t_max_us"], self._memory.t_max_us))
        if self._config.idle_after_us is None:
            least = self._least(before)
        else:
            least = self._least_awake(rows, operator, known, passings["wm_us"])
        where, inserted = self._insert(rows, least, t_max)
        self._passings = passings[mine]
        self._inserted = inserted[mine[where]]
        own = np.flatnonzero(mine)
        size = len(where)
        none = np.zeros(size, np.int64)
        marks = Rows(
            seq=inserted["seq"],
            source_id=none,
            key=np.full(size, INSERTED, np.int64),
            event_time_us=inserted["wm_us"],
            value=np.zeros(size),
            arrival_us=inserted["t_max_us"],
            flaw=none,
        )
        order = np.argsort(np.concatenate((where, own)), kind="stable")
        together = zip(marks, rows.take(own), strict=True)
        return Rows._make(np.concatenate(both) for both in together).take(order)

    def _pass(self, rows: Rows, operator: Ints) -> tuple[Records, Ints]:
        """Return the clock of each arrival's operator after it, and the watermark before it."""
        config, operators = self._config, self._memory.operators.copy()
        passings = fill_records(PASSING, len(operator), upstream=operator, seq=rows.seq)
        before = np.empty(len(operator), np.int64)
        clusters = np.split(self._memory.clusters, np.cumsum(operators["n"])[:-1])
        for number in np.unique(operator).tolist():
            here = np.flatnonzero(operator == number)
            times, known, old = rows.event_time_us[here], clusters[number], operators[number]
            inv = count_inversions(config.k, known, int(old["inv"]), times)
            n = cluster_sizes(config.k, len(known), len(here))
            wait = wait_us(config.reading, config.max_wait_us, inv, n)
            t_max = np.maximum(np.maximum.accumulate(times), old["t_max_us"])
            wm = np.maximum(np.maximum.accumulate(t_max - wait), old["wm_us"])
            before[here] = np.concatenate(([old["wm_us"]], wm[:-1]))
            clock = {"t_max_us": t_max, "inv": inv, "wait_us": wait, "wm_us": wm}
            for name, column in clock.items():
                passings[name][here] = column
            clusters[number] = np.concatenate((known, times))[-config.k :]
            operators[number] = (t_max[-1], wm[-1], inv[-1], n[-1])
        self._memory = self._memory._replace(operators=operators, clusters=np.concatenate(clusters))
        return passings, before

    def _least(self, before: Ints) -> Ints:
        """Return the least watermark that an insertion at each arrival would find.

        ``before`` is the watermark that each arrival finds at its operator.
        """
        last = self._memory.operators["wm_us"].min()
        least: Ints = np.minimum.accumulate(np.append(before, last)[::-1])[::-1]
        return least[:-1] if self._config.insert_every_us else least[1:]

    def _least_awake(self, rows: Rows, operator: Ints, known: Ints, after: Ints) -> Ints:
        """Return what :meth:`_least` does, without the operators that are idle.

        ``known`` is the watermark of every operator before the micro-batch, ``after`` that of each
        arrival's operator behind the arrival.
        """
        size, moments = len(operator), self._memory.moments
        clock = np.maximum.accumulate(rows.arrival_us)
        if len(moments):
            clock = np.maximum(clock, moments.max())
        else:
            moments = np.full(self._config.upstreams, clock[0])
        first = np.arange(size) + (self._config.insert_every_us > 0)
        who = np.concatenate((np.arange(len(moments)), operator))
        begin = np.concatenate((np.zeros_like(moments), first))
        order = np.argsort(who, kind="stable")
        until = np.full(len(who), size)
        follows = who[order][1:] == who[order][:-1]
        until[order[:-1][follows]] = begin[order[1:][follows]]
        awake_us = self._awake_until(np.concatenate((moments, clock)))
        until = np.minimum(until, np.searchsorted(clock, awake_us, side="right"))
        moments = moments.copy()
        np.maximum.at(moments, operator, clock)
        self._memory = self._memory._replace(moments=moments)
        least = least_of_spans(size, begin, until, np.concatenate((known, after)))
        return np.where(least == _LAST_US, NO_CLOCK, least)

    def _awake_until(self, moments: Ints) -> Ints:
        """Return the last reading of the clock at which an operator is not idle yet."""
        idle_us = self._config.idle_after_us or 0
        return np.minimum(moments, _LAST_US - idle_us) + idle_us

    def _insert(self, rows: Rows, least: Ints, t_max: Ints) -> tuple[Ints, Records]:
        """Return the positions of arrivals at which watermarks are inserted, and the watermarks."""
        memory = self._memory
        if self._config.insert_every_us:
            period = rows.arrival_us // self._config.insert_every_us
            latest = np.maximum.accumulate(np.append(memory.period, period))
            where = np.flatnonzero(period > latest[:-1])
            wm, top = least[where], np.append(memory.t_max_us, t_max)[where]
            memory = memory._replace(period=int(latest[-1]))
        else:
            where, wm, top = np.arange(len(least)), least, t_max
        rises = wm > np.maximum.accumulate(np.append(memory.inserted_us, wm))[:-1]
        where, wm, top = where[rises], wm[rises], top[rises]
        memory = memory._replace(t_max_us=int(t_max[-1]))
        if len(wm):
            inserted, behind = int(wm[-1]), int(top[-1] - wm[-1])
            memory = memory._replace(inserted_us=inserted, slack_us=behind)
        self._memory = memory
        return where, fill_records(
            INSERTION, len(where), seq=rows.seq[where], t_max_us=top, wm_us=wm
        )

    def look(self, rows: Rows, t_max: Ints) -> None:
        """Look at the next rows."""
        del t_max  # a watermark from upstream does not depend on the task
        self._rows = rows

    def path(self, start: int, wm_us: int) -> Path:
        """Return the path from row ``start`` to the last one: it rises at watermarks only."""
        rows = self._rows.take(slice(start, None))
        rises = rows.key == INSERTED
        wm = np.maximum.accumulate(np.where(rises, rows.event_time_us, NO_CLOCK))
        wm = np.maximum(wm, wm_us)
        return Path(rows.arrival_us - wm, wm)

    def slack_us(self) -> int:
        """Return how far the last watermark was behind when it was inserted."""
        return self._memory.slack_us

    def memory(self) -> UpstreamMemory:
        """Return the operators."""
        return self._memory

    def progress(self) -> dict[str, float]:
        """Return the operator that holds the watermark back."""
        wm, moments = self._memory.operators["wm_us"], self._memory.moments
        if len(moments):
            awake = self._awake_until(moments) >= moments.max()
            wm = np.where(awake, wm, _LAST_US)
        return {HOLDER: int(np.argmin(wm))}

    def records(self) -> dict[str, Records]:
        """Return the passings and the insertions at arrivals of the task."""
        return {"passing": self._passings, "inserted": self._inserted}


def least_of_spans(size: int, begin: Ints, end: Ints, value: Ints) -> Ints:
    """Return the least value of all spans ``begin .. end - 1`` around each position below ``size``.

    Where no span is, this is the largest integer. A span is the union of two others whose length is
    a power of 2, and these fall apart into halves, so this takes time O(size * log(size)).
    """
    filled = np.flatnonzero(end > begin)
    begin, end, value = begin[filled], end[filled], value[filled]
    level = np.frexp(end - begin)[1] - 1
    least = np.full(size, _LAST_US)
    for power in range(int(level.max(initial=0)), -1, -1):
        half = 1 << power
        above = least
        least = above.copy()
        np.minimum(least[half:], above[:-half], out=least[half:])
        here = level == power
        np.minimum.at(least, begin[here], value[here])
        np.minimum.at(least, end[here] - half, value[here])
    return least
