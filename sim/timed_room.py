"""A timed room: it simulates plans, replays workloads, and plots its runs.

A room adds its processes (``cluster.py``), its figures (``figures.py``) and its scenarios. Its
``room.py`` runs a plan through these and ends with a :class:`TimedRoom`.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from model.vocabulary import Event, Fault, System, Workload
from model.vocabulary.settings import JsonObject, look_up
from sim.clusters import NONE, STATED
from sim.kernel.plan import Cluster, Plan, replay
from sim.kernel.run import Arrived, TimedRun
from sim.timed_figures import RunPlot

PRODUCER = "sim"
"""Producer of the traces that timed rooms observe."""


class Configuration(Protocol):
    """The query of a room."""

    def to_json(self) -> JsonObject:
        """Return the query as plain data for JSON."""
        ...


ConfigT = TypeVar("ConfigT")
RunT = TypeVar("RunT", bound=TimedRun)


def workload_of(
    room: str,
    plan: Plan,
    config: Configuration,
    seed: int,
    arrived: Arrived,
    kills: tuple[Fault, ...],
) -> Workload:
    """Return everything that timing decided in a run, for the model or Spark."""
    events: tuple[Event, ...] = arrived.events
    return Workload(
        room, events, config.to_json(), arrived.cuts, kills, seed, flush=plan.flush, name=plan.name
    )


def stated_plan(workload: Workload, cluster: Cluster = STATED) -> Plan:
    """Return the plan that repeats the arrivals and micro-batches of a workload on a cluster."""
    return replay(
        workload.arrivals, workload.name, workload.cuts, flush=workload.flush, cluster=cluster
    )


def _stated_plan(workload: Workload, _config: object) -> Plan:
    return stated_plan(workload)


@dataclass(frozen=True, slots=True)
class TimedRoom(Generic[ConfigT, RunT]):
    """A timed room."""

    read: Callable[..., ConfigT]
    """Reads a query from plain data."""
    simulate: Callable[[Plan, ConfigT, int], RunT]
    """Runs a plan and a query with a seed."""
    plot: RunPlot
    """Title, panels and columns of the plot of a run."""
    restate: Callable[[Workload, ConfigT], Plan] = _stated_plan
    """Returns the plan of a replay, given the workload and its query."""

    def simulate_plan(self, plan: Plan, config: JsonObject, seed: int) -> RunT:
        """Run a plan and a query in plain data."""
        return self.simulate(plan, self.read(config), seed)

    def replay(self, workload: Workload) -> RunT:
        """Replay a workload through the stated cluster, with its arrival times and batches."""
        config = self.read(workload.config)
        return self.simulate(self.restate(workload, config), config, workload.seed)

    def make_system(self) -> System:
        """Return the timed room as a System."""
        return lambda workload: self.replay(workload).trace

    def draw(self, run: TimedRun, path: Path) -> None:
        """Write a run over its time: faults, workers, lag, latency, panels of the room.

        The name of the file ends in one of :data:`sim.timed_figures.ENDINGS`.
        """
        # Imported here: matplotlib takes a second, and no other command needs it.
        from sim.report.drawing import draw_timed_run, save

        title, panels, latency, lag = self.plot
        draw = partial(draw_timed_run, run, title(run.summary), panels, latency=latency, lag=lag)
        save(draw, (), path)


def names_of(setting: str, text: str, known: Collection[str]) -> tuple[str, ...]:
    """Return the names that a setting lists: ``all``, ``none``, or names separated by commas.

    Raises ``ValueError`` for an unknown name.
    """
    if text in ("all", NONE):
        return tuple(known) if text == "all" else ()
    names = {name: name for name in known}
    return tuple([look_up(setting, name.strip(), names) for name in text.split(",")])
