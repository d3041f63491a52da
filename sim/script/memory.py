"""Memory of windows: slices that windows share, slices of each window alone, or tuples.

Source: a framework for real-time aggregation over large numbers of sensors, which cuts the windows
over a sensor into panes so that overlapping pieces are not stored several times.

Rules of this file:

* The arrivals of a run are admitted; at every second the slices of all windows are counted.
* A window alone keeps what has arrived since the start of its first window that has not ended:
  tuples, or the slices into which it alone would be cut.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from model.script.intake import Intake
from model.script.meaning import end_after_us
from model.script.rules import RULES
from model.vocabulary import Event, ScriptConfig
from model.vocabulary.script.graph import Graph, compile_graph
from model.vocabulary.script.slices import Cutting, Span, choose, slice_of
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


@dataclass(slots=True)
class _Window:
    """A window over sensors."""

    source: int
    """Number of the stream that is cut."""
    sensors: tuple[str, ...]
    span: Span
    cutting: Cutting
    """Cutting of the window alone."""
    next_us: int
    """First end that has not been passed."""

    @property
    def since_us(self) -> int:
        """Start of the first window that has not ended."""
        return self.next_us - self.span.length_us


class _Counting:
    """The admitted tuples of sensors, and what windows over them keep."""

    def __init__(self, config: ScriptConfig) -> None:
        graph = compile_graph(config)
        self.kept: list[Kept] = []
        self._intake = Intake(config, RULES, sorted(config.asked_for))
        self._stamps_us: dict[str, list[int]] = {sensor: [] for sensor in config.asked_for}
        self._windows = _windows_of(graph)
        self._cuttings = {
            source: choose(spans, graph.per_hour[source]).cutting
            for source, spans in graph.spans().items()
        }
        self._cut_us = dict.fromkeys(self._cuttings, 0)
        """Stamp below which the tuples of a stream are in slices."""
        self._next_us = 0

    def take(self, event: Event) -> None:
        """Take one arrival, and count at every second of the arrivals."""
        if self._intake.admit(event) is None:
            insort(self._stamps_us[event.key], event.event_time_us)
        for window in self._windows:
            if event.key in window.sensors:
                self._end(window)
        if event.arrival_us >= self._next_us:
            self._next_us = (event.arrival_us // SECOND_US + 1) * SECOND_US
            self.kept.append(self._count())

    def _end(self, window: _Window) -> None:
        """Pass the ends of a window: what it has read is cut into slices."""
        clocks = self._intake.clocks
        known_us = min(clocks[sensor].watermark_us for sensor in window.sensors)
        if known_us >= window.next_us:
            window.next_us = end_after_us(window.span, known_us)
            self._cut_us[window.source] = known_us

    def _count(self) -> Kept:
        """Count the numbers; tuples that are in no slice yet wait in all three ways."""
        shared: dict[int, set[int]] = {}
        own = tuples = 0
        for window in self._windows:
            until_us = self._cut_us[window.source]
            found = [
                stamp_us
                for sensor in window.sensors
                for stamp_us in _between(self._stamps_us[sensor], window.since_us, until_us)
            ]
            tuples += len(found)
            own += len({slice_of(window.cutting, stamp_us) for stamp_us in found})
            cutting = self._cuttings[window.source]
            shared.setdefault(window.source, set()).update(slice_of(cutting, at) for at in found)
        slices = sum(map(len, shared.values()))
        return Kept(SLICE_NUMBERS * slices, SLICE_NUMBERS * own, TUPLE_NUMBERS * tuples)


def _windows_of(graph: Graph) -> list[_Window]:
    """Return the windows over sensors; those over results keep little in any way."""
    found = []
    for number in graph.computed:
        span = graph.nodes[number].span
        sensors = tuple([graph.nodes[each].sensor for each in graph.reads[number]])
        if span is not None and all(sensors):
            (source,) = graph.nodes[number].inputs
            cutting = choose([span], graph.per_hour[source]).cutting
            found.append(_Window(source, sensors, span, cutting, span.slide_us))
    return found


def _between(stamps_us: list[int], since_us: int, until_us: int) -> list[int]:
    return stamps_us[bisect_left(stamps_us, since_us) : bisect_left(stamps_us, until_us)]
