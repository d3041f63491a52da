"""One worker of a placement: its share of the graph, its state, and what follows from each input.

The simulation runs these workers (``sim/script/machine.py``). A run of the model has no workers: it
computes the whole graph (``model/script/run.py``).

Source: docs/script.md, sections 4 to 8.

Rules of this file:

* There is no time in this file. A worker is given the arrivals of the sensors that it hosts, each
  in order of its sensor, the notices of other workers, and the end. The order among these changes
  no result.
* A stream is a log of tuples, and a stamp until which it is known. A reader takes the tuples
  between the stamp until which the stream was known before and the present one, once.
* A repeated notice changes nothing: results of a stream come in the order of their stamps, so an
  old one is recognised.
* Nothing is kept that no node here will read again.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from model.script.evaluation import (
    Latest,
    Slices,
    first_values,
    known_at_first,
    operation,
    until_us_of,
    window,
)
from model.script.graph import CONSTANT, UNION, Graph, Node
from model.script.intake import Clock, Intake
from model.script.placement import Placement
from model.script.rules import RULES, Rules, cutting_of
from model.script.silence import NO_FLOORS
from model.script.stream import Point, Stream
from model.vocabulary import Event, ScriptConfig
from model.vocabulary.script.config import END_US, MILLISECOND_US, Rejected


@dataclass(frozen=True, slots=True)
class Share:
    """The part of one worker, as plain data."""

    graph: Graph
    sensors: Mapping[str, int]
    """Nodes of the hosted sensors, by sensor."""
    says: frozenset[str]
    """Sensors whose rejected arrivals it records; an earlier worker records the others'."""
    own: tuple[int, ...]
    """Windows and operations, in an order of computing."""
    reads: Mapping[int, tuple[int, ...]]
    """Sensors and results that are read, by own window or operation."""
    readers: Mapping[int, tuple[int, ...]]
    """Own windows and operations, by sensor or result that they read."""
    below: Mapping[int, tuple[int, ...]]
    """Own nodes that read a sensor or result, directly or not, in an order of computing."""
    parts: Mapping[int, tuple[int, ...]]
    """Sensors and results that an input of an own node is made of, as often as it has them."""
    windows: Mapping[int, tuple[int, ...]]
    """Own windows, by stream that is cut."""
    length_us: Mapping[int, int]
    """Length, by own window."""
    slide_us: Mapping[int, int]
    """Slide, by own window."""
    steps_us: Mapping[int, frozenset[int]]
    """Distances of the stamps at which a reader learns more, by sensor or result that it reads.

    A window learns more when one of its ends is passed; an operation, whenever its input does.
    """


def share_of(placement: Placement, worker: int) -> Share:
    """Return the part of a worker."""
    graph, nodes = placement.graph, placement.graph.nodes
    hosted = sorted(placement.hosts[worker])
    before = frozenset[int]().union(*placement.hosts[:worker])
    own = tuple([each for each in graph.computed if placement.worker[each] == worker])
    reads = {each: graph.streams(each) for each in own}
    readers = _by_key((stream, each) for each in own for stream in reads[each])
    spans = {each: span for each in own if (span := nodes[each].span) is not None}
    slide_us = {each: span.slide_ms * MILLISECOND_US for each, span in spans.items()}
    return Share(
        graph,
        {nodes[each].sensor: each for each in hosted},
        frozenset(nodes[each].sensor for each in hosted if each not in before),
        own,
        reads,
        readers,
        {stream: _reached(stream, readers) for stream in readers},
        {each: _parts(nodes, each) for number in own for each in nodes[number].inputs},
        _by_key((nodes[each].inputs[0], each) for each in spans),
        {each: span.length_ms * MILLISECOND_US for each, span in spans.items()},
        slide_us,
        {
            stream: frozenset(slide_us.get(each, 1) for each in numbers)
            for stream, numbers in readers.items()
        },
    )


def _by_key(pairs: Iterable[tuple[int, int]]) -> dict[int, tuple[int, ...]]:
    found: dict[int, list[int]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in found.items()}


def _parts(nodes: Sequence[Node], number: int) -> tuple[int, ...]:
    """Return the sensors and results that an input is made of, as often as it has them."""
    kind = nodes[number].kind
    if kind == CONSTANT:
        return ()
    return nodes[number].inputs if kind == UNION else (number,)


def _reached(stream: int, readers: Mapping[int, Iterable[int]]) -> tuple[int, ...]:
    """Return everything that reads a stream, directly or not, in an order of computing."""
    found: set[int] = set()
    waiting = [stream]
    while waiting:
        new = set(readers.get(waiting.pop(), ())) - found
        found |= new
        waiting.extend(new)
    return tuple(sorted(found))


class Notice(NamedTuple):
    """A message about a window or an operation, from its worker to another one."""

    node: int
    point: Point | None
    """A result; ``None`` if the known part of the stream grows without one."""
    until_us: int | None
    """Stamp until which the stream is known; ``None`` if more of its results follow."""


