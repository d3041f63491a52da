"""Placements: the worker of each computation, and the tuples that are sent because of it.

Source: docs/script.md, section 8. LPT and its bound are due to Graham ("Bounds on multiprocessing
timing anomalies").

Rules of this file:

* Loads and rates are tuples an hour, exact.
* Numbers decide, and order breaks ties: equal workflows get equal placements.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from model.vocabulary.hashing import task_of
from model.vocabulary.script.config import Hosted
from model.vocabulary.script.graph import SENSOR, Graph

WHOLE, LARGE_SPLIT, ALL_SPLIT, HASHED = "whole", "large ones split", "all split", "by hash"
BY_SENSOR = "by sensor"


class Unit(NamedTuple):
    """A unit of placement: computations, and the sensors that they read."""

    nodes: tuple[int, ...]
    sensors: frozenset[int]


@dataclass(frozen=True)
class Placement:
    """A worker for every computed node, and the sensors that every worker gets."""

    way: str
    graph: Graph
    worker: Mapping[int, int]
    """Worker, by computed node."""
    hosts: tuple[frozenset[int], ...]
    """Numbers of the sensors whose tuples a worker is sent, by worker."""

    @property
    def sensors(self) -> tuple[frozenset[str], ...]:
        """Sensors whose tuples a worker is sent, by worker."""
        nodes = self.graph.nodes
        return tuple(frozenset(nodes[each].sensor for each in at) for at in self.hosts)

    @property
    def loads(self) -> tuple[Fraction, ...]:
        """Sensor tuples sent to each worker in an hour, by worker."""
        return tuple(Fraction(load_of(self.graph, at)) for at in self.hosts)

    @cached_property
    def readers(self) -> Mapping[int, tuple[int, ...]]:
        """Other workers that read the results of a computed node, by node."""
        found: dict[int, set[int]] = {}
        for number in self.graph.computed:
            for each in self.graph.reads[number]:
                if each in self.worker and self.worker[each] != self.worker[number]:
                    found.setdefault(each, set()).add(self.worker[number])
        return {each: tuple(sorted(workers)) for each, workers in sorted(found.items())}

    @property
    def derived(self) -> Fraction:
        """Results sent between workers in an hour, once for each receiver."""
        rates = self.graph.per_hour
        return sum((rates[each] * len(to) for each, to in self.readers.items()), Fraction())

    @property
    def communication(self) -> Fraction:
        """Tuples and results sent in an hour."""
        return sum(self.loads, Fraction()) + self.derived


def load_of(graph: Graph, sensors: Iterable[int]) -> int:
    """Return how many tuples some sensors send in an hour, a whole number for each sensor."""
    return sum([graph.per_hour[each].numerator for each in sensors])


def hosted_sensors(placement: Placement) -> Iterator[Hosted]:
    """Yield a step for each sensor that a worker is sent."""
    for worker, sensors in enumerate(placement.sensors):
        for sensor in sensors:
            yield Hosted(worker, sensor)


# -------------------------------------------------------------------------------------- the pieces


def sensors_of(graph: Graph, number: int) -> frozenset[int]:
    """Return the sensors that a computed node reads directly, or through unions."""
    return frozenset(each for each in graph.reads[number] if graph.nodes[each].kind == SENSOR)


def units(graph: Graph) -> list[Unit]:
    """Return every computation that reads a sensor as a unit of its own."""
    found = [Unit((number,), sensors_of(graph, number)) for number in graph.computed]
    return [unit for unit in found if unit.sensors]


def components(graph: Graph) -> list[Unit]:
    """Return the groups of computations that share nothing, by their first node."""
    root = list(range(len(graph.nodes)))

    def find(number: int) -> int:
        while root[number] != number:
            root[number] = root[root[number]]
            number = root[number]
        return number

    for number in graph.computed:
        for each in graph.reads[number]:
            left, right = sorted((find(number), find(each)))
            root[right] = left
    nodes: dict[int, list[int]] = {}
    for number in graph.computed:
        nodes.setdefault(find(number), []).append(number)
    return [
        Unit(tuple(each), frozenset().union(*(sensors_of(graph, number) for number in each)))
        for _, each in sorted(nodes.items())
    ]


# ------------------------------------------------------------------------------------- the workers


@dataclass(slots=True)
class _Workers:
    """Workers with the sensors and loads assigned so far."""

    graph: Graph
    hosts: list[set[int]]
    loads: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.loads = [0 for _ in self.hosts]

    def load(self, sensors: Iterable[int]) -> int:
        return load_of(self.graph, sensors)

    def added_load(self, worker: int, unit: Unit) -> int:
        """Return the load that a unit would add; sensors that the worker already hosts add none."""
        return self.load(unit.sensors - self.hosts[worker])

    def assign(self, worker: int, unit: Unit, is_charged: bool = True) -> None:
        if is_charged:
            self.loads[worker] += self.added_load(worker, unit)
        self.hosts[worker] |= unit.sensors

    def largest_first(self, pieces: Iterable[Unit]) -> list[Unit]:
        return sorted(pieces, key=lambda unit: (-self.load(unit.sensors), unit.nodes))


def _empty_workers(graph: Graph, workers: int) -> _Workers:
    return _Workers(graph, [set() for _ in range(workers)])


def place_whole(graph: Graph, workers: int, *, is_charged: bool) -> Placement:
    """Place the largest component first, each on the worker with the least load (LPT).

    ``is_charged`` says whether a component adds its load to the worker that gets it.
    """
    filled = _empty_workers(graph, workers)
    worker: dict[int, int] = {}
    for piece in filled.largest_first(components(graph)):
        chosen = min(range(workers), key=lambda each: (filled.loads[each], each))
        filled.assign(chosen, piece, is_charged)
        worker |= dict.fromkeys(piece.nodes, chosen)
    return Placement(WHOLE, graph, worker, tuple(frozenset(each) for each in filled.hosts))


def place_split(graph: Graph, workers: int, cap: Fraction, way: str) -> Placement:
    """Place the largest piece first, each where it adds least without exceeding the cap."""
    filled = _empty_workers(graph, workers)
    pieces: list[Unit] = []
    single = units(graph)
    for component in components(graph):
        if way == LARGE_SPLIT and filled.load(component.sensors) <= cap:
            pieces.append(component)
        else:
            inside = set(component.nodes)
            pieces += [unit for unit in single if unit.nodes[0] in inside]
    worker: dict[int, int] = {}
    for piece in filled.largest_first(pieces):
        chosen = _choose_worker(filled, piece, cap)
        filled.assign(chosen, piece)
        worker |= dict.fromkeys(piece.nodes, chosen)
    hosts = tuple(frozenset(each) for each in filled.hosts)
    return Placement(way, graph, place_derived(graph, worker), hosts)


def _choose_worker(filled: _Workers, piece: Unit, cap: Fraction) -> int:
    """Return the worker where a piece adds least within the cap; else the one with least load."""
    best: tuple[int, int, int] | None = None
    for each, load in enumerate(filled.loads):
        added = filled.added_load(each, piece)
        # Above the cap, a load is larger than all that is added within it.
        key = (added if load + added <= cap else load + added, load, each)
        best = key if best is None else min(best, key)
    assert best is not None
    return best[-1]


def place_hashed(graph: Graph, workers: int) -> Placement:
    """Place each computation where the hash of names sends most tuples of its sensors."""
    worker: dict[int, int] = {}
    hosts: list[set[int]] = [set() for _ in range(workers)]
    for unit in units(graph):
        at = [0] * workers
        for sensor in unit.sensors:
            at[home(graph, sensor, workers)] += load_of(graph, [sensor])
        chosen = max(range(workers), key=lambda each: (at[each], -each))
        worker |= dict.fromkeys(unit.nodes, chosen)
        hosts[chosen] |= unit.sensors
    sensors_at = tuple(frozenset(each) for each in hosts)
    return Placement(HASHED, graph, place_derived(graph, worker), sensors_at)


def home(graph: Graph, sensor: int, workers: int) -> int:
    """Return the worker that the hash of a sensor's name selects."""
    return task_of(graph.nodes[sensor].sensor, workers)


