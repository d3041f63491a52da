"""One worker and one micro-batch: compute what is known now and was not known before.

Rules of this file:

* A stream is a log of tuples and a stamp until which the log is known. A reader takes the tuples
  between the stamp until which it has read and the stamp until which all that it reads is known.
  So neither the order of arrival nor micro-batches can change a result.
* Results of other workers come as tuples and stamps, and are read like any other stream.
* Tuples that no reader will look at again are not kept.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from model.vocabulary.script.config import END_US
from model.vocabulary.script.graph import CONSTANT
from model.vocabulary.script.plan import Share
from model.vocabulary.script.slices import Span
from spark_impl.runtime.arrays import Ints
from spark_impl.runtime.histories import require_later
from spark_impl.script.admission import LATE, Arrivals, Clock, admit
from spark_impl.script.arithmetic import NO_TUPLES, Tuples, operate
from spark_impl.script.silence import Course, Pieces, Timeline
from spark_impl.script.slices import Folds, Slices, add_tuples, known_until_us, prune

_NONE = np.empty(0, np.int64)


class Log(NamedTuple):
    """Tuples of a stream that some reader has not read yet, ordered by stamp."""

    tuples: Tuples = NO_TUPLES
    source_id: Ints = _NONE
    """Identities of the tuples of a sensor."""
    until_us: int = 0
    """Stamp until which the stream is known: no earlier tuple will be added."""

    def between(self, since_us: int, until_us: int) -> Tuples:
        """Return the tuples with ``since_us <= stamp < until_us``."""
        ts, values = self.tuples
        low, high = np.searchsorted(ts, (since_us, until_us))
        return Tuples(ts[low:high], values[low:high])

    def from_(self, since_us: int) -> "Log":
        """Return the log without the tuples before a stamp."""
        low = int(np.searchsorted(self.tuples.ts, since_us))
        if not low:
            return self
        ts, values = self.tuples
        return Log(Tuples(ts[low:], values[low:]), self.source_id[low:], self.until_us)

    def with_(self, tuples: Tuples, until_us: int, source_id: Ints | None = None) -> "Log":
        """Return the log with more tuples; those of a sensor have an identity."""
        if not len(tuples.ts):
            return self._replace(until_us=until_us)
        ts = np.concatenate((self.tuples.ts, tuples.ts))
        values = np.concatenate((self.tuples.values, tuples.values))
        more = np.zeros(len(tuples.ts), np.int64) if source_id is None else source_id
        ids = np.concatenate((self.source_id, more))
        if np.any(ts[1:] < ts[:-1]):
            order = np.argsort(ts, kind="stable")
            ts, values, ids = ts[order], values[order], ids[order]
        return Log(Tuples(ts, values), ids, until_us)


class State(NamedTuple):
    """The state of a worker between micro-batches; nodes without a value have the default."""

    logs: Mapping[int, Log] = {}
    """Logs of sensors, results of other workers, and own results that are read here."""
    clocks: Mapping[int, Clock] = {}
    """The progress of sensors."""
    slices: Mapping[int, Slices] = {}
    """Slices, by the stream that is cut."""
    latest: Mapping[int, Mapping[int, float]] = {}
    """The latest value of every input that has had one, by operation."""
    known_us: Mapping[int, int] = {}
    """Stamp until which a window or operation is known."""
    timeline: Timeline = Timeline()
    """The arrival clock of all sensors, if sensors may be idle."""
    seq: int = -1
    """Highest arrival number that the worker was sent."""


class Message(NamedTuple):
    """Results of one worker for another one."""

    tuples: Tuples
    until_us: int


class Given(NamedTuple):
    """The input of a worker in a micro-batch."""

    arrivals: Mapping[int, Arrivals]
    """Arrivals, by sensor."""
    messages: Mapping[int, Message]
    """Results of other workers, by window or operation."""
    flush: bool
    pieces: Pieces
    """The clocks of all sensors' arrivals, if sensors may be idle."""
    unasked: int
    """Number of arrivals that go to no worker, for the first worker; 0 for the others."""


class Rejections(NamedTuple):
    """Arrivals of one sensor that take part in nothing."""

    seq: Ints
    source_id: Ints
    ts: Ints
    reason: Ints
    """Places of the reasons in :data:`spark_impl.script.admission.REASONS`."""


class Taken(NamedTuple):
    """Numbers of arrivals of the sensors whose first host is the worker."""

    unasked: int = 0
    """Arrivals that go to no worker; the first one answers for them."""
    refused: int = 0
    late: int = 0
    redelivered: int = 0
    admitted: int = 0
    opened: int = 0
    """Tuples at or above the watermark of their sensor afterwards, minus those before."""


