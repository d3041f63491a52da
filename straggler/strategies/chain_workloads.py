"""Conversion of several workloads into one for a chain.

A chain on Spark takes about half a second an epoch, whatever the epoch holds. Workloads that share
a chain share its epochs: the last epoch of one is the first epoch of the next. Their event times
are further apart than the window and any lateness, so no tuple of one matches a tuple of another,
and no watermark of one makes a tuple of the next late.
"""

from collections.abc import Sequence
from itertools import chain

from model.vocabulary import Event, Fault, JoinConfig, Workload

GAP_US = 1_000_000
IDS_A_CASE = 1 << 40
"""Identities of workload ``n`` of :func:`pack_together` start at ``n`` times this."""


def pack_together(workloads: Sequence[Workload]) -> Workload:
    """Return one flushed workload with the arrivals of all, which share one configuration."""
    config = JoinConfig.from_json(workloads[0].config)
    apart_us = config.window_us + (config.lateness_us or 0) + GAP_US
    events: list[Event] = []
    cuts: list[int] = []
    faults: set[Fault] = set()
    start_us = 0
    for number, workload in enumerate(workloads):
        assert workload.config == workloads[0].config, workload.config
        faults |= {fault._replace(at=fault.at + len(cuts)) for fault in workload.faults}
        cuts += [len(events) + cut for cut in inner_cuts(workload)]
        shift_us = start_us - min((e.event_time_us for e in workload.arrivals), default=0)
        moved = [
            move(event, number * IDS_A_CASE, len(events), shift_us) for event in workload.arrivals
        ]
        events += moved
        times_us = chain.from_iterable((e.event_time_us, e.arrival_us) for e in moved)
        start_us = max(times_us, default=start_us) + apart_us
    return workloads[0].with_(
        arrivals=tuple(events), cuts=tuple(cuts), faults=tuple(sorted(faults)), flush=True
    )


def inner_cuts(workload: Workload) -> list[int]:
    """Return the cuts between two micro-batches that are not empty."""
    return [cut for cut in sorted({*workload.cuts}) if 0 < cut < len(workload.arrivals)]


def move(event: Event, ids: int, first: int, shift_us: int) -> Event:
    """Return an event with its identity, position and times moved up."""
    return event._replace(
        seq=first + event.seq,
        source_id=event.source_id + ids,
        event_time_us=event.event_time_us + shift_us,
        arrival_us=event.arrival_us + shift_us,
    )