def place_derived(graph: Graph, worker: Mapping[int, int]) -> dict[int, int]:
    """Place computations that read only results on the worker that has most of these results."""
    found = dict(worker)
    for number in graph.computed:
        if number not in found:
            at: dict[int, Fraction] = {}
            for each in graph.reads[number]:
                at[found[each]] = at.get(found[each], Fraction()) + graph.per_hour[each]
            found[number] = min(at, key=lambda each: (-at[each], each))
    return found


# --------------------------------------------------------------------------------------- choosing


def load_cap(graph: Graph, workers: int, cap_percent: int) -> Fraction:
    """Return the load that no worker should exceed: a share of an even split of all sensors."""
    asked = frozenset().union(*(unit.sensors for unit in units(graph)))
    return Fraction(load_of(graph, asked) * cap_percent, 100 * workers)


def candidates(graph: Graph, workers: int, cap: Fraction, *, is_charged: bool) -> list[Placement]:
    """Return the placements to choose from; split ones only if whole components exceed the cap."""
    whole = place_whole(graph, workers, is_charged=is_charged)
    if max(whole.loads) <= cap:
        return [whole]
    split = [place_split(graph, workers, cap, way) for way in (LARGE_SPLIT, ALL_SPLIT)]
    return [whole, *split, place_hashed(graph, workers)]


def choose_best(found: Sequence[Placement], cap: Fraction) -> Placement:
    """Return the placement least above the cap; then the one that sends least; then the first."""

    def badness(placement: Placement) -> tuple[Fraction, Fraction]:
        return max(max(placement.loads) - cap, Fraction()), placement.communication

    return min(found, key=badness)


def place(graph: Graph, workers: int, cap_percent: int, *, is_charged: bool = True) -> Placement:
    """Place every computation by the best of the candidate placements."""
    cap = load_cap(graph, workers, cap_percent)
    return choose_best(candidates(graph, workers, cap, is_charged=is_charged), cap)


def place_by_sensor(graph: Graph, workers: int) -> Placement:
    """Send each sensor to the worker that its hash selects, and from there to all that need it."""
    placed = place_hashed(graph, workers)
    hosts = [set(each) for each in placed.hosts]
    for unit in units(graph):
        for sensor in unit.sensors:
            hosts[home(graph, sensor, workers)].add(sensor)
    sensors_at = tuple(frozenset(each) for each in hosts)
    return Placement(BY_SENSOR, graph, placed.worker, sensors_at)


def hash_baseline(graph: Graph, workers: int) -> tuple[Fraction, Fraction]:
    """Return the largest load and the communication of :func:`place_by_sensor`."""
    placed = place_by_sensor(graph, workers)
    return max(placed.loads), placed.communication