class Rise(NamedTuple):
    """Growth of the known part of a window or an operation."""

    node: int
    stream: Stream
    """New tuples, known until the same stamp as the whole stream."""

    def notices(self) -> list[Notice]:
        """Return the notices for readers: one for each result, or one without a result."""
        points, until_us = self.stream.points, self.stream.until_us
        if not points:
            return [Notice(self.node, None, until_us)]
        last = len(points) - 1
        return [
            Notice(self.node, point, until_us if number == last else None)
            for number, point in enumerate(points)
        ]


Effect: TypeAlias = Rejected | Rise
NOTHING: Sequence[Effect] = ()


class Log:
    """The received part of a stream, without tuples that every reader here has taken."""

    __slots__ = ("due_us", "last_us", "points", "until_us")

    def __init__(self, until_us: int) -> None:
        self.points: list[Point] = []
        """Tuples by stamp and value."""
        self.until_us = until_us
        """Stamp below which every tuple has arrived."""
        self.last_us = -1
        """Stamp of the last result of another worker."""
        self.due_us = 0
        """Stamp until which the stream must be known before any reader knows more."""

    def between(self, since_us: int, until_us: int) -> list[Point]:
        """Return the tuples from one stamp to before another one."""
        first = bisect_left(self.points, (since_us,))
        return self.points[first : bisect_left(self.points, (until_us,), first)]

    def forget(self, before_us: int) -> None:
        """Drop the tuples below a stamp."""
        del self.points[: bisect_left(self.points, (before_us,))]


class WorkerState(NamedTuple):
    """The memory of a worker; by node, unless noted otherwise."""

    clocks: dict[str, Clock]
    """Clocks by sensor."""
    logs: dict[int, Log]
    """Sensors and results that are read here."""
    slices: dict[int, Slices]
    """Slices by the stream that is cut."""
    next_us: dict[int, int]
    """First end of a window that has not been passed."""
    latest: dict[int, Latest]
    """Latest values of the inputs of an operation."""
    known_us: dict[int, int]
    """Stamp until which an own window or operation is known."""


