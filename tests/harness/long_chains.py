"""Long streams for a chain, made of many short ones."""

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import And, Equi
from sim.kernel.source import IDS_PER_SOURCE
from straggler.strategies import collect
from straggler.strategies.chain_workloads import move
from straggler.strategies.join import SCALE_US, cases

EPOCHS = 3
CASES_A_CHAIN = 6
_IDS_A_PART = 8 * IDS_PER_SOURCE
"""Identities of part ``n`` start at ``n`` times this."""


def long_case(workers: int, seed: int, epochs: int = EPOCHS) -> Workload:
    """Return many short cases as two long streams, for a chain with small blocks and queries."""
    config = JoinConfig(
        window_us=SCALE_US,
        queries=(("all", And()), ("same", Equi("key")), ("first", And()), ("later", And())),
        workers=workers,
        block_size=2,
        lateness_us=16 * SCALE_US,
        epochs=(("first", 0, 0), ("later", 1, None)),
    )
    events: list[Event] = []
    parts = collect(cases(decided=False), 2 * CASES_A_CHAIN, seed)
    for number, part in enumerate(parts):
        last_us = max((event.arrival_us for event in events), default=0)
        ids, shift_us = number * _IDS_A_PART, last_us // SCALE_US * SCALE_US
        events += [move(event, ids, len(events), shift_us) for event in part.arrivals]
    cuts = tuple(len(events) * epoch // epochs for epoch in range(1, epochs))
    return parts[0].with_(
        arrivals=tuple(events),
        cuts=cuts,
        flush=True,
        config=config.to_json(),
        name=f"long {seed}",
    )
