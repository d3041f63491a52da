"""Timed runs of room ``grouping``: a plan, a configuration and a seed in; trace and figures out."""

from dataclasses import replace

from model.grouping.machine import Machine as ModelMachine
from model.vocabulary import GroupingConfig, System, Workload
from sim.clusters import STATED
from sim.grouping.instances import check
from sim.grouping.machine import MachineOf
from sim.grouping.room import Room
from sim.grouping.series import series_of
from sim.grouping.summary import summary_of
from sim.kernel import plan as plans
from sim.kernel.log import simulate_arrivals
from sim.kernel.plan import Plan
from sim.kernel.recorder import Summary
from sim.kernel.run import Run, run
from sim.kernel.source import Recording, Row


def simulate(
    plan: Plan, config: GroupingConfig, seed: int, *, machine: MachineOf | None = None
) -> Run:
    """Run a plan through senders and instances until every tuple has been served.

    Arrivals and the work of each tuple depend on the plan and the seed and not on ``config``: all
    policies meet the same. ``machine`` makes the senders and what is behind them (the model's, if
    nothing is said). The same seed gives the same run. Raises ``ValueError`` with one sentence that
    names the offending value.
    """
    check(plan)
    made = (machine or ModelMachine)(config)
    room, arrived = run(plan, seed, lambda env, seeds: Room(env, seeds, plan, config, made))
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
    found = Run(plan, workload, trace, series_of(room, seen), summary)
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


def replay(workload: Workload) -> Run:
    """Replay a workload through the stated cluster: arrivals when they came, its batches."""
    plan = plans.replay(
        workload.arrivals, workload.name, workload.cuts, flush=workload.flush, cluster=STATED
    )
    return simulate(plan, GroupingConfig.from_json(workload.config), workload.seed)


def make_system() -> System:
    """Return the timed room as a System."""
    return lambda workload: replay(workload).trace