class Worker:
    """One worker, which takes inputs and computes its share."""

    def __init__(
        self, config: ScriptConfig, placement: Placement, number: int, rules: Rules = RULES
    ) -> None:
        self.share = share = share_of(placement, number)
        """The part of the graph that the worker computes."""
        self._rules = rules
        self._intake = Intake(config, rules, share.sensors)
        self._state = _at_first(share, self._intake, rules)
        self.known_us = self._least_known_us()
        """Stamp below which all results of the worker are known."""

    # ----------------------------------------------------------------------------------- inputs

    def take(self, event: Event, floor_us: int = 0) -> Sequence[Effect]:
        """Take the next arrival of a sensor that is hosted here.

        Before it, silence has moved the watermark of the sensor up to the floor.

        Raises ``ValueError`` with one sentence for an event time outside 0 to 2^61.
        """
        sensor = event.key
        reason = self._intake.why_not(event, floor_us)
        number = self.share.sensors[sensor]
        log = self._state.logs.get(number)
        if log is not None and reason is None:
            insort(log.points, (event.event_time_us, event.value))
        rejected: Sequence[Effect] = NOTHING
        if reason and sensor in self.share.says:
            rejected = (Rejected(event.seq, reason),)
        found = self._rise(sensor)
        return [*rejected, *found] if found else rejected

    def _rise(self, sensor: str) -> Sequence[Effect]:
        """Compute what follows from the watermark of a sensor."""
        number = self.share.sensors[sensor]
        log = self._state.logs.get(number)
        until_us = self._state.clocks[sensor].watermark_us
        if log is None or until_us <= log.until_us:
            return NOTHING
        log.until_us = until_us
        if until_us < log.due_us:
            return NOTHING
        steps_us = self.share.steps_us[number]
        log.due_us = min([(until_us // step_us + 1) * step_us for step_us in steps_us])
        return self._follow({number}, self.share.below[number])

    def hear(self, notice: Notice) -> Sequence[Effect]:
        """Take a notice of another worker, perhaps a second time."""
        node, point, until_us = notice
        log = self._state.logs[node]
        if point is not None and point[0] > log.last_us:
            log.last_us = point[0]
            log.points.append(point)
        if until_us is None or until_us <= log.until_us:
            return NOTHING
        log.until_us = until_us
        return self._follow({node}, self.share.below[node])

    def end_batch(self, floors_us: Mapping[str, int] = NO_FLOORS) -> Sequence[Effect]:
        """End a micro-batch, at which some sensors are idle; some identities may be forgotten."""
        found: list[Effect] = []
        for sensor in sorted(floors_us.keys() & self.share.sensors.keys()):
            self._intake.raise_to(sensor, floors_us[sensor])
            found += self._rise(sensor)
        self._intake.forget()
        return found

    def flush(self) -> Sequence[Effect]:
        """End the streams of all sensors together."""
        logs = self._state.logs
        for clock in self._state.clocks.values():
            clock.watermark_us = END_US
        risen = {number for number in self.share.sensors.values() if number in logs}
        for number in risen:
            logs[number].until_us = END_US
        return self._follow(risen, self.share.own)

    # -------------------------------------------------------------------------------- checkpoints

    def saved(self) -> WorkerState:
        """Return the contents of a checkpoint."""
        return deepcopy(self._state)

    def restore(self, saved: WorkerState) -> None:
        """Forget everything and continue from a checkpoint."""
        self._state = deepcopy(saved)
        self._intake.clocks = self._state.clocks
        self.known_us = self._least_known_us()

    # ---------------------------------------------------------------------------- what follows

    def _follow(self, risen: set[int], below: Iterable[int]) -> list[Effect]:
        """Compute what follows from streams that grew; ``below`` is in order of computing."""
        logs, known_us = self._state.logs, self._state.known_us
        found: list[Effect] = []
        computed: list[int] = []
        for number in below:
            if risen.isdisjoint(self.share.reads[number]):
                continue
            stream = self._new_of(number)
            if stream is None:
                continue
            known_us[number] = stream.until_us
            if number in logs:
                logs[number].points += stream.points
                logs[number].until_us = stream.until_us
            risen.add(number)
            computed.append(number)
            found.append(Rise(number, stream))
        if computed:
            self._forget(computed)
            self.known_us = self._least_known_us()
        return found

    def _new_of(self, number: int) -> Stream | None:
        """Return the new part of a window or operation; ``None`` if its known part did not grow."""
        node, state, rules = self.share.graph.nodes[number], self._state, self._rules
        if node.span is None:
            inputs_us = [self._until_us(each) for each in node.inputs]
            since_us, until_us = state.known_us[number], until_us_of(node, inputs_us, rules)
            if until_us <= since_us:
                return None
            latest = state.latest[number]
            points = {each: self._between(each, since_us, until_us) for each in latest}
            return operation(node, latest, points, until_us, rules)
        (source,) = node.inputs
        source_us, from_us = self._until_us(source), state.next_us[number]
        if source_us < from_us:
            return None  # no end of the window has been passed
        slices = state.slices[source]
        slices.take(self._between(source, slices.until_us, source_us), source_us)
        slide_us = self.share.slide_us[number]
        state.next_us[number] = (source_us // slide_us + 1) * slide_us
        return window(node, slices, from_us, rules)

    def _until_us(self, number: int) -> int:
        """Return the stamp until which an input is known."""
        logs = self._state.logs
        return min([logs[part].until_us for part in self.share.parts[number]], default=END_US)

    def _between(self, number: int, since_us: int, until_us: int) -> Sequence[Point]:
        """Return the tuples of an input, in order."""
        logs = self._state.logs
        parts = [logs[part].between(since_us, until_us) for part in self.share.parts[number]]
        return parts[0] if len(parts) == 1 else sorted([point for part in parts for point in part])

    def _forget(self, computed: Iterable[int]) -> None:
        """Drop closed slices, and what all readers of some nodes' inputs have taken."""
        share, state = self.share, self._state
        for stream in {each for number in computed for each in share.reads[number]}:
            readers = share.readers[stream]
            state.logs[stream].forget(min([self._taken_us(each) for each in readers]))
        windows = [number for number in computed if number in share.slide_us]
        for source in {share.graph.nodes[number].inputs[0] for number in windows}:
            ends = [(state.next_us[each], share.length_us[each]) for each in share.windows[source]]
            state.slices[source].forget(min([end_us - length_us for end_us, length_us in ends]))

    def _taken_us(self, number: int) -> int:
        """Return the stamp until which a window or operation has taken its inputs."""
        share, state = self.share, self._state
        if number in share.slide_us:
            return state.slices[share.graph.nodes[number].inputs[0]].until_us
        return state.known_us[number]

    def _least_known_us(self) -> int:
        return min(self._state.known_us.values(), default=END_US)


def _at_first(share: Share, intake: Intake, rules: Rules) -> WorkerState:
    """Return the memory of a worker before its first input."""
    graph, nodes = share.graph, share.graph.nodes
    known_us, spans, rates = known_at_first(graph, rules), graph.spans(), graph.per_hour
    cuttings = {each: cutting_of(rules, spans[each], rates[each]) for each in share.windows}
    operations = [each for each in share.own if nodes[each].span is None]
    return WorkerState(
        clocks=intake.clocks,
        logs={stream: Log(known_us[stream]) for stream in share.readers},
        slices={each: Slices(cutting, rules) for each, cutting in cuttings.items()},
        next_us=dict(share.slide_us),
        latest={each: first_values(nodes[each], nodes) for each in operations},
        known_us={each: known_us[each] for each in share.own},
    )
