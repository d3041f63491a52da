"""Simulated workers of scripts whose machines run the operator of the Spark side.

Rules of this file:

* A micro-batch is processed when it ends, with its own tuples, in the order of their numbers. Each
  message, and the flush, is a micro-batch of its own.
  State and messages are the bytes that Spark stores and sends.
* Messages between two workers are numbered: a reader skips a message that it already had.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from model.vocabulary import Event
from model.vocabulary.script.config import END_US, Result
from model.vocabulary.script.plan import ScriptPlan
from sim.script.machine import Finding, Message
from spark_impl.runtime.systems import arrivals_table
from spark_impl.script.encoding import decode_messages
from spark_impl.script.processor import ARRIVALS, FLUSH, MESSAGE
from spark_impl.script.router import Router
from spark_impl.script.system import WorkerInProcess


class _Block(NamedTuple):
    """A message from one worker to another."""

    sender: int
    number: int
    data: bytes


class SparkMachine:
    """One worker of the pipeline in process."""

    def __init__(self, plan: ScriptPlan, worker: int) -> None:
        self.known_us = 0
        """Stamp before which all results of this worker exist (us)."""
        self._worker = worker
        self._router = Router(plan)
        self._running = WorkerInProcess(plan, worker)
        self._events: list[Event] = []  # of the micro-batch, and of later ones
        self._sent: dict[int, int] = {}  # messages, by reader
        self._heard: dict[int, int] = {}  # messages, by sender

    def take(self, event: Event, _floor_us: int) -> Sequence[Finding]:
        """Keep an arrival until its micro-batch is over."""
        self._events.append(event)
        return ()

    def hear(self, content: object) -> Sequence[Finding]:
        """Process a message, unless it is a duplicate."""
        assert isinstance(content, _Block)
        if content.number < self._heard.get(content.sender, 0):
            return ()
        self._heard[content.sender] = content.number + 1
        return self._process(MESSAGE, content.data)

    def end_batch(self, _floors_us: Mapping[str, int], tuples: int) -> Sequence[Finding]:
        """Process the micro-batch, unless it has nothing for this worker."""
        own = [event for event in self._events if event.seq < tuples]
        self._events = [event for event in self._events if event.seq >= tuples]
        return self._process_events(own)

    def flush(self) -> Sequence[Finding]:
        """End the stream."""
        assert not self._events, "tuples wait for the end of their micro-batch"
        return self._process(FLUSH, None)

    def saved(self) -> object:
        """Return the worker's state between two micro-batches, with its numbers of messages."""
        events = tuple(self._events)
        return self._running.saved(), dict(self._sent), dict(self._heard), self.known_us, events

    def restore(self, saved: object) -> None:
        """Resume from a state; forget the attempt at the current micro-batch."""
        assert isinstance(saved, tuple)
        self._process_events(self._events)
        state, sent, heard, self.known_us, events = saved
        self._running.restore(state)
        self._sent, self._heard, self._events = dict(sent), dict(heard), [*events]

    def _process_events(self, events: Sequence[Event]) -> Sequence[Finding]:
        if not events:
            return ()
        rows = arrivals_table(sorted(events, key=attrgetter("seq")))
        return self._process(ARRIVALS, self._router.blocks(self._router.asked(rows))[self._worker])

    def _process(self, kind: int, block: bytes | None) -> Sequence[Finding]:
        output = self._running.process((kind, block))
        self.known_us = output.known_us
        results = [step for step in output.steps if isinstance(step, Result)]
        others = [step for step in output.steps if not isinstance(step, Result)]
        return [Finding(others), *self._computed(results), *self._sent_findings(output.messages)]

    def _computed(self, results: Sequence[Result]) -> Iterator[Finding]:
        """Yield the results of each stamp as one piece of work."""
        stamp = attrgetter("ts_us")
        for stamp_us, found in groupby(sorted(results, key=stamp), stamp):
            yield Finding([*found], stamp_us=stamp_us, is_last=self.known_us == END_US)

    def _sent_findings(self, messages: Sequence[tuple[int, bytes]]) -> Iterator[Finding]:
        """Yield one finding for each message to another worker."""
        for reader, data in messages:
            number = self._sent.get(reader, 0)
            self._sent[reader] = number + 1
            streams = decode_messages([data]).values()
            stamps_us = [stamp_us for each in streams for stamp_us in each.tuples.ts.tolist()]
            block = _Block(self._worker, number, data)
            yield Finding(messages=[Message(reader, block, tuple(stamps_us))])
