"""A timed run: what it was given, what was observed, and figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Generic, TypeVar

import numpy as np

from model.vocabulary import System, Trace, Workload
from model.windows.query import Query
from sim.arrivals import simulate_arrivals
from sim.batches import cut
from sim.cluster import Worker
from sim.collecting import uncollected
from sim.distributions import require
from sim.plan import Plan
from sim.recorder import digest_of
from sim.windows.observed import Observed, observe
from sim.windows.scenarios import scenario
from sim.windows.series import Series
from sim.windows.summary import Summary
from sim.windows.task import TaskT
from sim.windows.timed import ORDINARY, Cluster, Room

QueryT = TypeVar("QueryT", bound=Query)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a run gave."""

    workload: Workload
    """The arrivals in the order in which the router saw them, with the batches that the trigger
    made: the model or Spark, given this, must observe the same."""
    trace: Trace
    series: Series
    """Columns of one table; see :func:`sim.windows.series.series_of`."""
    summary: Summary
    """Figures by name; see :mod:`sim.windows.summary`."""

    @property
    def digest(self) -> str:
        """SHA-256 over everything in this run, in hexadecimal."""
        return digest_of(self.trace, self.workload, self.summary, self.series)


@dataclass(frozen=True, slots=True)
class TimedRoom(Generic[QueryT, TaskT]):
    """A room in time: how it is made for a workload, and what is to be seen of a run."""

    name: str
    room_of: Callable[
        [Workload, Cluster, int, Sequence[float] | None, Sequence[float]], Room[TaskT]
    ]
    series: Callable[[Observed[TaskT]], Series]
    summary: Callable[[Observed[TaskT]], Summary]
    described: Callable[[QueryT], Summary]
    """What the summary says of the query."""

    @uncollected()
    def simulate(
        self,
        source: Plan | str,
        config: QueryT,
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

        ``workers`` serve the tasks, in turn if there are fewer. Arrivals and service times depend
        on the seed and not on ``config``: two rules meet the same arrivals and the same work.
        ``batch_worker``, ``correction_us`` and ``row_us``: who corrects, and the work of that; see
        :class:`sim.windows.timed.Cluster`. Every ``trigger_interval_us`` a micro-batch ends, if
        anything arrived. The series have a row a slide, but at most ``samples`` rows; the last one
        is the end.

        The same seed gives the same run. Raises ``ValueError`` with one sentence that names the
        offending value.
        """
        require(samples > 0, "samples", samples, "above 0")
        cluster = Cluster(workers, batch_worker, correction_us, row_us)
        plan = scenario(source)(seed) if isinstance(source, str) else source
        arrivals = simulate_arrivals(plan, seed)
        cuts, ends_us = cut(arrivals.events, plan.epoch_us, trigger_interval_us)
        workload = Workload(
            self.name, arrivals.events, config.to_json(), cuts, seed=seed, name=arrivals.name
        )
        end_us = max(ends_us, default=0.0)
        rows = min(samples, ceil(end_us / config.slide_us))
        sample_at_us = np.linspace(0.0, end_us, rows, endpoint=False)[1:]
        room = self.room_of(workload, cluster, plan.epoch_us, ends_us, sample_at_us.tolist())
        room.run()
        observed = observe(room)
        summary = {
            "input": arrivals.name,
            "seed": seed,
            **self.described(config),
            **self.summary(observed),
        }
        return Run(workload, room.trace(), self.series(observed), summary)

    def make_system(self) -> System:
        """The timed room as a System: a workload's arrivals are replayed when they came."""

        @uncollected()
        def replay(workload: Workload, /) -> Trace:
            start_us = workload.arrivals[0].arrival_us if workload.arrivals else 0
            room = self.room_of(workload, Cluster(), start_us, None, ())
            room.run()
            return room.trace()

        return replay
