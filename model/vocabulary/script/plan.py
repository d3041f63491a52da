"""A set of workflows, compiled: what is computed, from which slices, by which worker.

Source: docs/script.md, sections 6 to 8.

Rules of this file:

* A plan is plain data, and everything in it follows from the configuration alone.
* There is one plan, as there is one parser. The reference computes answers without it
  (``model/script/meaning.py``), so a mistake in what is shared shows in the answers of Spark.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from model.vocabulary.script.config import ScriptConfig
from model.vocabulary.script.graph import Graph, Output, compile_graph
from model.vocabulary.script.placement import Placement, place
from model.vocabulary.script.slices import Choice, choose


@dataclass(frozen=True)
class Share:
    """The part of one worker in a plan, which travels to the worker."""

    plan: "ScriptPlan"
    sensors: tuple[int, ...]
    """Sensors sent to it."""
    computed: tuple[int, ...]
    """Windows and operations, each after its inputs."""
    sent: Mapping[int, tuple[int, ...]]
    """Other workers that read the results of a window or operation."""
    first_host_of: frozenset[int]
    """Sensors whose first host it is: of their hosts, it records their rejected arrivals."""

    @cached_property
    def windows(self) -> Mapping[int, tuple[int, ...]]:
        """The windows over a stream that are computed here, by stream."""
        return self._here(self.plan.graph.windows)

    def needs_squares(self, source: int) -> bool:
        """Return whether a window over a stream needs the squares of its values."""
        return any(self.plan.graph.nodes[number].op == "stddev" for number in self.windows[source])

    @cached_property
    def readers(self) -> Mapping[int, tuple[int, ...]]:
        """The windows and operations here that read a sensor or result, by its node."""
        return self._here(self.plan.graph.readers)

    def _here(self, found: Mapping[int, tuple[int, ...]]) -> Mapping[int, tuple[int, ...]]:
        """Return what is computed here, by stream."""
        here = set(self.computed)
        own = {stream: tuple(n for n in numbers if n in here) for stream, numbers in found.items()}
        return {stream: numbers for stream, numbers in own.items() if numbers}


@dataclass(frozen=True)
class ScriptPlan:
    """Workflows compiled for some workers."""

    config: ScriptConfig
    graph: Graph
    slices: Mapping[int, Choice]
    """The way to cut a stream for the windows over it, by stream."""
    placement: Placement

    @property
    def is_timed(self) -> bool:
        """Return whether arrival times matter, because sensors may be idle."""
        return self.config.idle_after_us is not None

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self.placement.hosts)

    @cached_property
    def hosts(self) -> Mapping[str, tuple[int, ...]]:
        """The workers that a sensor is sent to, by sensor."""
        found: dict[str, list[int]] = {}
        for worker, own in enumerate(self.placement.hosts):
            for number in sorted(own):
                found.setdefault(self.graph.nodes[number].sensor, []).append(worker)
        return {sensor: tuple(workers) for sensor, workers in found.items()}

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The node of each sensor that is sent to some worker."""
        hosted = sorted(frozenset[int]().union(*self.placement.hosts))
        return {self.graph.nodes[number].sensor: number for number in hosted}

    @cached_property
    def statements(self) -> Mapping[int, tuple[Output, ...]]:
        """The statements whose results are the tuples of a node, by node."""
        return _by_node((each.node, each) for each in self.graph.outputs if each.is_result)

    @cached_property
    def writers(self) -> Mapping[int, tuple[Output, ...]]:
        """The statements that contain a window or operation, by its node."""
        return _by_node((number, each) for each in self.graph.outputs for number in each.own)

    def share(self, worker: int) -> Share:
        """Return the part of one worker."""
        graph, placed = self.graph, self.placement
        own = placed.hosts[worker]
        return Share(
            self,
            tuple(sorted(own)),
            tuple(number for number in graph.computed if placed.worker[number] == worker),
            {each: to for each, to in placed.readers.items() if placed.worker[each] == worker},
            frozenset(n for n in own if self.hosts[graph.nodes[n].sensor][0] == worker),
        )


def _by_node(pairs: Iterable[tuple[int, Output]]) -> dict[int, tuple[Output, ...]]:
    found: dict[int, list[Output]] = {}
    for number, output in pairs:
        found.setdefault(number, []).append(output)
    return {number: tuple(outputs) for number, outputs in found.items()}


def compile_plan(config: ScriptConfig, placement: Placement | None = None) -> ScriptPlan:
    """Share computations, cut windows and place computations: in the best way, or as given.

    >>> from model.vocabulary.script.tree import Sensor, Statement, Window, Workflow
    >>> both = Window("avg", Sensor("A"), 600_000, 300_000)
    >>> flows = tuple(Workflow(name, (Statement("mean", both),)) for name in ("one", "two"))
    >>> plan = compile_plan(ScriptConfig(flows, (("A", 3600), ("B", 3600))))
    >>> plan.graph.written, len(plan.graph.computed), plan.hosts
    (2, 1, {'A': (0,)})
    """
    graph = compile_graph(config) if placement is None else placement.graph
    slices = {each: choose(spans, graph.per_hour[each]) for each, spans in graph.spans().items()}
    if placement is None:
        placement = place(graph, config.workers, config.cap_percent)
    return ScriptPlan(config, graph, slices, placement)
