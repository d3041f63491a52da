"""One worker of a placement: its share of the graph, its state, and what follows from each input.

Source: docs/script.md, sections 4 to 8.

Rules of this file:

* The order of inputs changes no result, as long as each sensor's arrivals and each computation's
  notices come in their order. A repeated notice changes nothing: results of a stream come in the
  order of their stamps, so an old one is recognised.
* A stream is a log of tuples, and a stamp until which it is known. What the new part of a window or
  an operation is, the meaning says (``model/script/meaning.py``).
* No tuple is kept that no node here will read again.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import NamedTuple

from model.script.intake import Clock, Intake
from model.script.meaning import (
    begin_of_us,
    end_after_us,
    operation,
    undefined_times,
    window,
    window_until_us,
)
from model.script.rules import RULES
from model.script.stream import Point, Stream
from model.vocabulary import Event, Step
from model.vocabulary.script.config import END_US, Rejected, Result
from model.vocabulary.script.graph import CONSTANT, SENSOR, Graph
from model.vocabulary.script.plan import ScriptPlan
from sim.script.machine import Finding, Message


class Notice(NamedTuple):
    """A message about a window or an operation, from its worker to another one."""

    node: int
    point: Point | None
    """A result; ``None`` if the known part of the stream grows without one."""
    until_us: int | None
    """Stamp until which the stream is known; ``None`` if more of its results follow."""


class Log:
    """The received part of a stream, without tuples that no reader here needs any more."""

    __slots__ = ("last_us", "points", "until_us")

    def __init__(self, until_us: int) -> None:
        self.points: list[Point] = []
        """Tuples by stamp and value."""
        self.until_us = until_us
        """Stamp below which every tuple has arrived."""
        self.last_us = -1
        """Stamp of the last result of another worker."""

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
    next_us: dict[int, int]
    """First end of a window that has not been passed."""
    latest: dict[int, dict[int, float | None]]
    """Latest values of the inputs of an operation."""
    known_us: dict[int, int]
    """Stamp until which an own window or operation is known."""


class Worker:
    """One worker, which takes inputs and computes its share."""

    def __init__(self, plan: ScriptPlan, number: int) -> None:
        graph, share = plan.graph, plan.share(number)
        self._graph, self._nodes = graph, graph.nodes
        self._sent_to, self._own, self._readers = share.sent, share.computed, share.readers
        self._sensors = {self._nodes[each].sensor: each for each in share.sensors}
        self._first_host_of = share.first_host_of
        self._reads = {each: graph.reads[each] for each in self._own}
        self._below = {each: _reached(each, self._readers) for each in self._readers}
        """Own nodes that read a stream, directly or not, in an order of computing."""
        self._named, self._written = plan.statements, plan.writers
        self._intake = Intake(plan.config, RULES, self._sensors)
        self._state = self._at_first(known_at_first(graph))
        self.known_us = self._least_known_us()
        """Stamp before which this worker has all results."""

    def _at_first(self, known_us: Sequence[int]) -> WorkerState:
        """Return the memory of a worker before its first input."""
        nodes = self._nodes
        spans = {each: nodes[each].span for each in self._own}
        return WorkerState(
            clocks=self._intake.clocks,
            logs={each: Log(known_us[each]) for each in self._readers},
            next_us={
                each: end_after_us(span, 0) for each, span in spans.items() if span is not None
            },
            latest={
                each: {
                    side: nodes[side].value if nodes[side].kind == CONSTANT else None
                    for side in nodes[each].inputs
                }
                for each, span in spans.items()
                if span is None
            },
            known_us={each: known_us[each] for each in self._own},
        )

    def _least_known_us(self) -> int:
        return min(self._state.known_us.values(), default=END_US)

    # ----------------------------------------------------------------------------------- inputs

    def take(self, event: Event, floor_us: int) -> Sequence[Finding]:
        """Take one arrival of a sensor that the worker hosts; return its findings, in order.

        Raises ``ValueError`` with one sentence for an event time outside 0 to 2^61.
        """
        sensor = event.key
        reason = self._intake.admit(event, floor_us)
        log = self._state.logs.get(self._sensors[sensor])
        if log is not None and reason is None:
            insort(log.points, (event.event_time_us, event.value))
        is_said = reason and self._sensors[sensor] in self._first_host_of
        rejected = [Finding((Rejected(event.seq, reason),))] if reason and is_said else []
        return [*rejected, *self._rise(sensor)]

    def hear(self, content: object) -> Sequence[Finding]:
        """Take a notice of another worker, perhaps a second time; return the findings, in order."""
        assert isinstance(content, Notice)
        node, point, until_us = content
        log = self._state.logs[node]
        if point is not None and point[0] > log.last_us:
            log.last_us = point[0]
            log.points.append(point)
        return [] if until_us is None else self._know(node, until_us)

    def end_batch(self, floors_us: Mapping[str, int], _tuples: int) -> Sequence[Finding]:
        """End a micro-batch, with the floors of idle sensors; return the findings, in order."""
        found: list[Finding] = []
        for sensor in sorted(floors_us.keys() & self._sensors.keys()):
            self._intake.raise_to(sensor, floors_us[sensor])
            found += self._rise(sensor)
        self._intake.forget()
        return found

    def flush(self) -> Sequence[Finding]:
        """End the streams of all sensors together; return the findings, in order."""
        for clock in self._state.clocks.values():
            clock.watermark_us = END_US
        risen = {number for number in self._sensors.values() if number in self._state.logs}
        for number in risen:
            self._state.logs[number].until_us = END_US
        return [*self._follow(risen, self._own)]

    # -------------------------------------------------------------------------------- checkpoints

    def saved(self) -> object:
        """Return the content of a checkpoint."""
        return deepcopy(self._state)

    def restore(self, saved: object) -> None:
        """Restore the state of a checkpoint; forget everything else."""
        assert isinstance(saved, WorkerState)
        self._state = deepcopy(saved)
        self._intake.clocks = self._state.clocks
        self.known_us = self._least_known_us()

    # ---------------------------------------------------------------------------- what follows

    def _rise(self, sensor: str) -> Sequence[Finding]:
        """Compute what follows from the watermark of a sensor."""
        return self._know(self._sensors[sensor], self._state.clocks[sensor].watermark_us)

    def _know(self, number: int, until_us: int) -> list[Finding]:
        """Compute what follows when a stream is known until a stamp."""
        log = self._state.logs.get(number)
        if log is None or until_us <= log.until_us:
            return []
        log.until_us = until_us
        return [*self._follow({number}, self._below[number])]

    def _follow(self, risen: set[int], below: Iterable[int]) -> Iterator[Finding]:
        """Compute what follows from streams that grew; ``below`` is in order of computing."""
        logs = self._state.logs
        computed: list[int] = []
        for number in below:
            stream = None if risen.isdisjoint(self._reads[number]) else self._new_of(number)
            if stream is None:
                continue
            self._state.known_us[number] = stream.until_us
            if number in logs:
                logs[number].points += stream.points
                logs[number].until_us = stream.until_us
            risen.add(number)
            computed.append(number)
            yield from self._findings(number, stream)
        for stream_read in {each for number in computed for each in self._reads[number]}:
            logs[stream_read].forget(min(map(self._needs_us, self._readers[stream_read])))
        if computed:
            self.known_us = self._least_known_us()

    def _new_of(self, number: int) -> Stream | None:
        """Return the new part of a window or operation; ``None`` if its known part did not grow."""
        node, state = self._nodes[number], self._state
        known_us = min([state.logs[each].until_us for each in self._reads[number]])
        since_us = self._needs_us(number)
        if node.span is None:
            if known_us <= since_us:
                return None
            latest = state.latest[number]
            points = {each: self._between(each, since_us, known_us) for each in latest}
            return operation(node.op, node.inputs, latest, points, known_us, RULES)
        from_us = state.next_us[number]
        if known_us < from_us:
            return None  # no end of the window has been passed
        state.next_us[number] = end_after_us(node.span, known_us)
        source = Stream(tuple(self._between(node.inputs[0], since_us, known_us)), known_us)
        return window(node.op, node.span, source, from_us)

    def _between(self, number: int, since_us: int, until_us: int) -> Sequence[Point]:
        """Return the tuples of an input, in order."""
        logs = self._state.logs
        parts = [logs[part].between(since_us, until_us) for part in self._graph.parts(number)]
        return parts[0] if len(parts) == 1 else sorted([point for part in parts for point in part])

    def _needs_us(self, number: int) -> int:
        """Return the stamp from which on a window or operation will read tuples."""
        span = self._nodes[number].span
        if span is None:
            return self._state.known_us[number]
        return begin_of_us(span, self._state.next_us[number])

    # -------------------------------------------------------------------------------- findings

    def _findings(self, number: int, stream: Stream) -> Iterator[Finding]:
        """Yield what is recorded and sent of the new part of a window or operation."""
        undefined: list[Step] = [
            step
            for each in self._written[number]
            for step in undefined_times(each.workflow, each.name, stream.undefined)
        ]
        if undefined:
            yield Finding(undefined)
        readers, is_last = self._sent_to.get(number, ()), stream.until_us == END_US
        for position, point in enumerate(stream.points, 1):
            until_us = stream.until_us if position == len(stream.points) else None
            notice = Notice(number, point, until_us)
            messages = [Message(reader, notice, (point[0],)) for reader in readers]
            steps = [
                Result(each.workflow, each.name, *point) for each in self._named.get(number, ())
            ]
            yield Finding(steps, messages, point[0], is_last)
        if readers and not stream.points:
            notice = Notice(number, None, stream.until_us)
            yield Finding((), [Message(reader, notice) for reader in readers])


def known_at_first(graph: Graph) -> list[int]:
    """Return the stamp until which each node is known before the first tuple."""
    until_us: list[int] = []
    for node in graph.nodes:
        least_us = min([until_us[each] for each in node.inputs], default=END_US)
        if node.span is not None:
            least_us = window_until_us(node.span, least_us)
        until_us.append(0 if node.kind == SENSOR else least_us)
    return until_us


def _reached(stream: int, readers: Mapping[int, Iterable[int]]) -> tuple[int, ...]:
    """Return everything that reads a stream, directly or not, in an order of computing."""
    found: set[int] = set()
    waiting = [stream]
    while waiting:
        new = set(readers.get(waiting.pop(), ())) - found
        found |= new
        waiting.extend(new)
    return tuple(sorted(found))
