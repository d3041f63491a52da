"""One timed run of room ``grouping``: a stream over unequal instances, and figures."""

from dataclasses import dataclass

from model.grouping.rules import RULES
from model.grouping.table import Rules
from model.vocabulary import GroupingConfig, System, Trace, Workload
from model.vocabulary.settings import require
from sim.grouping.crew import Crew
from sim.grouping.series import Series, series_of
from sim.grouping.summary import Summary, summary_of
from sim.grouping.timed import Room
from sim.kernel.log import Arrivals, simulate_arrivals
from sim.kernel.plan import Plan
from sim.kernel.recorder import digest_of
from sim.kernel.run import uncollected

PRODUCER = "sim"
ORDINARY = Crew()
BATCH_TUPLES = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a run gave."""

    workload: Workload
    """The arrivals in their order, micro-batches, and the times that senders went by: the model or
    Spark, given this, must route alike."""
    trace: Trace
    series: Series
    """Columns of one table; see :func:`sim.grouping.series.series_of`."""
    summary: Summary
    """Figures by name; see :mod:`sim.grouping.summary`."""

    @property
    def digest(self) -> str:
        """SHA-256 over everything in this run, in hexadecimal."""
        return digest_of(self.trace, self.workload, self.summary, self.series)


def simulate(
    plan: Plan,
    config: GroupingConfig,
    seed: int,
    *,
    crew: Crew = ORDINARY,
    batch_tuples: int = BATCH_TUPLES,
    measured: bool = False,
    backlog: bool = False,
    rules: Rules = RULES,
) -> Run:
    """Run a plan through senders and instances until every tuple has been served.

    Arrivals and the work of each tuple depend on the seed and not on ``config``: all policies meet
    the same. A micro-batch has ``batch_tuples`` tuples. With ``measured`` a window takes the times
    that were measured before it, and those of ``config`` are a first guess. With ``backlog`` all
    tuples are there when the run starts, so that it takes as long as the work does.

    The same seed gives the same run. Raises ``ValueError`` with one sentence that names the
    offending value.
    """
    return simulate_arrived(
        simulate_arrivals(plan, seed),
        config,
        crew=crew,
        start_us=None if backlog else plan.epoch_us,
        batch_tuples=batch_tuples,
        measured=measured,
        rules=rules,
    )


@uncollected()
def simulate_arrived(
    arrivals: Arrivals,
    config: GroupingConfig,
    *,
    crew: Crew = ORDINARY,
    start_us: int | None = None,
    batch_tuples: int = BATCH_TUPLES,
    measured: bool = False,
    rules: Rules = RULES,
) -> Run:
    """The same for arrivals that are there; ``start_us`` is the start, or after the last of them.

    What arrives before the start waits for it.
    """
    require(batch_tuples > 0, "batch_tuples", batch_tuples, "above 0")
    events = arrivals.events
    cuts = tuple(range(batch_tuples, len(events), batch_tuples))
    workload = Workload(
        "grouping", events, config.to_json(), cuts, seed=arrivals.seed, name=arrivals.name
    )
    if start_us is None:
        start_us = events[-1].arrival_us if events else 0
    room = Room(workload, crew, start_us, rules, measured)
    room.run()
    head: Summary = {"input": workload.name, "seed": workload.seed, "policy": config.policy}
    return Run(
        workload.with_(config=room.config.to_json()),
        trace_of(room),
        series_of(room),
        {**head, **summary_of(room)},
    )


def trace_of(room: Room) -> Trace:
    """Routes, heavy keys, partial aggregates and answers."""
    return Trace(PRODUCER, [*room.senders.steps, *room.senders.results()])


def make_system() -> System:
    """The timed room as a System: a workload's arrivals are replayed when they came."""

    @uncollected()
    def replay(workload: Workload, /) -> Trace:
        start_us = workload.arrivals[0].arrival_us if workload.arrivals else 0
        room = Room(workload, ORDINARY, start_us, RULES)
        room.run()
        return trace_of(room)

    return replay
