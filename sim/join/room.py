"""One timed run of room ``join``: two streams through a chain, and figures."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from model.join.load import Traffic
from model.join.load_claims import Moment, Rule
from model.vocabulary import JoinConfig, System, Trace, Workload
from model.vocabulary.join import STREAMS, Match, Rejected
from sim.clusters import STATED
from sim.join.cluster import ChainCluster
from sim.join.machine import MachineOf
from sim.join.model_chain import ModelChain
from sim.join.observed import Observed
from sim.join.series import series_of
from sim.join.summary import summary_of, traffic_of
from sim.join.tuning import ChainTuning, Control
from sim.kernel import plan as plans
from sim.kernel.plan import Plan
from sim.kernel.recorder import Summary
from sim.kernel.run import TimedRun, run, uncollected

PRODUCER = "sim"
USUAL = ChainTuning()
HINTS_MAX, CONTROLS_MAX = 100_000, 10_000
"""How often the chain of a replay looks at itself at most, beside what every epoch starts with."""


@dataclass(frozen=True, slots=True, eq=False)
class ChainRun(TimedRun):
    """What a timed run of a chain gave."""

    moments: tuple[Moment, ...]
    """The load, for the claims of ``model.join.load_claims``."""
    rule: Rule
    """By which it was controlled."""
    traffic: Traffic
    """What the chain carried, for the formula of docs/join.md, section 8."""


@uncollected()
def simulate(
    plan: Plan, config: JoinConfig, seed: int, *, machine: MachineOf | None = None
) -> ChainRun:
    """Run a plan through a chain until every pair has come out.

    Even sources of the plan are of R, odd ones of S. Arrivals depend on the seed and the plan
    alone: chains of any shape meet the same. ``machine`` makes the machine of the chain (the
    model's, if nothing is said). The same seed gives the same run. Raises ``ValueError`` with one
    sentence that names the offending value.
    """
    tuning = plan.tuned(ChainTuning())
    chain = (machine or ModelChain)(config, tuning)
    room, arrived = run(
        plan,
        seed,
        lambda env, seeds: ChainCluster(env, seeds, plan, config, tuning, chain),
        STREAMS,
    )
    observed = Observed(room, arrived)
    head: Summary = {"input": plan.name, "seed": seed, "workers": config.workers}
    found = ChainRun(
        plan,
        _workload(observed, seed),
        _trace(observed),
        series_of(observed),
        {**head, **summary_of(observed)},
        tuple([sample.moment for sample in room.load.samples]),
        tuning.control.rule,
        traffic_of(observed),
    )
    room.close()
    return found


def _workload(run: Observed, seed: int) -> Workload:
    """Return what the chain was given: arrivals that were shed are left out."""
    room, arrivals, cuts = run.room, run.arrived.events, run.arrived.cuts
    if room.shedding.shed:
        kept = [event.seq for event in run.events]
        arrivals = tuple([event._replace(seq=seq) for seq, event in enumerate(run.events)])
        cuts = tuple(np.searchsorted(kept, cuts).tolist())
    config, plan = room.config.to_json(), room.plan
    return Workload("join", arrivals, config, cuts, room.kills(), seed, plan.flush, name=plan.name)


def _trace(run: Observed) -> Trace:
    """Return rejections, matches and the recorded steps of the protocol."""
    kept = [event.seq for event in run.events] if run.rejected else []
    steps = [
        step._replace(seq=bisect_left(kept, step.seq)) if isinstance(step, Rejected) else step
        for step in run.room.steps
    ]
    return Trace(PRODUCER, [*_matches(run), *steps])


def _matches(run: Observed) -> Iterator[Match]:
    """Return the matches in the order of a trace, which then has nothing to sort."""
    _, epoch, query, r_id, s_id = run.results
    names = [name for name, _ in run.room.config.queries]
    place = np.argsort(np.argsort(np.array(names, dtype=object)))
    order = np.lexsort((epoch, s_id, r_id, place[query]))
    numbers, *others = [column[order].tolist() for column in (query, r_id, s_id, epoch)]
    return map(Match._make, zip(map(names.__getitem__, numbers), *others, strict=True))


def replay(workload: Workload, *, record: bool = True) -> ChainRun:
    """Replay a workload through the stated cluster: arrivals when they came, its epochs.

    ``record`` says whether steps of the protocol are recorded, too.

    In a recording of months the chain looks at itself less often, because nothing happens at most
    of these moments: at most 100,000 times for hints, and 10,000 times for its load.
    """
    arrivals = workload.arrivals
    plan = plans.replay(
        arrivals, workload.name, workload.cuts, flush=workload.flush, cluster=STATED
    )
    span_us = arrivals[-1].arrival_us - arrivals[0].arrival_us if arrivals else 0
    tuning = ChainTuning(
        hint_us=max(USUAL.hint_us, span_us // HINTS_MAX),
        control=Control(every_us=max(USUAL.control.every_us, span_us // CONTROLS_MAX)),
        record=record,
    )
    return simulate(
        replace(plan, tuning=tuning), JoinConfig.from_json(workload.config), workload.seed
    )


def make_system() -> System:
    """Return the timed room as a System."""
    return lambda workload: replay(workload).trace
