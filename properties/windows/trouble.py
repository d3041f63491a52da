"""What trouble simulated clusters had: the guards of timed runs."""

from collections import Counter
from collections.abc import Iterable

from sim.kernel.run import TimedRun

TROUBLES = ("shed", "held_back", "sent_again", "served_again")
"""What a run's summary counts, where there was any."""


def troubles_of(runs: Iterable[TimedRun]) -> Counter[str]:
    """Return in how many runs each kind of trouble was met, and workers failed in a batch."""
    met = Counter(dict.fromkeys((*TROUBLES, "kills"), 0))
    for run in runs:
        met.update(name for name in TROUBLES if name in run.summary)
        met["kills"] += bool(run.workload.faults)
    return met
