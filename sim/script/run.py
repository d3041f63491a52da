"""One timed run of room ``script``: sensors, workers that compute, and figures."""

from dataclasses import dataclass

from model.script.rules import RULES, Rules
from model.script.run import hosted, results
from model.vocabulary import ScriptConfig, System, Trace, Workload
from sim.kernel.log import Arrivals, simulate_arrivals
from sim.kernel.plan import Plan
from sim.kernel.recorder import digest_of
from sim.kernel.run import uncollected
from sim.kernel.trigger import cut
from sim.script.crew import Crew
from sim.script.placements import PLAN
from sim.script.series import Series, series_of
from sim.script.summary import Share, Summary, shares_of, summary_of
from sim.script.timed import Room

PRODUCER = "sim"
ORDINARY = Crew()
TRIGGER_US = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a run gave."""

    workload: Workload
    """The arrivals in their order, with the micro-batches of a trigger: the model or Spark, given
    this, must record the same."""
    trace: Trace
    series: Series
    """Columns of one table; see :func:`sim.script.series.series_of`."""
    summary: Summary
    """Figures by name; see :mod:`sim.script.summary`."""
    shares: tuple[Share, ...]
    """By worker."""

    @property
    def digest(self) -> str:
        """SHA-256 over everything in this run, in hexadecimal."""
        figures = {**self.summary, "shares": repr(self.shares)}
        return digest_of(self.trace, self.workload, figures, self.series)


def simulate(
    plan: Plan,
    config: ScriptConfig,
    seed: int,
    *,
    crew: Crew = ORDINARY,
    placement: str = PLAN,
    period_us: int | None = None,
    rules: Rules = RULES,
) -> Run:
    """Run a plan, whose keys are sensors, through workers until everything has been served.

    Arrivals and the work of each tuple depend on the seed and not on ``config``: all placements
    (:data:`sim.script.placements.PLACEMENTS`) meet the same. What was sent is compared with what
    rates predict for ``period_us`` from the start, in which sensors should send.

    The same seed gives the same run. Raises ``ValueError`` with one sentence that names the
    offending value.
    """
    arrivals = simulate_arrivals(plan, seed)
    return simulate_arrived(
        arrivals,
        config,
        plan.epoch_us,
        crew=crew,
        placement=placement,
        period_us=period_us,
        rules=rules,
    )


@uncollected()
def simulate_arrived(
    arrivals: Arrivals,
    config: ScriptConfig,
    start_us: int,
    *,
    crew: Crew = ORDINARY,
    placement: str = PLAN,
    period_us: int | None = None,
    rules: Rules = RULES,
) -> Run:
    """The same for arrivals that are there; what arrives before the start waits for it."""
    cuts, _ = cut(arrivals.events, start_us, TRIGGER_US)
    workload = Workload(
        "script", arrivals.events, config.to_json(), cuts, seed=arrivals.seed, name=arrivals.name
    )
    room = Room(workload, crew, start_us, placement, rules, config)
    room.run()
    head: Summary = {"input": workload.name, "seed": workload.seed, "placement": placement}
    summary = {**head, **summary_of(room, period_us)}
    shares = shares_of(room, period_us)
    return Run(workload, trace_of(room), series_of(room), summary, shares)


def trace_of(room: Room) -> Trace:
    """Results as far as workers came with them, rejections, and who was sent what."""
    steps = [
        *room.intake.rejected,
        *results(room.graph, room.known()),
        *hosted(room.placement),
    ]
    return Trace(PRODUCER, steps)


def make_system() -> System:
    """The timed room as a System: a workload's arrivals are replayed when they came."""

    @uncollected()
    def replay(workload: Workload, /) -> Trace:
        start_us = workload.arrivals[0].arrival_us if workload.arrivals else 0
        room = Room(workload, ORDINARY, start_us)
        room.run()
        return trace_of(room)

    return replay
