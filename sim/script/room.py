"""Timed runs of room ``script`` (docs/script.md): a plan, scripts and a seed in; figures out."""

from dataclasses import dataclass

from model.vocabulary import ScriptConfig, System, Workload
from sim.clusters import STATED
from sim.kernel.plan import Plan
from sim.kernel.plan import replay as replayed
from sim.kernel.recorder import Summary
from sim.kernel.run import TimedRun, run
from sim.script.cluster import ScriptCluster
from sim.script.machine import MachineOf, compile_scripts
from sim.script.series import series_of
from sim.script.summary import Share, shares_of, summary_of
from sim.script.tuning import ScriptTuning


@dataclass(frozen=True, slots=True, eq=False)
class ScriptRun(TimedRun):
    """What a timed run gave."""

    shares: tuple[Share, ...]
    """By worker."""


def simulate(
    plan: Plan, config: ScriptConfig, seed: int, *, machine: MachineOf | None = None
) -> ScriptRun:
    """Run a plan, whose keys are sensors, through workers until everything is over.

    Arrivals and the work of each tuple depend on the plan and the seed and not on ``config``: all
    placements meet the same, unless full workers shed. ``machine`` compiles the scripts (the
    model's, if nothing is said). The same seed gives the same run. Raises ``ValueError`` with one
    sentence that names the offending value.
    """
    tuning = plan.tuned(ScriptTuning())
    modelled = compile_scripts(config, tuning.placement)
    scripts = modelled if machine is None else machine(config, tuning.placement)
    room, arrived = run(
        plan, seed, lambda env, seeds: ScriptCluster(env, seeds, plan, config, scripts)
    )
    workload = Workload(
        "script",
        arrived.events,
        config.to_json(),
        arrived.cuts,
        room.kills(),
        seed,
        flush=plan.flush,
        name=plan.name,
    )
    trace = room.trace()
    head: Summary = {"input": plan.name, "seed": seed, "placement": tuning.placement}
    found = ScriptRun(
        plan,
        workload,
        trace,
        series_of(room),
        {**head, **summary_of(room, arrived, trace, modelled.placement)},
        shares_of(room, modelled.placement),
    )
    room.close()
    return found


def replay(workload: Workload) -> ScriptRun:
    """Replay a workload through the stated cluster: arrivals when they came, its batches."""
    plan = replayed(
        workload.arrivals, workload.name, workload.cuts, flush=workload.flush, cluster=STATED
    )
    return simulate(plan, ScriptConfig.from_json(workload.config), workload.seed)


def make_system() -> System:
    """Return the timed room as a System."""
    return lambda workload: replay(workload).trace
