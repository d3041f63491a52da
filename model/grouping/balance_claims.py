"""Promise 5 of docs/grouping.md: balance, if keys are drawn independently of each other.

Rules of this file:

* The bound judges every window by itself: its candidates and times are fixed before its tuples
  come. The distribution of the keys must be known.
* Heavy keys are those that the trace names: whether it may name them, the comparison says. An
  impossible count is replaced by the nearest possible one.
* The distance of a router from a fluid is judged on average over windows, in tuples. It does not
  depend on the length of windows, and every policy is compared with what ``tag`` could do.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple, TypeAlias

from model.checking.claims import SHOWN, Outcome, Verdict
from model.grouping import balance
from model.grouping.evidence import Evidence, Window, evidence_of
from model.grouping.rules import RULES
from model.grouping.state import Count, Table
from model.vocabulary import Event, GroupingConfig, Trace, Workload

UPPER = "no instance has more work than the bound allows"
CLOSE = "the makespan is that of a fluid but for a few tuples"
ROUNDING = 1e-9
TIMED = ("tag", "tag-literal")
"""Policies whose loads are times, and 0 at the start of a window."""

Weights: TypeAlias = Mapping[str, int] | Callable[[Event], Mapping[str, int]]
"""Weights with which keys are drawn: the same for all tuples, or by the source of a tuple. The
bound sums the expected cost of each tuple, so tuples may have different weights.
"""


@dataclass(frozen=True, slots=True)
class Balance:
    """The spread of a window's tuples over the instances."""

    window: int
    counts: tuple[int, ...]
    """Tuples at each instance."""
    work: int
    """Largest work of an instance (us)."""
    bound: float
    """Work that this router may give any instance, except with probability delta."""


def balances(
    workload: Workload, trace: Trace, weights: Weights, delta: float
) -> tuple[Balance, ...]:
    """Return the balance of every window, in order, if keys are drawn with these weights.

    Raises ``ValueError`` if the bound does not apply: for several senders, and for policies that
    do not balance times.
    """
    seen = evidence_of(workload, trace)
    if seen.config.senders > 1:
        msg = f"senders is {seen.config.senders}; the bound is for one"
        raise ValueError(msg)
    if seen.config.policy not in TIMED:
        msg = f"policy is {seen.config.policy!r}; the bound is for {' and '.join(TIMED)}"
        raise ValueError(msg)
    return tuple(_balance(seen, window, weights, delta) for window in seen.windows)


def _balance(seen: Evidence, window: Window, weights: Weights, delta: float) -> Balance:
    table = _table(seen, window, seen.config)
    times_us = table.times_us
    counts, m = seen.counts(window), len(window.arrivals)
    work_us = sum(
        tuples * balance.least_time_us(_shares(drawn, table), times_us)
        for drawn, tuples in _drawn(window, weights)
    )
    return Balance(
        window.number,
        counts,
        max(balance.work_us(counts, times_us)),
        balance.largest_work_us(work_us / m, m, times_us, delta),
    )


def _table(seen: Evidence, window: Window, config: GroupingConfig) -> Table:
    """Return the table of a window for the heavy keys that the trace names."""
    named = seen.heavy.get(window.number, []) if window.number else []
    n = len(seen.windows[window.number - 1].arrivals) if window.number else 0
    return Table(
        config,
        RULES,
        window.number,
        config.times_of(window.first_batch),
        costs=(),
        heavy={each.key: Count(min(max(1, each.counted), n), each.error) for each in named},
        tuples=n,
        placement=None,
    )


def _drawn(window: Window, weights: Weights) -> list[tuple[Mapping[str, int], int]]:
    """Return the distributions from which a window's tuples are drawn, with numbers of tuples."""
    if isinstance(weights, Mapping):
        return [(weights, len(window.arrivals))]
    found = [weights(event) for event in window.arrivals]
    times = Counter(map(id, found))
    return [(each, times[number]) for number, each in {id(each): each for each in found}.items()]


def _shares(weights: Mapping[str, int], table: Table) -> balance.Masses:
    """Return the shares of keys with the same candidates."""
    total = sum(weights.values())
    sets = ((frozenset(table.candidates(key)), each / total) for key, each in weights.items())
    return balance.masses(sets)


def check(workload: Workload, trace: Trace, weights: Weights, delta: float) -> Verdict:
    """Judge the bound. A right router breaks it with probability delta a window."""
    found = balances(workload, trace, weights, delta)
    against = tuple(
        f"In window {each.window} an instance has the work {each.work}; more than "
        f"{each.bound:.0f} has probability {delta:g} (counts {each.counts})."
        for each in found
        if each.work > each.bound
    )
    if against:
        return Verdict(UPPER, Outcome.BROKEN, against[0], against[:SHOWN])
    return Verdict(UPPER, Outcome.HOLDS, f"No work is above the bound (windows: {len(found):,}).")


# --------------------------------------------------------------------------------- how close


class Closeness(NamedTuple):
    """Distance of a window from the optimum with the candidates of ``tag``."""

    window: int
    counts: tuple[int, ...]
    """Tuples at each instance."""
    times_us: tuple[int, ...]
    fluid_us: float
    """Makespan of a fluid whose keys are spread over their candidates in the best way."""

    @property
    def above(self) -> float:
        """Excess of the makespan over the fluid's, in tuples of the slowest instance."""
        makespan_us = max(balance.work_us(self.counts, self.times_us))
        return (makespan_us - self.fluid_us) / max(self.times_us)


def closeness(workload: Workload, trace: Trace) -> tuple[Closeness, ...]:
    """Return the closeness of every full window but the first, which knows no heavy keys."""
    seen = evidence_of(workload, trace)
    config = replace(seen.config, policy="tag")
    return tuple(
        [
            Closeness(window.number, seen.counts(window), table.times_us, _fluid_us(window, table))
            for window in seen.windows[1:]
            for table in [_table(seen, window, config)]
            if len(window.arrivals) >= config.window_tuples
        ]
    )


def _fluid_us(window: Window, table: Table) -> float:
    sets = ((frozenset(table.candidates(key)), f) for key, f in window.frequencies.items())
    return balance.least_time_us(balance.masses(sets), table.times_us)


def check_closeness(workload: Workload, trace: Trace) -> Verdict:
    """Judge whether the makespan is that of a fluid but for a few tuples of every sender.

    The times say how few (:func:`model.grouping.balance.tuples_above`): two, unless there are many
    instances that are nearly alike. Without a full window after the first, the verdict is
    undetermined.
    """
    found = closeness(workload, trace)
    if not found:
        return Verdict(CLOSE, Outcome.UNDETERMINED, "There is no full window after the first.")
    senders = GroupingConfig.from_json(workload.config).senders
    # Each sender may be this far above its own part of the fluid.
    limit = senders * fmean(balance.tuples_above(each.times_us) for each in found)
    above = fmean(each.above for each in found)
    sentence = (
        f"On average over {len(found)} windows, the makespan is {above:.2f} tuples of the slowest "
        f"instance above that of a fluid; {limit:g} are allowed."
    )
    if above <= limit * (1 + ROUNDING):
        return Verdict(CLOSE, Outcome.HOLDS, sentence)
    worst = max(found, key=lambda each: each.above)
    witness = f"Window {worst.window} is {worst.above:.2f} tuples above (counts {worst.counts})."
    return Verdict(CLOSE, Outcome.BROKEN, sentence, (witness,))
