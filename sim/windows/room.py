"""Timed runs of windowed rooms: a plan, a query and a seed in; workload, trace and figures out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from model.vocabulary import System, Workload
from model.windows.query import Query
from sim.clusters import STATED
from sim.kernel.plan import Plan, replay
from sim.kernel.recorder import Series, Summary
from sim.kernel.run import TimedRun, run
from sim.windows.cluster import WindowCluster
from sim.windows.machine import MachineOf
from sim.windows.observed import Observed
from sim.windows.seen import SeenRun, seen_in
from sim.windows.series import series_of
from sim.windows.summary import summary_of

QueryT = TypeVar("QueryT", bound=Query)


@dataclass(frozen=True, slots=True)
class TimedRoom(Generic[QueryT]):
    """A windowed room in time: its machine, and what its figures are called."""

    name: str
    read: Callable[..., QueryT]
    """Reads a query from plain data."""
    machine_of: MachineOf[QueryT]
    wait: str
    """What the wait of a task is called in series and summary."""
    share: str
    """What the share of the longest wait is called in series."""
    described: Callable[[QueryT], Summary]
    """What the summary says of the query."""
    more_series: Callable[[SeenRun], Series] = lambda _: {}
    more_figures: Callable[[SeenRun], Summary] = lambda _: {}

    def simulate(
        self, plan: Plan, config: QueryT, seed: int, *, machine: MachineOf[QueryT] | None = None
    ) -> TimedRun:
        """Run a plan through the room until everything is over.

        Arrivals and the work of each tuple depend on the plan and the seed and not on ``config``:
        two queries meet the same. ``machine`` makes the machine of each task (the model's, if
        nothing is said). The same seed gives the same run. Raises ``ValueError`` with one sentence
        that names the offending value.
        """
        make = machine or self.machine_of
        machines = [make(config, number) for number in range(config.tasks)]
        room, arrived = run(
            plan, seed, lambda env, seeds: WindowCluster[QueryT](env, seeds, plan, config, machines)
        )
        workload = Workload(
            self.name,
            arrived.events,
            config.to_json(),
            arrived.cuts,
            room.kills(),
            seed,
            flush=plan.flush,
            name=plan.name,
        )
        seen = seen_in(Observed(room, arrived))
        head: Summary = {"input": plan.name, "seed": seed, **self.described(config)}
        return TimedRun(
            plan,
            workload,
            room.trace(),
            {**series_of(seen, self.wait, self.share), **self.more_series(seen)},
            {**head, **summary_of(seen, self.wait), **self.more_figures(seen)},
        )

    def replay(self, workload: Workload) -> TimedRun:
        """Replay a workload through the stated cluster: arrivals when they came, its batches."""
        plan = replay(
            workload.arrivals,
            workload.name,
            workload.cuts,
            flush=workload.flush,
            cluster=STATED,
        )
        return self.simulate(plan, self.read(workload.config), workload.seed)

    def make_system(self) -> System:
        """Return the timed room as a System."""
        return lambda workload: self.replay(workload).trace
