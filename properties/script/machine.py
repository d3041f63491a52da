"""The kernel of the Spark side as the machines of simulated workers of scripts.

Rules of this file:

* A micro-batch is worked on when it is over; a message is a micro-batch of its own, and so is the
  end. State and messages are the bytes that Spark stores and sends.
* Messages between two workers are numbered: a reader passes over one that it had before.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from model.vocabulary import Event, ScriptConfig
from model.vocabulary.script import END_US, Rejected, Result, Undefined
from model.vocabulary.settings import require
from sim.script.machine import Finding, Machine, Message
from sim.script.placements import PLAN
from spark_impl.script import encoding
from spark_impl.script.admission import REASONS, Waiting, waiting_of
from spark_impl.script.kernel import Found, Given, State, advance
from spark_impl.script.plan import Plan, compile_plan


class SparkScripts:
    """Scripts as the Spark side compiles and places them."""

    def __init__(self, config: ScriptConfig, way: str) -> None:
        require(way == PLAN, "placement", way, f"{PLAN!r}: the Spark side has no other")
        self._plan, self._waiting = compile_plan(config), waiting_of(config)

    @property
    def hosts(self) -> Sequence[frozenset[str]]:
        """By worker: the sensors whose tuples it is sent."""
        hosts = self._plan.hosts.items()
        workers = range(self._plan.workers)
        return [frozenset(sensor for sensor, at in hosts if each in at) for each in workers]

    @property
    def readers(self) -> Sequence[frozenset[int]]:
        """By worker: the other workers that it sends results."""
        shares = map(self._plan.share, range(self._plan.workers))
        return [frozenset[int]().union(*share.sent.values()) for share in shares]

    def machine(self, worker: int) -> Machine:
        """Return the machine of a worker."""
        return SparkMachine(self._plan, self._waiting, worker)


class _Block(NamedTuple):
    """A message of one worker to another one."""

    sender: int
    number: int
    data: bytes


class SparkMachine:
    """One worker of the pipeline in process."""

    def __init__(self, plan: Plan, waiting: Waiting, worker: int) -> None:
        self.known_us = 0
        """Stamp before which all results of this worker are there."""
        self._plan, self._waiting, self._share = plan, waiting, plan.share(worker)
        self._state = encoding.kept(State())
        self._arrivals: list[tuple[int, int, int, int, float]] = []  # of the micro-batch
        self._sent: dict[int, int] = {}  # messages, by reader
        self._heard: dict[int, int] = {}  # messages, by sender

    def take(self, event: Event) -> Sequence[Finding]:
        """Keep an arrival until its micro-batch is over."""
        number = self._plan.numbers[event.key]
        row = (number, event.seq, event.source_id, event.event_time_us, event.value)
        self._arrivals.append(row)
        return ()

    def hear(self, content: object) -> Sequence[Finding]:
        """Process a message that was not here before."""
        assert isinstance(content, _Block)
        if content.number < self._heard.get(content.sender, 0):
            return ()
        self._heard[content.sender] = content.number + 1
        return self._advance(Given(messages=encoding.messages_of([content.data])))

    def end_batch(self) -> Sequence[Finding]:
        """Process the micro-batch, which may have nothing for this worker."""
        arrivals, self._arrivals = np.array(self._arrivals, encoding.ARRIVAL), []
        if not len(arrivals):
            return ()
        return self._advance(Given(encoding.arrivals_of([arrivals.tobytes()])))

    def flush(self) -> Sequence[Finding]:
        """End the stream."""
        return self._advance(Given(flush=True))

    def saved(self) -> object:
        """Return what the state store holds, between two micro-batches."""
        assert not self._arrivals
        return self._state, dict(self._sent), dict(self._heard), self.known_us

    def restore(self, saved: object) -> None:
        """Forget everything and go on from a state."""
        assert isinstance(saved, tuple)
        self._state, sent, heard, self.known_us = saved
        self._sent, self._heard, self._arrivals = dict(sent), dict(heard), []

    def _advance(self, given: Given) -> Sequence[Finding]:
        before = encoding.restored(self._share, self._state)
        after, found = advance(self._share, self._waiting, before, given)
        self._state, self.known_us = encoding.kept(after), found.known_us
        return [*self._recorded(found, after.known_us), *self._messages(found)]

    def _recorded(self, found: Found, known_us: Mapping[int, int]) -> Iterator[Finding]:
        refused = zip(found.rejected.tolist(), found.reasons.tolist(), strict=True)
        yield Finding([Rejected(seq, REASONS[reason]) for seq, reason in refused])
        for number, stamps in found.undefined.items():
            writers = self._plan.writers[number]
            yield Finding(
                [
                    Undefined(each.workflow, each.name, at)
                    for at in stamps.tolist()
                    for each in writers
                ]
            )
        for number, tuples in found.results.items():
            named, is_last = self._plan.statements[number], known_us[number] == END_US
            for at, value in zip(tuples.ts.tolist(), tuples.values.tolist(), strict=True):
                yield Finding(
                    [Result(each.workflow, each.name, at, value) for each in named], (), at, is_last
                )

    def _messages(self, found: Found) -> Iterator[Finding]:
        """Yield what all readers are told: a message each."""
        sent = self._share.sent
        for reader in sorted({to for number in found.messages for to in sent[number]}):
            chosen = {n: each for n, each in found.messages.items() if reader in sent[n]}
            number = self._sent.get(reader, 0)
            self._sent[reader] = number + 1
            block = _Block(self._share.worker, number, encoding.message(chosen))
            stamps_us = [at for each in chosen.values() for at in each.tuples.ts.tolist()]
            yield Finding((), [Message(reader, block, tuple(stamps_us))])
