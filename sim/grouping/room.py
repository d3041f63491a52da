"""Timed runs of room ``grouping``: a plan, a configuration and a seed in; trace and figures out."""

from dataclasses import replace

from model.grouping.machine import Machine as ModelMachine
from model.vocabulary import GroupingConfig, System, Workload
from sim.clusters import STATED
from sim.grouping.cluster import GroupingCluster
from sim.grouping.instances import SPEED_MIN, check
from sim.grouping.machine import MachineOf
from sim.grouping.series import series_of
from sim.grouping.summary import summary_of
from sim.kernel import plan as plans
from sim.kernel.distributions import Exponential
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import Cluster, Plan
from sim.kernel.recorder import Summary
from sim.kernel.run import TimedRun, run
from sim.kernel.source import Recording, Row


def simulate(
    plan: Plan, config: GroupingConfig, seed: int, *, machine: MachineOf | None = None
) -> TimedRun:
    """Run a plan through senders and instances until every tuple has been served.

    Arrivals and the work of each tuple depend on the plan and the seed and not on ``config``: all
    policies meet the same. ``machine`` makes the senders and what is behind them (the model's, if
    nothing is said). The same seed gives the same run. Raises ``ValueError`` with one sentence that
    names the offending value.
    """
    check(plan)
    made = (machine or ModelMachine)(config)
    room, arrived = run(
        plan, seed, lambda env, seeds: GroupingCluster(env, seeds, plan, config, made)
    )
    workload = Workload(
        "grouping",
        arrived.events,
        room.config.to_json(),
        arrived.cuts,
        room.kills(),
        seed,
        plan.flush,
        plan.name,
    )
    trace, seen = room.trace(), room.record.seen()
    head: Summary = {"input": plan.name, "seed": seed, "policy": config.policy}
    summary = {**head, **summary_of(room, seen, arrived, trace)}
    found = TimedRun(plan, workload, trace, series_of(room, seen), summary)
    room.close()
    return found


def backlog_of(plan: Plan, seed: int) -> Plan:
    """Return the plan in which everything that would arrive is there when the run starts.

    So the run takes as long as the work does. What happened on the way to the log is over.
    """
    on_the_way = {f"source-{n}" for n in range(len(plan.sources))}
    on_the_way |= {f"relay-{n}" for n in range(len(plan.relays))}
    rows = [
        Row(event.event_time_us, plan.epoch_us, event.key, event.value, event.source_id)
        for event in simulate_arrivals(plan, seed).events
    ]
    return replace(
        plan,
        sources=(Recording(tuple(rows)),),
        relays=(),
        disturbances=(),
        faults=tuple([each for each in plan.faults if each[0].split(">")[0] not in on_the_way]),
    )


def replay(workload: Workload) -> TimedRun:
    """Replay a workload through the stated cluster: arrivals when they came, its batches.

    The instances are as fast as the configuration says at first; see :func:`stated`.
    """
    config = GroupingConfig.from_json(workload.config)
    plan = plans.replay(
        workload.arrivals,
        workload.name,
        workload.cuts,
        flush=workload.flush,
        cluster=stated(config),
    )
    return simulate(plan, config, workload.seed)


def stated(config: GroupingConfig) -> Cluster:
    """Return the stated cluster with the speeds that a configuration states, if it does."""
    times_us = config.times_of(0)
    fastest_us = min(times_us)
    if fastest_us == max(times_us) == 1:
        return STATED  # nothing is known of the instances
    workers = [
        replace(STATED.worker(n), speed=max(SPEED_MIN, fastest_us / time_us))
        for n, time_us in enumerate(times_us)
    ]
    return replace(STATED, workers=tuple(workers), service=Exponential(float(fastest_us)))


def make_system() -> System:
    """Return the timed room as a System."""
    return lambda workload: replay(workload).trace