class Found(NamedTuple):
    """The output of a worker in a micro-batch."""

    results: Mapping[int, Tuples]
    """Tuples that are known now, by window or operation."""
    undefined: Mapping[int, Ints]
    """Stamps without a finite result, by window or operation."""
    messages: Mapping[int, Message]
    """Results for other workers, by window or operation."""
    rejected: Mapping[int, Rejections]
    """Rejected arrivals, by sensor."""
    known_us: int
    """All results of the worker before this stamp are known."""
    held_by: str | None
    """The sensor with the lowest watermark; ``None`` without sensors and at the end."""
    wm_us: int
    """The watermark of this sensor; ``END_US`` without one."""
    taken: Taken


def advance(share: Share, state: State, given: Given) -> tuple[State, Found]:
    """Process a micro-batch: take in its input, and compute everything that follows from it."""
    step = _Step(share, state)
    step.take_in(given)
    for number in share.computed:
        step.compute(number)
    return step.after(), step.found()


class _Step:
    """A state on its way through a micro-batch."""

    def __init__(self, share: Share, state: State) -> None:
        self._share = share
        self._graph = share.plan.graph
        self._logs = dict(state.logs)
        self._clocks = dict(state.clocks)
        self._slices = dict(state.slices)
        self._latest = dict(state.latest)
        self._known_us = dict(state.known_us)
        self._timeline = state.timeline
        self._seq = state.seq
        self._folds: dict[int, Folds] = {}
        self._results: dict[int, Tuples] = {}
        self._undefined: dict[int, Ints] = {}
        self._messages: dict[int, Message] = {}
        self._rejected: dict[int, Rejections] = {}
        self._account = Taken(opened=-self._open_tuples())

    def take_in(self, given: Given) -> None:
        """Take in arrivals, results of other workers, and the end of the streams."""
        if given.arrivals:
            require_later(min(int(each.seq[0]) for each in given.arrivals.values()), self._seq)
            self._seq = max(int(each.seq[-1]) for each in given.arrivals.values())
        self._account = self._account._replace(unasked=given.unasked)
        course = Course(self._timeline, given.pieces)
        self._timeline = course.after
        for number, arrivals in given.arrivals.items():
            self._admit(number, arrivals, course)
        if len(given.pieces.first):
            self._seq = max(self._seq, int(given.pieces.last[-1]))
            self._follow()
        for number, message in given.messages.items():
            log, (ts, values) = self._logs.get(number, Log()), message.tuples
            new = ts >= log.until_us  # a superseded driver may send older ones again
            until_us = max(message.until_us, log.until_us)
            self._logs[number] = log.with_(Tuples(ts[new], values[new]), until_us)
        if given.flush:
            for number in self._share.sensors:
                self._clocks[number] = self._clocks.get(number, Clock())._replace(wm_us=END_US)
                self._logs[number] = self._logs.get(number, Log())._replace(until_us=END_US)

    def _admit(self, number: int, arrivals: Arrivals, course: Course) -> None:
        log = self._logs.get(number, Log())
        open_ids = log.source_id[np.searchsorted(log.tuples.ts, log.until_us) :]
        clock = self._clocks.get(number, Clock())
        if arrivals.moments is not None:
            placed = course.place(arrivals.seq, arrivals.moments)
            arrivals = arrivals._replace(moments=placed)
        found = admit(arrivals, open_ids, clock, self._share.plan.config, course.after.origin_us)
        self._clocks[number] = found.clock
        self._logs[number] = log.with_(found.tuples, found.clock.wm_us, found.source_id)
        if number not in self._share.first_host_of:
            return
        if len(found.rejected):
            seq, source_id, ts = (each[found.rejected] for each in arrivals[:3])
            self._rejected[number] = Rejections(seq, source_id, ts, found.reasons)
        took, late = self._account, int(np.count_nonzero(found.reasons == LATE))
        self._account = took._replace(
            refused=took.refused + len(found.rejected) - late,
            late=took.late + late,
            redelivered=took.redelivered + found.redelivered,
            admitted=took.admitted + len(found.source_id),
        )

    def _open_tuples(self) -> int:
        """Return the number of tuples at or above the watermark of their sensor."""
        logs = (self._logs[number] for number in self._share.first_host_of if number in self._logs)
        return sum(
            len(each.tuples.ts) - int(np.searchsorted(each.tuples.ts, each.until_us))
            for each in logs
        )

    def _follow(self) -> None:
        """Move the watermarks of silent sensors."""
        for number in self._share.sensors:
            before = self._clocks.get(number, Clock())
            after = before.follow(self._timeline, self._share.plan.config)
            if after.wm_us != before.wm_us:
                self._clocks[number] = after
                self._logs[number] = self._logs.get(number, Log())._replace(until_us=after.wm_us)

    def compute(self, number: int) -> None:
        """Compute a window or an operation; everything that it reads is up to date."""
        before_us = self._known_us.get(number, 0)
        span = self._graph.nodes[number].span
        if span is not None:
            tuples, until_us = self._window(number, span, before_us)
        else:
            tuples, until_us = self._operation(number, before_us)
        if until_us == before_us:
            return
        self._known_us[number] = until_us
        good = np.isfinite(tuples.values)
        if not good.all():
            self._undefined[number] = tuples.ts[~good]
            tuples = Tuples(tuples.ts[good], tuples.values[good])
        if len(tuples.ts) and number in self._share.plan.statements:
            self._results[number] = tuples
        if number in self._share.sent:
            self._messages[number] = Message(tuples, until_us)
        if number in self._share.readers:
            self._logs[number] = self._logs.get(number, Log()).with_(tuples, until_us)

    def _window(self, number: int, span: Span, before_us: int) -> tuple[Tuples, int]:
        node = self._graph.nodes[number]
        source = node.inputs[0]
        source_us = self._until_us(source)
        if source not in self._folds:
            self._folds[source] = self._taken(source, source_us)
        until_us = known_until_us(span, source_us)
        if until_us == before_us:
            return NO_TUPLES, until_us
        return Tuples(*self._folds[source].windows(node.op, span)), until_us

    def _taken(self, source: int, until_us: int) -> Folds:
        """Return the slices of a stream with all of its tuples before ``until_us``."""
        before = self._slices.get(source, Slices())
        fresh = self._between(source, before.until_us, until_us)
        cutting, squares = (
            self._share.plan.slices[source].cutting,
            self._share.needs_squares(source),
        )
        self._slices[source] = add_tuples(before, cutting, *fresh, until_us, squares)
        return Folds(self._slices[source], before.until_us)

    def _operation(self, number: int, before_us: int) -> tuple[Tuples, int]:
        node = self._graph.nodes[number]
        streams = [each for each in dict.fromkeys(node.inputs) if not self._is_number(each)]
        until_us = min(map(self._until_us, streams))
        if until_us == before_us:
            return NO_TUPLES, until_us
        constants = {
            each: self._graph.nodes[each].value for each in node.inputs if self._is_number(each)
        }
        fresh = {each: self._between(each, before_us, until_us) for each in streams}
        tuples, self._latest[number] = operate(node, constants, self._latest.get(number, {}), fresh)
        return tuples, until_us

    def _is_number(self, number: int) -> bool:
        return self._graph.nodes[number].kind == CONSTANT

    def _until_us(self, stream: int) -> int:
        return min(self._logs.get(part, Log()).until_us for part in self._graph.parts(stream))

    def _between(self, stream: int, since_us: int, until_us: int) -> Tuples:
        """Return tuples of a stream; those of a union in any order, with repetitions."""
        parts = [
            self._logs.get(part, Log()).between(since_us, until_us)
            for part in self._graph.parts(stream)
        ]
        if len(parts) == 1:
            return parts[0]
        return Tuples(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def after(self) -> State:
        """Return the state to keep."""
        nodes = self._graph.nodes
        for source in self._folds:
            spans = [nodes[each].span for each in self._share.windows[source]]
            self._slices[source] = prune(self._slices[source], [each for each in spans if each])
        logs = {
            number: log.from_(min([log.until_us, *self._read_us(number)]))
            for number, log in self._logs.items()
        }
        return State(
            logs,
            self._clocks,
            self._slices,
            self._latest,
            self._known_us,
            self._timeline,
            self._seq,
        )

    def _read_us(self, stream: int) -> Iterable[int]:
        """Yield for each reader of a stream the stamp until which it has read."""
        for reader in self._share.readers.get(stream, ()):
            node = self._graph.nodes[reader]
            if node.span is not None:
                yield self._slices.get(node.inputs[0], Slices()).until_us
            else:
                yield self._known_us.get(reader, 0)

    def found(self) -> Found:
        """Return the output of the micro-batch."""
        stamps = (self._known_us.get(each, 0) for each in self._share.computed)
        known_us = min(stamps, default=END_US)
        return Found(
            self._results,
            self._undefined,
            self._messages,
            self._rejected,
            known_us,
            *self._held_by(),
            self._account._replace(opened=self._account.opened + self._open_tuples()),
        )

    def _held_by(self) -> tuple[str | None, int]:
        """Return the sensor with the lowest watermark, the first by name of equals."""
        stands = [
            (self._clocks.get(number, Clock()).wm_us, self._graph.nodes[number].sensor)
            for number in self._share.sensors
        ]
        wm_us, sensor = min(stands, default=(END_US, ""))
        return (None, END_US) if wm_us == END_US else (sensor, wm_us)
