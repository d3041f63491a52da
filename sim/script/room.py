"""Timed runs of room ``script`` (docs/script.md): a plan, scripts and a seed in; figures out."""

from model.vocabulary import ScriptConfig
from sim.kernel.plan import Plan
from sim.kernel.recorder import Summary
from sim.kernel.run import TimedRun, run
from sim.script.cluster import ScriptCluster
from sim.script.figures import series_of, summary_of
from sim.script.host import ScriptTuning
from sim.script.machine import MachineOf
from sim.script.placements import compile_placed
from sim.script.worker import Worker
from sim.timed_figures import Panel, PanelLine, RunPlot
from sim.timed_room import TimedRoom, workload_of


def simulate(
    plan: Plan, config: ScriptConfig, seed: int, *, machine: MachineOf = Worker
) -> TimedRun:
    """Run a plan, whose keys are sensors, through workers until everything is over.

    Arrivals and the work of each tuple depend on the plan and the seed and not on ``config``: all
    placements meet the same, unless full workers shed. ``machine`` makes the machine of a worker.
    The same seed gives the same run. Raises ``ValueError`` with one sentence that
    names the offending value.
    """
    placement = plan.tuned(ScriptTuning()).placement
    scripts = compile_placed(config, placement)
    cluster, arrived = run(
        plan, seed, lambda env, seeds: ScriptCluster(env, seeds, plan, scripts, machine)
    )
    trace = cluster.trace()
    head: Summary = {"input": plan.name, "seed": seed, "placement": placement}
    found = TimedRun(
        plan,
        workload_of("script", plan, config, seed, arrived, cluster.kills()),
        trace,
        series_of(cluster),
        {**head, **summary_of(cluster, arrived, trace)},
    )
    cluster.close()
    return found


def _title(timed: TimedRun) -> str:
    summary = timed.summary
    workers = "1 worker" if summary["workers"] == 1 else f"{summary['workers']} workers"
    placement, way, seed = (summary[name] for name in ("placement", "way", "seed"))
    return f"{summary['input']}\n{workers}, placement {placement}: {way}, seed {seed}"


PANELS = (
    Panel(
        "Tuples that are sent to workers",
        "a second",
        (
            PanelLine("tuples_hz", "all workers"),
            PanelLine("most_hz", "worker with most"),
            PanelLine("least_hz", "worker with least"),
        ),
    ),
    Panel(
        "Results that are sent between workers",
        "a second",
        (PanelLine("results_hz", "all workers"),),
    ),
)
PLOT = RunPlot(
    _title,
    PANELS,
    {"latency_us": "end of a window\nuntil its result, mean"},
    {"watermark_lag_us": "oldest result\nstill to come"},
)
TIMED_ROOM = TimedRoom(ScriptConfig.from_json, simulate, PLOT)
