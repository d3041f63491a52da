"""Conversion of several workloads into one for a chain, and of its trace into one trace each.

A chain on Spark takes about half a second an epoch, whatever the epoch holds. Workloads that share
a chain share its epochs, so that much happens in each.

Rules of this file:

* :func:`pack_together` keeps workloads apart: the last epoch of one is the first epoch of the
  next, and their event times are further apart than the window and any lateness. No tuple of one
  matches a tuple of another, and no watermark of one makes a tuple of the next late.
* :func:`one_after_another` mixes them: it makes one long stream of many short ones.
"""

import json
from collections.abc import Sequence
from itertools import chain

from model.vocabulary import Event, Fault, JoinConfig, Step, Trace, Workload
from model.vocabulary.join import And, Equi, Match, Rejected
from properties.join.strategies import SCALE_US, cases
from sim.kernel.source import IDS_PER_SOURCE
from tests.harness.stream_packs import collect

GAP_US = 1_000_000
IDS_A_CASE = 1 << 40
"""Identities of workload ``n`` of :func:`pack_together` start at ``n`` times this."""
EPOCHS = 3
CASES_A_CHAIN = 6
_IDS_A_PART = 8 * IDS_PER_SOURCE
"""Identities of part ``n`` of :func:`one_after_another` start at ``n`` times this."""

# --------------------------------------------------------------------------------- kept apart


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
        cuts += [len(events) + cut for cut in _inner_cuts(workload)]
        shift_us = start_us - min((e.event_time_us for e in workload.arrivals), default=0)
        moved = [
            _moved(event, number * IDS_A_CASE, len(events), shift_us) for event in workload.arrivals
        ]
        events += moved
        times_us = chain.from_iterable((e.event_time_us, e.arrival_us) for e in moved)
        start_us = max(times_us, default=start_us) + apart_us
    return workloads[0].with_(
        arrivals=tuple(events), cuts=tuple(cuts), faults=tuple(sorted(faults)), flush=True
    )


def take_apart(trace: Trace, workloads: Sequence[Workload]) -> list[Trace]:
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


def _inner_cuts(workload: Workload) -> list[int]:
    """Return the cuts between two micro-batches that are not empty."""
    return [cut for cut in sorted({*workload.cuts}) if 0 < cut < len(workload.arrivals)]


def _moved(event: Event, ids: int, first: int, shift_us: int) -> Event:
    """Return an event with its identity, position and times moved up."""
    return event._replace(
        seq=first + event.seq,
        source_id=event.source_id + ids,
        event_time_us=event.event_time_us + shift_us,
        arrival_us=event.arrival_us + shift_us,
    )


# -------------------------------------------------------------------------------- one long stream


def chains(count: int, seed: int) -> list[Workload]:
    """Return ``count`` different workloads for chains; every fourth one is a single drawn case."""
    drawn = collect(cases(), count * CASES_A_CHAIN, seed)
    # Hypothesis often repeats a draw, and begins with simple ones.
    different = list({json.dumps(case.config, sort_keys=True): case for case in drawn}.values())
    first = [different[len(different) * number // count] for number in range(count)]
    return [
        case if number % 4 == 0 else one_after_another([case, *drawn[number::count]])
        for number, case in enumerate(first)
    ]


def one_after_another(parts: Sequence[Workload]) -> Workload:
    """Return all arrivals for the chain of the first workload, in a few epochs and a flush."""
    events: list[Event] = []
    shift_us = 0
    for number, part in enumerate(parts):
        first = len(events)
        events += [_moved(e, number * _IDS_A_PART, first, shift_us) for e in part.arrivals]
        last_us = max((event.arrival_us for event in events), default=0)
        shift_us = last_us // SCALE_US * SCALE_US
    cuts = tuple(len(events) * epoch // EPOCHS for epoch in range(1, EPOCHS))
    return parts[0].with_(arrivals=tuple(events), cuts=cuts, flush=True)


def long_case(workers: int, seed: int, epochs: int = EPOCHS) -> Workload:
    """Return two long streams for a chain with small blocks and several queries."""
    config = JoinConfig(
        window_us=SCALE_US,
        queries=(("all", And()), ("same", Equi("key")), ("first", And()), ("later", And())),
        workers=workers,
        block_size=2,
        lateness_us=16 * SCALE_US,
        epochs=(("first", 0, 0), ("later", 1, None)),
    )
    parts = collect(cases(), 2 * CASES_A_CHAIN, seed)
    case = one_after_another(parts)
    cuts = tuple(len(case.arrivals) * epoch // epochs for epoch in range(1, epochs))
    return case.with_(config=config.to_json(), cuts=cuts, name=f"long {seed}")
