"""One timed run of room ``watermark``: arrivals from a plan, tasks on workers, figures."""

from model.vocabulary import System, Trace, WatermarkConfig, Workload
from sim.cluster import Worker
from sim.plan import Plan
from sim.watermark.timed import figures, room_of, timeline
from sim.windows import run
from sim.windows.run import Run
from sim.windows.timed import ORDINARY, Cluster

WATERMARK = run.Timed("watermark", room_of, timeline, figures)


def simulate(
    source: Plan | str,
    config: WatermarkConfig,
    seed: int,
    *,
    workers: tuple[Worker, ...] = (ORDINARY,),
    batch_worker: Worker = ORDINARY,
    correction_us: float = 100_000.0,
    row_us: float = 1.0,
    trigger_interval_us: int = 1_000_000,
    samples: int = 300,
) -> Run:
    """Run a plan, or the scenario of that name, through the room until everything is over.

    ``workers`` serve the tasks, in turn if there are fewer. Arrivals and service times depend on
    the seed and not on ``config``: two readings meet the same arrivals and the same work.
    ``batch_worker``, ``correction_us`` and ``row_us``: who corrects, and the work of that; see
    :class:`sim.windows.timed.Cluster`. The rest is that of :func:`sim.windows.run.simulate`.
    """
    return run.simulate(
        WATERMARK,
        source,
        config,
        seed,
        cluster=Cluster(workers, batch_worker, correction_us, row_us),
        trigger_interval_us=trigger_interval_us,
        samples=samples,
        described={
            "reading": config.reading,
            "k": config.k,
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
