"""Timed runs of room ``grouping``: from plan, configuration and seed to trace and figures."""

from dataclasses import replace

from model.grouping.machine import Machine as ModelMachine
from model.vocabulary import GroupingConfig, Workload
from sim.clusters import STATED
from sim.grouping.cluster import GroupingCluster
from sim.grouping.figures import series_of, summary_of
from sim.grouping.instances import SPEED_MIN, check
from sim.grouping.machine import MachineOf
from sim.kernel.distributions import Exponential
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import Cluster, Plan
from sim.kernel.recorder import Summary
from sim.kernel.run import TimedRun, run
from sim.kernel.source import Recording, Row
from sim.kernel.trigger import At, Every
from sim.timed_figures import Panel, PanelLine, RunPlot
from sim.timed_room import TimedRoom, stated_plan, workload_of


def simulate(
    plan: Plan, config: GroupingConfig, seed: int, *, machine: MachineOf = ModelMachine
) -> TimedRun:
    """Run a plan through senders and instances until every tuple has been served.

    Arrivals and the work of each tuple depend on the plan and the seed and not on ``config``: they
    are the same for all policies. ``machine`` makes the senders and instances. The same
    seed gives the same run. Raises ``ValueError`` with one sentence that names the offending value.
    """
    check(plan)
    made = machine(config)
    cluster, arrived = run(
        plan, seed, lambda env, seeds: GroupingCluster(env, seeds, plan, config, made)
    )
    workload = workload_of("grouping", plan, cluster.config, seed, arrived, cluster.kills())
    trace, passed = cluster.trace(), cluster.record.columns()
    head: Summary = {"input": plan.name, "seed": seed, "policy": config.policy}
    summary = {**head, **summary_of(cluster, passed, arrived, trace)}
    found = TimedRun(plan, workload, trace, series_of(cluster, passed), summary)
    cluster.close()
    return found


def backlog_of(plan: Plan, seed: int) -> Plan:
    """Return the plan with all arrivals at the start, so that the run takes as long as the work.

    Faults on the way to the log are left out.
    """
    on_the_way = {f"source-{n}" for n in range(len(plan.sources))}
    events = simulate_arrivals(plan, seed).events
    trigger = plan.trigger
    if isinstance(trigger, Every):  # cut where the stream is cut
        spans = [(each.arrival_us - plan.epoch_us) // trigger.interval_us for each in events]
        trigger = At(tuple([n for n in range(1, len(spans)) if spans[n] != spans[n - 1]]))
    rows = [Row(e.event_time_us, plan.epoch_us, e.key, e.value, e.source_id) for e in events]
    return replace(
        plan,
        trigger=trigger,
        sources=(Recording(tuple(rows)),),
        disturbances=(),
        faults=tuple([each for each in plan.faults if each[0].split(">")[0] not in on_the_way]),
    )


def stated_cluster(config: GroupingConfig) -> Cluster:
    """Return the stated cluster with the speeds that a configuration states, if it does."""
    times_us = config.times_of(0)
    fastest_us = min(times_us)
    if fastest_us == max(times_us) == 1:
        return STATED  # the configuration says nothing about the instances
    workers = [
        replace(STATED.worker(n), speed=max(SPEED_MIN, fastest_us / time_us))
        for n, time_us in enumerate(times_us)
    ]
    return replace(STATED, workers=tuple(workers), service=Exponential(float(fastest_us)))


def _restate(workload: Workload, config: GroupingConfig) -> Plan:
    return stated_plan(workload, stated_cluster(config))


def _title(timed: TimedRun) -> str:
    summary = timed.summary
    policy, n, seed = (summary[name] for name in ("policy", "instances", "seed"))
    return f"{summary['input']}\npolicy {policy}, {n} instances (workers), seed {seed}"


PANELS = (
    Panel("Tuples served", "thousand a second", (PanelLine("served_hz", "all workers", 1e3),)),
    Panel(
        "Tuples that have arrived and are not served",
        "tuples",
        (PanelLine("waiting", "at senders, under way\nand at workers"),),
    ),
    Panel(
        "Time in which the busiest and the idlest worker work",
        "%",
        (PanelLine("busiest", "busiest", 0.01), PanelLine("idlest", "idlest", 0.01)),
    ),
    Panel(
        "Imbalance rho of each window, and error of the times that senders use",
        "%",
        (
            PanelLine("rho", "rho, above a\nperfect split", 0.01),
            PanelLine("wrong", "error of times", 0.01),
        ),
    ),
)
TIMED_ROOM = TimedRoom(GroupingConfig.from_json, simulate, RunPlot(_title, PANELS), _restate)
