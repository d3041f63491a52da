"""Counts of the cases that matter, in traces and in simulated runs."""

from collections.abc import Collection, Sequence

from model.vocabulary import Trace, Workload
from model.vocabulary.slack import Judged
from sim.kernel.run import TimedRun

PARTIAL = "windows that require a part"
TROUBLES = ("shed", "held_back", "sent_again", "served_again")
"""Entries of a run's summary that count trouble; a run without trouble has none of them."""


def count_troubles(run: TimedRun) -> dict[str, int]:
    """Count each kind of trouble that a run met, and whether its workers failed."""
    met = {name: int(name in run.summary) for name in TROUBLES}
    return {**met, "kills": bool(run.workload.faults)}


def count_redelivered(workload: Workload, rejected: Collection[int]) -> int:
    """Count arrivals that were not rejected, whose tuple had come before."""
    admitted = [each for each in workload.arrivals if each.seq not in rejected]
    return len(admitted) - len({(each.stream, each.source_id) for each in admitted})


def count_kills(kills: Sequence[int]) -> dict[str, int]:
    """Count kills, and those that struck when there was state to resume from."""
    return {"kills": len(kills), "kills with state": sum(batch > 0 for batch in kills)}


def count_partial(trace: Trace) -> int:
    """Count judged windows that need only a part of their tuples at first."""
    return sum(0 < step.n_req < step.n_rcv + step.n_late for step in trace.of(Judged))
