"""What a worker knows of the streams that it reads and computes, and how that grows.

Source: docs/script.md, section 5.

Rules of this file:

* Until when a stream is known, given its inputs, is decided by the model. Here is only who has
  heard of it: a worker hears of sensors by their tuples, of results of its own at once, and of
  those of other workers when they come.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from model.script.evaluation import until_us_of
from model.script.graph import SENSOR, Graph
from model.script.placement import Placement
from model.script.rules import Rules
from model.vocabulary.script import MILLISECOND_US
from sim.kernel.disorder import IntArray


class Rise(NamedTuple):
    """A computed stream is known further than before."""

    node: int
    until_us: int


def at_first(graph: Graph, rules: Rules) -> list[int]:
    """Until when every node is known before anything has come."""
    until_us: list[int] = []
    for node in graph.nodes:
        inputs_us = [until_us[each] for each in node.inputs]
        until_us.append(0 if node.kind == SENSOR else until_us_of(node, inputs_us, rules))
    return until_us


class Knowledge:
    """Of one worker."""

    __slots__ = ("_below", "_graph", "_reads", "_rules", "_until_us")

    def __init__(self, placement: Placement, worker: int, rules: Rules) -> None:
        graph = placement.graph
        self._graph = graph
        self._rules = rules
        self._until_us = at_first(graph, rules)
        own = [number for number in graph.computed if placement.worker[number] == worker]
        self._reads = {number: graph.streams(number) for number in own}
        """Sensors and results that own computations read; a constant is known from the start."""
        readers: dict[int, list[int]] = {}
        for number in own:
            for each in self._reads[number]:
                readers.setdefault(each, []).append(number)
        self._below = {stream: _reached(stream, readers) for stream in readers}
        """Own computations that need a stream, directly or not, in an order of computing."""

    def until_us(self, number: int) -> int:
        """Until when a node is known here."""
        return self._until_us[number]

    def rise(self, stream: int, until_us: int) -> Iterator[Rise]:
        """A stream is known until later: what else is."""
        nodes, known_us = self._graph.nodes, self._until_us
        known_us[stream] = until_us
        risen = {stream}
        for number in self._below.get(stream, ()):
            if risen.isdisjoint(self._reads[number]):
                continue
            inputs_us = [known_us[each] for each in self._reads[number]]
            now_us = until_us_of(nodes[number], inputs_us, self._rules)
            if now_us > known_us[number]:
                known_us[number] = now_us
                risen.add(number)
                yield Rise(number, now_us)

    def moments(self, sensor: int, marks_us: IntArray) -> IntArray:
        """Which of a sensor's watermarks, one a tuple, may let a computation know more.

        A window knows more when an end of it is passed; an operation, whenever its input does.
        """
        steps_us = set()
        for number in self._below.get(sensor, ()):
            span = self._graph.nodes[number].span
            if sensor in self._reads[number]:
                steps_us.add(1 if span is None else span.slide_ms * MILLISECOND_US)
        passed = np.zeros(len(marks_us), dtype=np.bool_)
        for step_us in steps_us:
            passed |= np.diff(marks_us // step_us, prepend=0) > 0
        return np.flatnonzero(passed)


def _reached(stream: int, readers: dict[int, list[int]]) -> list[int]:
    """Everything that reads a stream, or reads what does."""
    found: set[int] = set()
    waiting = [stream]
    while waiting:
        new = set(readers.get(waiting.pop(), ())) - found
        found |= new
        waiting.extend(sorted(new))
    return sorted(found)
