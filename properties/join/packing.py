"""Several workloads as one chain's workload, one after another, and its trace taken apart again.

A chain on Spark takes about half a second an epoch, whatever is in it; so several clusters share
their epochs: the last epoch of one is the first epoch of the next.

Rules of this file:

* Event times of two workloads are further apart than the window and any lateness, and those of the
  next are later. So no tuple of one matches a tuple of another, and no watermark of one makes a
  tuple of the next late.
"""

from collections.abc import Sequence
from itertools import chain

from model.vocabulary import Event, Fault, JoinConfig, Step, Trace, Workload
from model.vocabulary.join import Match, Rejected

IDS_A_CASE = 1 << 40
"""Identities of workload number n start at n times this."""
GAP_US = 1_000_000


def together(workloads: Sequence[Workload]) -> Workload:
    """Return one flushed workload with the arrivals of all; they have the same configuration."""
    config = JoinConfig.from_json(workloads[0].config)
    apart_us = config.window_us + (config.lateness_us or 0) + GAP_US
    events: list[Event] = []
    cuts: list[int] = []
    faults: set[Fault] = set()
    start_us = 0
    for number, workload in enumerate(workloads):
        assert workload.config == workloads[0].config, workload.config
        faults |= {fault._replace(at=fault.at + len(cuts)) for fault in workload.faults}
        cuts += [len(events) + cut for cut in _inner(workload)]
        shift_us = start_us - min((e.event_time_us for e in workload.arrivals), default=0)
        moved = [_moved(event, number, len(events), shift_us) for event in workload.arrivals]
        events += moved
        times_us = chain.from_iterable((e.event_time_us, e.arrival_us) for e in moved)
        start_us = max(times_us, default=start_us) + apart_us
    return workloads[0].with_(
        arrivals=tuple(events), cuts=tuple(cuts), faults=tuple(sorted(faults)), flush=True
    )


def taken_apart(trace: Trace, workloads: Sequence[Workload]) -> list[Trace]:
    """Return the results and rejections of each workload, from the trace of all together."""
    steps: list[list[Step]] = [[] for _ in workloads]
    for match in trace.of(Match):
        number = match.r_id // IDS_A_CASE
        r_id, s_id = (each - number * IDS_A_CASE for each in (match.r_id, match.s_id))
        steps[number].append(match._replace(r_id=r_id, s_id=s_id))
    firsts = [0]
    for workload in workloads:
        firsts.append(firsts[-1] + len(workload.arrivals))
    for rejected in trace.of(Rejected):
        number = next(n for n, first in enumerate(firsts[1:]) if rejected.seq < first)
        source_id = rejected.source_id - number * IDS_A_CASE
        steps[number].append(
            rejected._replace(seq=rejected.seq - firsts[number], source_id=source_id)
        )
    return [Trace(trace.producer, each) for each in steps]


def _inner(workload: Workload) -> list[int]:
    """Return the cuts between two micro-batches that are not empty."""
    return [cut for cut in sorted({*workload.cuts}) if 0 < cut < len(workload.arrivals)]


def _moved(event: Event, number: int, first: int, shift_us: int) -> Event:
    return event._replace(
        seq=first + event.seq,
        source_id=event.source_id + number * IDS_A_CASE,
        event_time_us=event.event_time_us + shift_us,
        arrival_us=event.arrival_us + shift_us,
    )
