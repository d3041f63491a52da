"""One timed run of room ``slack``: arrivals from a plan, tasks on workers, figures."""

from model.vocabulary import SlackConfig, System, Trace, Workload
from sim.cluster import Worker
from sim.plan import Plan
from sim.slack.timed import figures, room_of, timeline
from sim.windows import run
from sim.windows.run import Run
from sim.windows.timed import ORDINARY, Cluster

SLACK = run.Timed("slack", room_of, timeline, figures)


def simulate(
    source: Plan | str,
    config: SlackConfig,
    seed: int,
    *,
    workers: tuple[Worker, ...] = (ORDINARY,),
    batch_worker: Worker = ORDINARY,
    correction_us: float = 100_000.0,
    row_us: float = 1.0,
    trigger_interval_us: int = 1_000_000,
    samples: int = 300,
) -> Run:
    """Run a plan, or the scenario of that name, through the room until everything is exact.

    ``workers`` serve the tasks, in turn if there are fewer. Arrivals and service times depend on
    the seed and not on ``config``: two controls meet the same arrivals and the same work.
    ``batch_worker``, ``correction_us`` and ``row_us``: who corrects, and the work of that; see
    :class:`sim.windows.timed.Cluster`. The rest is that of :func:`sim.windows.run.simulate`.
    """
    return run.simulate(
        SLACK,
        source,
        config,
        seed,
        cluster=Cluster(workers, batch_worker, correction_us, row_us),
        trigger_interval_us=trigger_interval_us,
        samples=samples,
        described={
            "control": config.control,
            "aggregate": config.aggregate,
            "tasks": config.tasks,
        },
    )


def make_system() -> System:
    """The timed room as a System: a workload's arrivals are replayed when they came."""

    def replay(workload: Workload, /) -> Trace:
        start_us = workload.arrivals[0].arrival_us if workload.arrivals else 0
        room = room_of(workload, Cluster(), start_us)
        room.run()
        return room.trace()

    return replay
