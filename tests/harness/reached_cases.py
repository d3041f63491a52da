"""Counts of the cases that matter, in one test of a promise and in simulated runs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from model.vocabulary import Trace
from model.vocabulary.slack import Judged
from sim.kernel.run import TimedRun

LARGE = 100
"""Fewest tuples of a large window."""

TROUBLES = ("shed", "held_back", "sent_again", "served_again")
"""Entries of a run's summary that count trouble; a run without trouble has none of them."""


class Reached:
    """Counter of interesting cases, by name."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def add(self, counts: Mapping[str, int]) -> None:
        """Add counts to those of the same names."""
        self.counts.update({name: count for name, count in counts.items() if count})

    def missing(self, needed: Sequence[str]) -> list[str]:
        """Return the needed cases that never occurred."""
        return [name for name in needed if not self.counts[name]]


def count_troubles(runs: Iterable[TimedRun]) -> Counter[str]:
    """Count the runs that met each kind of trouble, and the runs whose workers failed."""
    met = Counter(dict.fromkeys((*TROUBLES, "kills"), 0))
    for run in runs:
        met.update(name for name in TROUBLES if name in run.summary)
        met["kills"] += bool(run.workload.faults)
    return met


def count_large_and_partial(trace: Trace) -> int:
    """Count judged windows that are large and need only a part of their tuples at first."""
    known = [(step.n_rcv + step.n_late, step.n_req) for step in trace.of(Judged)]
    return sum(total >= LARGE and 0 < required < total for total, required in known)
