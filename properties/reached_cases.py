"""Counts of the cases that matter, in traces and in simulated runs."""

from collections import Counter
from collections.abc import Iterable

from model.vocabulary import Trace, Workload
from model.vocabulary.script.config import MILLISECOND_US
from model.vocabulary.slack import Judged
from properties.oracles.windows import Windows
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


# -------------------------------------------------------------------------------------- scales

WIDE = (
    "spans of years",
    "spans below a millisecond",
    "identities beyond 2^32",
    "values beyond float32",
)
MANY_OR_FEW = (
    "streams of a thousand keys",
    "windows of one tuple",
    "windows of a thousand tuples",
)
SIZED = (*WIDE, *MANY_OR_FEW)
"""Cases that :func:`count_scales` counts, those of wide numbers first."""
YEAR_US, MANY = 365 * 86_400_000_000, 1_000
NO_WINDOWS: Windows = {}
FLOAT32_EXACT = 2**24
"""Largest whole number up to which a 32-bit float holds all whole numbers."""


def count_scales(workload: Workload, windows: Windows = NO_WINDOWS) -> dict[str, int]:
    """Count the large and small numbers in a stream, and in its windows if they are given."""
    times_us = [event.event_time_us for event in workload.arrivals]
    span_us = max(times_us, default=0) - min(times_us, default=0)
    found = (
        span_us >= YEAR_US,
        1 < span_us < MILLISECOND_US,
        any(event.source_id >= 1 << 32 for event in workload.arrivals),
        workload.config.get("aggregate") != "count"
        and any(event.value > FLOAT32_EXACT for event in workload.arrivals),
        len({event.key for event in workload.arrivals}) >= MANY,
        sum(each.n == 1 for each in windows.values()),
        sum(each.n >= MANY for each in windows.values()),
    )
    return {name: int(count) for name, count in zip(SIZED, found, strict=True)}
