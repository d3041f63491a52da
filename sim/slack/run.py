"""One timed run of room ``slack``: arrivals from a plan, tasks on workers, figures."""

import hashlib
from dataclasses import dataclass
from math import ceil

import numpy as np

from model.vocabulary import SlackConfig, System, Trace, Workload
from sim.arrivals import simulate_arrivals
from sim.batches import cut
from sim.cluster import Worker
from sim.distributions import require
from sim.plan import Plan
from sim.slack.answers import observe
from sim.slack.scenarios import scenario
from sim.slack.series import Series, series_of
from sim.slack.summary import Summary, summary_of
from sim.slack.timed import ORDINARY, Cluster, Room


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a run gave."""

    workload: Workload
    """The arrivals in the order in which the router saw them, with the batches that the trigger
    made: the model or Spark, given this, must observe the same."""
    trace: Trace
    series: Series
    """Columns of one table; see :func:`sim.slack.series.series_of`."""
    summary: Summary
    """Figures by name; see :mod:`sim.slack.summary`."""

    @property
    def digest(self) -> str:
        """SHA-256 over everything in this run, in hexadecimal."""
        sha = hashlib.sha256(self.trace.digest().encode("ascii"))
        for part in (self.workload.to_json(), *self.summary.items()):
            sha.update(repr(part).encode("utf-8"))
        for name, column in self.series.items():
            sha.update(name.encode("utf-8"))
            sha.update(column.tobytes())
        return sha.hexdigest()


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
    :class:`sim.slack.timed.Cluster`. Every ``trigger_interval_us`` a micro-batch ends, if anything
    arrived. The series have a row a slide, but at most ``samples`` rows; the last one is the end.

    The same seed gives the same run. Raises ``ValueError`` with one sentence that names the
    offending value.
    """
    require(samples > 0, "samples", samples, "above 0")
    cluster = Cluster(workers, batch_worker, correction_us, row_us)
    plan = scenario(source)(seed) if isinstance(source, str) else source
    arrivals = simulate_arrivals(plan, seed)
    cuts, ends_us = cut(arrivals.events, plan.epoch_us, trigger_interval_us)
    workload = Workload(
        "slack", arrivals.events, config.to_json(), cuts, seed=seed, name=arrivals.name
    )
    end_us = max(ends_us, default=0.0)
    rows = min(samples, ceil(end_us / config.slide_us))
    sample_at_us = np.linspace(0.0, end_us, rows, endpoint=False)[1:]
    room = Room(workload, cluster, plan.epoch_us, ends_us, sample_at_us.tolist())
    room.run()
    observed = observe(room)
    summary: Summary = {
        "input": arrivals.name,
        "seed": seed,
        "control": config.control,
        "aggregate": config.aggregate,
        "tasks": config.tasks,
        **summary_of(observed),
    }
    return Run(workload, room.trace(), series_of(observed), summary)


def make_system() -> System:
    """The timed room as a System: a workload's arrivals are replayed when they came."""

    def replay(workload: Workload, /) -> Trace:
        start_us = workload.arrivals[0].arrival_us if workload.arrivals else 0
        room = Room(workload, Cluster(), start_us)
        room.run()
        return room.trace()

    return replay
