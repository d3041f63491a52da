"""Several generated workloads as one: the same chain, their streams one after another.

A chain on Spark takes about a second an epoch, whatever is in it; so much happens in each.
"""

import json
from collections.abc import Sequence

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import And, Equi
from properties.join.strategies import SCALE_US, cases
from properties.promises import packs
from sim.kernel.source import IDS_PER_SOURCE

EPOCHS = 3
CASES_A_CHAIN = 6
_IDS_A_CASE = 8 * IDS_PER_SOURCE


def chains(count: int, seed: int) -> list[Workload]:
    """Workloads for chains, no two of them alike; every fourth one is a case as it was drawn."""
    drawn = packs.collect(cases(), count * CASES_A_CHAIN, seed)
    # Hypothesis likes to draw the same again, and begins with what is simple.
    different = list({json.dumps(case.config, sort_keys=True): case for case in drawn}.values())
    first = [different[len(different) * number // count] for number in range(count)]
    return [
        case if number % 4 == 0 else one_after_another([case, *drawn[number::count]])
        for number, case in enumerate(first)
    ]


def one_after_another(parts: Sequence[Workload]) -> Workload:
    """All arrivals in the chain of the first of some workloads, in a few epochs and a flush."""
    events: list[Event] = []
    shift_us = 0
    for number, part in enumerate(parts):
        events += [
            event._replace(
                seq=len(events) + position,
                source_id=event.source_id + number * _IDS_A_CASE,
                event_time_us=event.event_time_us + shift_us,
                arrival_us=event.arrival_us + shift_us,
            )
            for position, event in enumerate(part.arrivals)
        ]
        last_us = max((event.arrival_us for event in events), default=0)
        shift_us = last_us // SCALE_US * SCALE_US
    cuts = tuple(len(events) * epoch // EPOCHS for epoch in range(1, EPOCHS))
    return parts[0].with_(arrivals=tuple(events), cuts=cuts, flush=True)


def long_case(workers: int, seed: int, epochs: int = EPOCHS) -> Workload:
    """Two streams that meet everywhere in a chain of small blocks, under several queries."""
    config = JoinConfig(
        window_us=SCALE_US,
        queries=(("all", And()), ("same", Equi("key")), ("first", And()), ("later", And())),
        workers=workers,
        block_size=2,
        lateness_us=16 * SCALE_US,
        epochs=(("first", 0, 0), ("later", 1, None)),
    )
    parts = packs.collect(cases(), 2 * CASES_A_CHAIN, seed)
    case = one_after_another(parts)
    cuts = tuple(len(case.arrivals) * epoch // epochs for epoch in range(1, epochs))
    return case.with_(config=config.to_json(), cuts=cuts, name=f"long {seed}")
