"""Conversion of several workloads into one for a chain.

A chain on Spark takes about half a second an epoch, whatever the epoch holds. Workloads that share
a chain share its epochs: the last epoch of one is the first epoch of the next. Their event times
are further apart than the window and any lateness, so no tuple of one matches a tuple of another,
and no watermark of one makes a tuple of the next late.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import NamedTuple

from hypothesis import strategies as st

from model.vocabulary import Event, Fault, JoinConfig, Workload
from model.vocabulary.join import And, Band, Between, Decision, Equi, Ineq, S, Where
from sim.kernel.faults import Fault as Trouble
from straggler.strategies.columns import R_COLUMNS, S_COLUMNS, with_values
from straggler.strategies.packs import ClusterPack
from straggler.strategies.queries import Moves, chain_moves, chain_trouble
from straggler.strategies.streams import UNIT_US

GAP_US = 1_000_000
IDS_A_CASE = 1 << 40
"""Identities of workload ``n`` of :func:`pack_together` start at ``n`` times this."""


ON_COLUMNS = (
    ("near", And((Band("pm25", 4.0, "pm10"), Where(S, "ok", "=", True)))),
    (
        "same site",
        And((Equi("site"), Ineq("ad", "<=", "clicked"), Between("at", None, 8 * UNIT_US))),
    ),
)
"""Queries of each chain that need the values of columns of all kinds."""


class ChainPack(NamedTuple):
    """Clusters that share a chain, drawn decisions, and trouble on the chain's links."""

    pack: ClusterPack
    moves: Moves
    faults: tuple[Trouble, ...]

    def __repr__(self) -> str:
        """Return one line, because the plans would fill pages."""
        return f"<{self.pack!r}, {self.moves}>"


@st.composite
def chain_packs(draw: st.DrawFn, drawn: st.SearchStrategy[ClusterPack]) -> ChainPack:
    """Draw clusters for one chain, with decisions and trouble on the links between workers."""
    pack = draw(drawn)
    moves = chain_moves(pack.configs[0])
    return ChainPack(pack, draw(moves), draw(chain_trouble()))


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


def chain_of(workloads: Sequence[Workload], moves: Moves) -> Workload:
    """Return one workload with the arrivals of all, their decisions by load, and moves.

    Its tuples have columns, on which two more queries depend.
    """
    packed = pack_together([_with_decisions(each, ()) for each in workloads])
    return _with_columns(_decide(packed, _follow(workloads), moves))


def _with_columns(workload: Workload) -> Workload:
    """Return the workload of a chain with columns, their values, and queries on them."""
    config = JoinConfig.from_json(workload.config)
    config = replace(
        config,
        queries=(*config.queries, *ON_COLUMNS),
        r_columns=R_COLUMNS,
        s_columns=S_COLUMNS,
    )
    arrivals = with_values(workload.arrivals, config, seed=workload.seed)
    return workload.with_(arrivals=arrivals, config=config.to_json())


def _with_decisions(workload: Workload, decisions: Iterable[Decision]) -> Workload:
    """Return the workload of a chain with other decisions."""
    config = replace(JoinConfig.from_json(workload.config), decisions=tuple(decisions))
    return workload.with_(config=config.to_json())


def _follow(workloads: Sequence[Workload]) -> Iterator[Decision]:
    """Yield the decisions of chains that followed their load, in epochs of the joined chain.

    The decision of a chain for its flush is in force when the next chain begins.
    """
    firsts = accumulate((len(inner_cuts(each)) for each in workloads), initial=0)
    for first, workload in zip(firsts, workloads, strict=False):
        last = len(inner_cuts(workload))
        for each in JoinConfig.from_json(workload.config).decisions:
            yield each._replace(epoch=first + min(each.epoch, last + 1))


def _decide(workload: Workload, followed: Iterable[Decision], moves: Moves) -> Workload:
    """Return a workload with the decisions that followed the load, and moves spread evenly.

    In the epoch of a move the chain does not follow its load.
    """
    epochs = len(list(workload.batches()))
    taken = {each.epoch: each for each in followed}
    for number, moved in enumerate(moves, 1):
        epoch = epochs * number // (len(moves) + 1)
        taken[epoch] = Decision(epoch, *moved)
    return _with_decisions(workload, [taken[epoch] for epoch in sorted(taken)])
