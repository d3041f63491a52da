"""Placement of computations and of sensors on workers (docs/script.md, section 8).

Rules of this file:

* Loads, rates and communication are exact.
* Ties go to the smaller number, of a node or of a worker.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from model.vocabulary import task_of
from spark_impl.script.graph import Graph

WHOLE, LARGE_SPLIT, ALL_SPLIT, BY_HASH = "whole", "large ones split", "all split", "by hash"
"""Ways to place computations."""


class Piece(NamedTuple):
    """Units that stay together, and the sensors that they read."""

    units: tuple[int, ...]
    sensors: frozenset[int]
    load: int
    """Tuples per hour."""

    @property
    def order(self) -> tuple[int, int]:
        """Sort key: the largest piece first; of equal ones the one with the smallest unit."""
        return -self.load, min(self.units)


class Placement(NamedTuple):
    """A worker for every window and operation."""

    way: str
    worker: Mapping[int, int]
    hosts: tuple[frozenset[int], ...]
    """Sensors sent to each worker, by worker."""
    loads: tuple[int, ...]
    communication: Fraction


class Placing:
    """Common ground of all ways to place a graph on some workers."""

    def __init__(self, graph: Graph, workers: int, cap_percent: int) -> None:
        self._graph = graph
        self._workers = workers
        self._rate = {n: graph.per_hour[graph.nodes[n].sensor] for n in graph.asked_for}
        total = sum(self._rate.values())
        self.cap = Fraction(cap_percent * total, 100 * workers)
        self.units = {
            n: frozenset(each for each in streams if each in self._rate)
            for n, streams in graph.reads.items()
            if any(each in self._rate for each in streams)
        }
        """The sensors of each unit."""

    def best(self) -> Placement:
        """Return the best of all ways."""
        whole = self.placed(WHOLE)
        if max(whole.loads) <= self.cap:
            return whole
        found = [whole, *(self.placed(way) for way in (LARGE_SPLIT, ALL_SPLIT, BY_HASH))]
        return min(found, key=lambda each: (max(*each.loads, self.cap), each.communication))

    def placed(self, way: str) -> Placement:
        """Return the placement of one way. Raise ``ValueError`` for an unknown way."""
        if way == WHOLE:
            return self._placed(way, self._longest_first(self._components))
        if way == LARGE_SPLIT:
            fits = [each for each in self._components if each.load <= self.cap]
            large = [each for each in self._components if each.load > self.cap]
            split = [self._piece([unit]) for each in large for unit in each.units]
            return self._placed(way, self._least_added([*fits, *split]))
        if way == ALL_SPLIT:
            return self._placed(way, self._least_added(self._piece([unit]) for unit in self.units))
        if way == BY_HASH:
            return self._placed(way, self._by_hash())
        msg = f"there is no way {way!r} to place computations"
        raise ValueError(msg)

    def _piece(self, units: Sequence[int]) -> Piece:
        sensors = frozenset().union(*(self.units[unit] for unit in units))
        return Piece(tuple(units), sensors, sum(self._rate[each] for each in sensors))

    @cached_property
    def _components(self) -> list[Piece]:
        """Units that share a sensor, or have a common reader of their results."""
        root = list(range(len(self._graph.nodes)))

        def found(number: int) -> int:
            while root[number] != number:
                root[number] = number = root[root[number]]
            return number

        for number, streams in self._graph.reads.items():
            for each in streams:
                one, other = sorted((found(number), found(each)))
                root[other] = one
        together: dict[int, list[int]] = {}
        for unit in self.units:
            together.setdefault(found(unit), []).append(unit)
        return [self._piece(units) for units in together.values()]

    def _longest_first(self, pieces: Iterable[Piece]) -> dict[int, int]:
        """Place the largest piece first, each on the least loaded worker (LPT)."""
        loads = [0] * self._workers
        worker: dict[int, int] = {}
        for piece in sorted(pieces, key=lambda each: each.order):
            place = loads.index(min(loads))
            loads[place] += piece.load
            worker |= dict.fromkeys(piece.units, place)
        return worker

    def _least_added(self, pieces: Iterable[Piece]) -> dict[int, int]:
        """Place each piece where it adds the least load, if possible within the cap."""
        loads = [0] * self._workers
        hosts: list[set[int]] = [set() for _ in loads]
        worker: dict[int, int] = {}
        for piece in sorted(pieces, key=lambda each: each.order):
            adds = [sum(self._rate[each] for each in piece.sensors - own) for own in hosts]
            choices = [(adds[n], loads[n], n) for n in range(len(loads))]
            fits = [each for each in choices if each[0] + each[1] <= self.cap]
            _, _, place = (
                min(fits) if fits else min(choices, key=lambda e: (e[0] + e[1], e[1], e[2]))
            )
            loads[place] += adds[place]
            hosts[place] |= piece.sensors
            worker |= dict.fromkeys(piece.units, place)
        return worker

    def _by_hash(self) -> dict[int, int]:
        """Place each unit where the largest part of its rates is hashed to."""
        at = self._hashed()
        return {
            unit: _most((at[each], self._rate[each]) for each in sensors)
            for unit, sensors in self.units.items()
        }

    def _hashed(self) -> dict[int, int]:
        names = self._graph.nodes
        return {each: task_of(names[each].sensor, self._workers) for each in self._rate}

    def _placed(self, way: str, units: Mapping[int, int]) -> Placement:
        """Return a placement of units; every other computation goes where most of its input is."""
        graph, worker = self._graph, dict(units)
        for number, streams in graph.reads.items():
            if number not in worker:
                worker[number] = _most((worker[each], graph.rates[each]) for each in streams)
        hosts: list[set[int]] = [set() for _ in range(self._workers)]
        for unit, sensors in self.units.items():
            hosts[worker[unit]] |= sensors
        loads = tuple(sum(self._rate[each] for each in own) for own in hosts)
        sent = Fraction(sum(loads))
        for number, reading in graph.readers.items():
            if number in worker:
                others = {worker[each] for each in reading} - {worker[number]}
                if others:
                    sent += graph.rates[number] * len(others)
        return Placement(way, worker, tuple(map(frozenset, hosts)), loads, sent)


def _most(parts: Iterable[tuple[int, Fraction | int]]) -> int:
    """Return the worker with the largest total."""
    totals: dict[int, Fraction | int] = {}
    for place, rate in parts:
        totals[place] = totals.get(place, 0) + rate
    return min(totals, key=lambda place: (-totals[place], place))
