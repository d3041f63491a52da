"""Promise 5 of docs/grouping.md: how far a router may be from a fluid, on any trace.

Rules of this file:

* Heavy keys are those that the trace names: whether it may name them, the comparison says. An
  impossible count is replaced by the nearest possible one.
* The distance of a router from a fluid is judged on average over windows, in tuples. It does not
  depend on the length of windows, and every policy is compared with what ``tag`` could do.
"""

from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from model.checking.claims import Outcome, Verdict
from model.grouping import balance
from model.grouping.evidence import Evidence, Window, evidence_of
from model.grouping.rules import RULES
from model.grouping.state import Count, Table
from model.vocabulary import GroupingConfig, Trace, Workload

CLOSE = "the makespan is that of a fluid but for a few tuples"
ROUNDING = 1e-9


def table_of(seen: Evidence, window: Window, config: GroupingConfig) -> Table:
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
    )


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
            for table in [table_of(seen, window, config)]
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
