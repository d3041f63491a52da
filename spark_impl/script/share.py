"""The part of one worker in a plan; it is plain data, and travels to the worker."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from model.vocabulary.script.plan import ScriptPlan


@dataclass(frozen=True)
class Share:
    """The part of one worker in a plan."""

    plan: ScriptPlan
    sensors: tuple[int, ...]
    """Sensors sent to it."""
    computed: tuple[int, ...]
    """Windows and operations, each after its inputs."""
    sent: Mapping[int, tuple[int, ...]]
    """Other workers that read the results of a window or operation."""
    says: frozenset[int]
    """Sensors whose rejected arrivals it records; other workers record the others."""

    @cached_property
    def windows(self) -> Mapping[int, tuple[int, ...]]:
        """The windows over a stream that are computed here, by stream."""
        return self._here(self.plan.graph.windows)

    def squares(self, source: int) -> bool:
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


def share_of(plan: ScriptPlan, worker: int) -> Share:
    """Return the part of one worker."""
    graph, placed = plan.graph, plan.placement
    own = placed.hosts[worker]
    return Share(
        plan,
        tuple(sorted(own)),
        tuple(number for number in graph.computed if placed.worker[number] == worker),
        {each: to for each, to in placed.readers.items() if placed.worker[each] == worker},
        frozenset(n for n in own if plan.hosts[graph.nodes[n].sensor][0] == worker),
    )
