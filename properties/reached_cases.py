"""Counts of the cases that matter, in traces and in simulated runs."""

from collections.abc import Collection, Sequence

from model.vocabulary import Trace, Workload
from model.vocabulary.script.config import MILLISECOND_US
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


# -------------------------------------------------------------------------------------- scales

SIZED = (
    *("spans of years", "spans below a millisecond"),
    *("identities beyond 2^32", "values beyond float32"),
    *("streams of a thousand keys", "windows of one tuple", "windows of a thousand tuples"),
)
"""Cases that :func:`count_scales` counts, those of wide numbers first."""
WIDE = SIZED[:4]
YEAR_US, MANY = 365 * 86_400_000_000, 1_000
FLOAT32_EXACT = 2**24
"""Largest whole number up to which a 32-bit float holds all whole numbers."""


def count_scales(workload: Workload, sizes: Collection[int] = ()) -> dict[str, int]:
    """Count the large and small numbers in a stream, and its windows of some sizes."""
    times_us = [event.event_time_us for event in workload.arrivals]
    span_us = max(times_us, default=0) - min(times_us, default=0)
    found = (
        span_us >= YEAR_US,
        1 < span_us < MILLISECOND_US,
        any(event.source_id >= 1 << 32 for event in workload.arrivals),
        workload.config.get("aggregate") != "count"
        and any(event.value > FLOAT32_EXACT for event in workload.arrivals),
        len({event.key for event in workload.arrivals}) >= MANY,
        sum(each == 1 for each in sizes),
        sum(each >= MANY for each in sizes),
    )
    return {name: int(count) for name, count in zip(SIZED, found, strict=True)}
