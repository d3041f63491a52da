"""Timed runs of room ``join`` (docs/join.md): two streams through a chain, and figures."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from model.vocabulary import JoinConfig, Trace, Workload
from model.vocabulary.durations import write_duration
from model.vocabulary.join import STREAMS, And, Decision, Match, Predicate, Rejected
from model.vocabulary.join_predicates import predicate_to_json
from sim.join.cluster import ChainCluster
from sim.join.figures import FinishedRun, series_of, summary_of
from sim.join.live_chain import LiveChain
from sim.join.load import Concluded, Sample
from sim.join.machine import MachineOf
from sim.join.tuning import ChainTuning, Control
from sim.kernel.plan import Plan
from sim.kernel.recorder import Summary
from sim.kernel.run import TimedRun, run, uncollected
from sim.timed_figures import Panel, PanelLine, RunPlot
from sim.timed_room import PRODUCER, TimedRoom, stated_plan, workload_of

USUAL = ChainTuning()
QUERIES_MAX = 3
"""Most queries that a title names."""
HINTS_MAX, CONTROLS_MAX = 100_000, 10_000
"""Most looks of a replayed chain for hints and for load, besides those at the start of an epoch."""


@dataclass(frozen=True, slots=True, eq=False)
class ChainRun(TimedRun):
    """A timed run of a chain."""

    samples: tuple[Sample, ...]
    """Samples of the load."""
    lag_us: float
    """Time from the last arrival until the chain was done with all of them."""
    concluded: tuple[Concluded, ...]
    """Epochs of a chain that follows the time in which its workers are busy."""


@uncollected()
def simulate(
    plan: Plan, config: JoinConfig, seed: int, *, machine: MachineOf = LiveChain
) -> ChainRun:
    """Run a plan through a chain until every pair has come out.

    Even sources of the plan are of R, odd ones of S. Arrivals depend on the seed and the plan
    alone: chains of any shape meet the same. ``machine`` makes the machine of the chain. The same
    seed gives the same run. Raises ``ValueError`` with one sentence that names the offending value.
    """
    tuning = plan.tuned(ChainTuning())
    chain = machine(config, tuning)
    cluster, arrived = run(
        plan,
        seed,
        lambda env, seeds: ChainCluster(env, seeds, plan, config, tuning, chain),
        STREAMS,
    )
    finished = FinishedRun(cluster, arrived)
    head: Summary = {"input": plan.name, "seed": seed, "workers": config.workers}
    found = ChainRun(
        plan,
        _workload(finished, seed),
        _trace(finished),
        series_of(finished),
        {**head, **summary_of(finished)},
        tuple(cluster.load.samples),
        finished.lag_us,
        tuple(cluster.load.concluded),
    )
    cluster.close()
    return found


def _workload(run: FinishedRun, seed: int) -> Workload:
    """Return everything that timing decided; arrivals that were shed are left out."""
    cluster, arrived = run.cluster, run.arrived
    if cluster.shedding.shed:
        kept = [event.seq for event in run.events]
        events = tuple([event._replace(seq=seq) for seq, event in enumerate(run.events)])
        cuts = tuple(np.searchsorted(kept, arrived.cuts).tolist())
        arrived = arrived._replace(events=events, cuts=cuts)
    config = replace(cluster.config, decisions=_decisions(cluster))
    return workload_of("join", cluster.plan, config, seed, arrived, cluster.kills())


def _decisions(cluster: ChainCluster) -> tuple[Decision, ...]:
    """Return the decisions of a run: those that were given, or the workers that the load asked for.

    Blocks may become smaller at any moment; a decision has the largest one. What was shed is no
    longer among the arrivals.
    """
    config, workers = cluster.config, sorted(cluster.workers_of.items())
    if config.decisions or not cluster.tuning.control.resizes:
        return config.decisions
    before = [config.workers, *(count for _, count in workers)]
    return tuple(
        Decision(epoch, count, config.block_size, 0.0)
        for (epoch, count), last in zip(workers, before, strict=False)
        if count != last
    )


def _trace(run: FinishedRun) -> Trace:
    """Return rejections, matches and the recorded steps of the protocol."""
    kept = [event.seq for event in run.events] if run.rejected else []
    steps = [
        step._replace(seq=bisect_left(kept, step.seq)) if isinstance(step, Rejected) else step
        for step in run.cluster.steps
    ]
    return Trace(PRODUCER, [*_matches(run), *steps])


def _matches(run: FinishedRun) -> Iterator[Match]:
    """Return the matches in the order of a trace, which then has nothing to sort."""
    _, epoch, query, r_id, s_id = run.results
    names = [name for name, _ in run.cluster.config.queries]
    place = np.argsort(np.argsort(np.array(names, dtype=object)))
    order = np.lexsort((epoch, s_id, r_id, place[query]))
    numbers, *others = [column[order].tolist() for column in (query, r_id, s_id, epoch)]
    return map(Match._make, zip(map(names.__getitem__, numbers), *others, strict=True))


def _restate(workload: Workload, _config: JoinConfig, *, record: bool = True) -> Plan:
    """Return the plan of a replay.

    In a recording of months most looks would find nothing new. The chain therefore looks at most
    100,000 times for hints, and 10,000 times at its load.
    """
    arrivals = workload.arrivals
    span_us = arrivals[-1].arrival_us - arrivals[0].arrival_us if arrivals else 0
    tuning = ChainTuning(
        hint_us=max(USUAL.hint_us, span_us // HINTS_MAX),
        control=Control(every_us=max(USUAL.control.every_us, span_us // CONTROLS_MAX)),
        record=record,
    )
    return replace(stated_plan(workload), tuning=tuning)


def _title(timed: TimedRun) -> str:
    summary = timed.summary
    config = JoinConfig.from_json(timed.workload.config)
    lateness_us = config.lateness_us
    late = "nothing is late" if lateness_us is None else f"late after {write_duration(lateness_us)}"
    queries = " | ".join([_condition(each) for _, each in config.queries[:QUERIES_MAX]])
    more = " | ..." if config.queries[QUERIES_MAX:] else ""
    query = f"{queries}{more}, within {write_duration(config.window_us)}, {late}"
    start = f"{summary['workers']} workers at the start, seed {summary['seed']}"
    return f"{summary['input']}: {query}\n{start}"


def _condition(predicate: Predicate) -> str:
    if isinstance(predicate, And):
        return " and ".join([_condition(part) for part in predicate.parts])
    words = predicate_to_json(predicate)
    return " ".join([f"{word:g}" if isinstance(word, float) else str(word) for word in words])


PANELS = (
    Panel("Workers in the chain", "workers", (PanelLine("workers", "workers"),)),
    Panel(
        "Tuples held by a worker, of its capacity",
        "%",
        (PanelLine("utilisation", "mean", 0.01), PanelLine("fullest", "fullest worker", 0.01)),
    ),
    Panel(
        "Tuples held by all workers",
        "tuples",
        (PanelLine("held", "held"), PanelLine("waiting", "waiting\nin the log")),
    ),
    Panel("Largest block", "tuples", (PanelLine("block_size", "most tuples"),)),
    Panel("Share of arrivals that is shed", "%", (PanelLine("shed", "shed", 0.01),)),
)
PLOT = RunPlot(_title, PANELS, {"latency_us": "later tuple's arrival\nto result"})
TIMED_ROOM = TimedRoom(JoinConfig.from_json, simulate, PLOT, _restate)
UNRECORDED = replace(TIMED_ROOM, restate=partial(_restate, record=False))
"""The same room, whose replays record no steps of the protocol."""
