"""Memory of windows: slices that windows share, slices of each window alone, or tuples.

Source: a framework for real-time aggregation over large numbers of sensors, which cuts the windows
over a sensor into panes so that overlapping pieces are not stored several times.

Rules of this file:

* One worker of the model takes the arrivals of a run; at every second its slices are counted.
* A window alone keeps what has arrived since the start of its first window that has not ended:
  tuples, or the slices into which it alone would be cut.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping
from statistics import fmean
from typing import NamedTuple

from model.script.graph import Graph, compile_graph
from model.script.machine import Worker, WorkerState
from model.script.placement import place_whole
from model.script.rules import RULES
from model.script.slices import Cutting, choose, slice_of
from model.vocabulary import Event, ScriptConfig
from sim.kernel.log import simulate_arrivals
from sim.script.settings import prepare
from sim.sweep.measurable import Figures

TUPLE_NUMBERS, SLICE_NUMBERS = 2, 6
"""Numbers that are kept for a tuple (stamp, value) and for a slice (start, five aggregates)."""
SECOND_US = 1_000_000


def figures(texts: Mapping[str, str], seed: int) -> Figures:
    """Return how many numbers are kept in each of three ways, on average over the second half.

    Raise ``ValueError`` for bad settings, as :func:`sim.script.from_settings` does.
    """
    asked = prepare(texts, seed)
    counting = _Counting(asked.config)
    for event in simulate_arrivals(asked.plan, seed).events:
        if event.key in asked.config.asked_for:
            counting.take(event)
    # By then the windows are full.
    kept = counting.kept[len(counting.kept) // 2 :]
    return {
        name: fmean(each) for name, each in zip(Kept._fields, zip(*kept, strict=True), strict=True)
    }


class Kept(NamedTuple):
    """Numbers that are kept at one moment."""

    shared_numbers: int
    """In slices that all windows over a stream share."""
    own_numbers: int
    """In slices of each window alone."""
    tuple_numbers: int
    """In tuples of each window alone."""


class _Window(NamedTuple):
    """A window over sensors."""

    node: int
    sensors: tuple[str, ...]
    length_us: int
    cutting: Cutting
    """Cutting of the window alone."""


class _Counting:
    """A worker, and the tuples that its windows would keep each for itself."""

    def __init__(self, config: ScriptConfig) -> None:
        graph = compile_graph(config)
        self.kept: list[Kept] = []
        self._worker = Worker(config, place_whole(graph, 1, RULES), 0)
        self._stamps_us: dict[str, list[int]] = {sensor: [] for sensor in config.asked_for}
        self._windows = _windows_of(graph)
        self._next_us = 0

    def take(self, event: Event) -> None:
        """Take one arrival, and count at every second of the arrivals."""
        self._worker.take(event)
        insort(self._stamps_us[event.key], event.event_time_us)
        if event.arrival_us >= self._next_us:
            self._next_us = (event.arrival_us // SECOND_US + 1) * SECOND_US
            self.kept.append(self._count(self._worker.saved()))

    def _count(self, state: WorkerState) -> Kept:
        slices = sum(len(each.parts) for each in state.slices.values())
        own = tuples = 0
        for window in self._windows:
            since_us = state.next_us[window.node] - window.length_us
            # Tuples from there on wait in the log of their sensor, in all three ways.
            source = next(iter(self._worker.share.graph.nodes[window.node].inputs))
            until_us = state.slices[source].until_us
            found = [
                stamp_us
                for sensor in window.sensors
                for stamp_us in _between(self._stamps_us[sensor], since_us, until_us)
            ]
            tuples += len(found)
            own += len({slice_of(window.cutting, stamp_us) for stamp_us in found})
        return Kept(SLICE_NUMBERS * slices, SLICE_NUMBERS * own, TUPLE_NUMBERS * tuples)


def _windows_of(graph: Graph) -> list[_Window]:
    """Return the windows over sensors; those over results keep little in any way."""
    found = []
    for number in graph.computed:
        span = graph.nodes[number].span
        sensors = tuple([graph.nodes[each].sensor for each in graph.streams(number)])
        if span is not None and all(sensors):
            cutting = choose([span], graph.per_hour[graph.nodes[number].inputs[0]]).cutting
            found.append(_Window(number, sensors, span.length_ms * 1_000, cutting))
    return found


def _between(stamps_us: list[int], since_us: int, until_us: int) -> list[int]:
    return stamps_us[bisect_left(stamps_us, since_us) : bisect_left(stamps_us, until_us)]
