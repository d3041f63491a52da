"""Counts of the cases that matter, in traces and in simulated runs."""

from collections import Counter
from collections.abc import Iterable

from model.vocabulary import Trace
from model.vocabulary.slack import Judged
from sim.kernel.run import TimedRun

PARTIAL = "windows that require a part"
TROUBLES = ("shed", "held_back", "sent_again", "served_again")
"""Entries of a run's summary that count trouble; a run without trouble has none of them."""


def count_troubles(runs: Iterable[TimedRun]) -> Counter[str]:
    """Count the runs that met each kind of trouble, and the runs whose workers failed."""
    met = Counter(dict.fromkeys((*TROUBLES, "kills"), 0))
    for run in runs:
        met.update(name for name in TROUBLES if name in run.summary)
        met["kills"] += bool(run.workload.faults)
    return met


def count_partial(trace: Trace, least: int = 0) -> int:
    """Count judged windows of ``least`` tuples or more that need only a part of them at first."""
    known = [(step.n_rcv + step.n_late, step.n_req) for step in trace.of(Judged)]
    return sum(total >= least and 0 < required < total for total, required in known)
