"""The machine of a worker, which the simulation asks when the worker has served an item.

Rules of this file:

* The machine decides everything about scripts: which sensors a worker hosts, which arrivals it
  admits, its findings, and the readers of its messages. The simulation decides when the machine is
  asked, the cost, and how messages travel.
* How far silence has moved the watermarks of sensors is known at the log, which sees all arrivals.
  It comes with an arrival of the sensor, and with the end of a micro-batch.
* A worker that fails is restored, and gets its items since then again. So it may hear a message a
  second time, which then changes nothing.

The model's worker is one machine. The operator of the Spark side is another one: ``take`` keeps an
arrival for the micro-batch and answers nothing, ``end_batch`` gives all of them to the stateful
processor and answers what was found, ``flush`` and ``hear`` are micro-batches of their own. Its
workers also decide which arrivals are admitted. A message is a block of bytes for one other worker,
with results of several streams; its sender numbers its messages, so that a reader can skip one that
it had before.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from model.script.graph import compile_graph
from model.script.machine import Effect, Notice, Worker, WorkerState
from model.script.placement import Placement
from model.script.rules import RULES, Rules
from model.script.run import Records
from model.script.silence import Silences
from model.vocabulary import Event, ScriptConfig, Step
from model.vocabulary.script.config import END_US, Rejected
from sim.script.placements import find_placement


class Message(NamedTuple):
    """A message from one worker to another."""

    reader: int
    """Number of the worker that receives it."""
    content: object
    """Content, which only the machine of that worker reads."""
    stamps_us: tuple[int, ...] = ()
    """Stamps of the results in it; without results it says how far a stream is known."""


class Finding(NamedTuple):
    """One finding of a worker."""

    steps: Sequence[Step] = ()
    """Steps that are recorded."""
    messages: Sequence[Message] = ()
    """Messages to other workers."""
    stamp_us: int | None = None
    """Stamp of the computed result; ``None`` if the finding is no result."""
    is_last: bool = False
    """Whether the finding follows only from the end of the stream."""


class ScriptMachine(Protocol):
    """One worker."""

    @property
    def known_us(self) -> int:
        """Stamp before which this worker has all results."""
        ...

    def take(self, event: Event, floor_us: int) -> Sequence[Finding]:
        """Take one arrival of a sensor that the worker hosts; return its findings, in order.

        Before it, the watermark of the sensor is at least the floor, because it was silent.
        """
        ...

    def hear(self, content: object) -> Sequence[Finding]:
        """Take a message of another worker; return the findings, in order."""
        ...

    def end_batch(self, floors_us: Mapping[str, int]) -> Sequence[Finding]:
        """End a micro-batch, with the floors of idle sensors; return the findings, in order."""
        ...

    def flush(self) -> Sequence[Finding]:
        """End the stream; return the findings, in order."""
        ...

    def saved(self) -> object:
        """Return the content of a checkpoint."""
        ...

    def restore(self, saved: object) -> None:
        """Restore the state of a checkpoint; forget everything else."""
        ...


class CompiledScripts(Protocol):
    """A set of workflows, compiled for its workers."""

    @property
    def hosts(self) -> Sequence[frozenset[str]]:
        """Sensors whose tuples each worker is sent."""
        ...

    @property
    def readers(self) -> Sequence[frozenset[int]]:
        """Workers to which each worker sends results."""
        ...

    def machine(self, worker: int) -> ScriptMachine:
        """Return the machine of a worker."""
        ...

    def silences(self) -> Silences:
        """Return what the log knows of silent sensors, before the first arrival."""
        ...


MachineOf: TypeAlias = Callable[[ScriptConfig, str], CompiledScripts]
"""Function from a query and the name of a placement to the compiled scripts."""


@dataclass(frozen=True, slots=True)
class ModelScripts:
    """The model's workers as :class:`CompiledScripts`."""

    config: ScriptConfig
    placement: Placement
    rules: Rules = RULES

    @property
    def hosts(self) -> Sequence[frozenset[str]]:
        """Sensors whose tuples each worker is sent."""
        nodes = self.placement.graph.nodes
        return [frozenset(nodes[each].sensor for each in at) for at in self.placement.hosts]

    @property
    def readers(self) -> Sequence[frozenset[int]]:
        """Workers to which each worker sends results."""
        found: list[set[int]] = [set() for _ in self.placement.hosts]
        for number, readers in self.placement.readers.items():
            found[self.placement.worker[number]].update(readers)
        return [frozenset(each) for each in found]

    def machine(self, worker: int) -> ScriptMachine:
        """Return the machine of a worker."""
        return ModelScriptMachine(
            Worker(self.config, self.placement, worker, self.rules), self.placement
        )

    def silences(self) -> Silences:
        """Return what the log knows of silent sensors, before the first arrival."""
        return Silences(self.config, self.rules)


def compile_scripts(config: ScriptConfig, way: str, rules: Rules = RULES) -> ModelScripts:
    """Compile the scripts of a query as the model does; ``way`` is the name of a placement."""
    placement = find_placement(way)(compile_graph(config, rules), config, rules)
    return ModelScripts(config, placement, rules)


class ModelScriptMachine:
    """The model's worker as a :class:`ScriptMachine`."""

    __slots__ = ("_readers", "_records", "_worker")

    def __init__(self, worker: Worker, placement: Placement) -> None:
        self._worker = worker
        self._readers = placement.readers
        self._records = Records(placement.graph)

    @property
    def known_us(self) -> int:
        """Stamp before which this worker has all results."""
        return self._worker.known_us

    def take(self, event: Event, floor_us: int) -> Sequence[Finding]:
        """Take one arrival of a sensor that the worker hosts; return its findings, in order."""
        found = self._worker.take(event, floor_us)
        return [*self._findings(found)] if found else ()

    def hear(self, content: object) -> Sequence[Finding]:
        """Take a message of another worker; return the findings, in order."""
        assert isinstance(content, Notice)
        return [*self._findings(self._worker.hear(content))]

    def end_batch(self, floors_us: Mapping[str, int]) -> Sequence[Finding]:
        """End a micro-batch, with the floors of idle sensors; return the findings, in order."""
        return [*self._findings(self._worker.end_batch(floors_us))]

    def flush(self) -> Sequence[Finding]:
        """End the stream; return the findings, in order."""
        return [*self._findings(self._worker.flush())]

    def saved(self) -> object:
        """Return the content of a checkpoint."""
        return self._worker.saved()

    def restore(self, saved: object) -> None:
        """Restore the state of a checkpoint; forget everything else."""
        assert isinstance(saved, WorkerState)
        self._worker.restore(saved)

    def _findings(self, found: Iterable[Effect]) -> Iterator[Finding]:
        records = self._records
        for each in found:
            if isinstance(each, Rejected):
                yield Finding((each,))
                continue
            node, stream = each
            if stream.undefined:
                yield Finding(records.undefined(node, sorted(stream.undefined)))
            readers, is_last = self._readers.get(node, ()), stream.until_us == END_US
            for notice in each.notices():
                point = notice.point
                if point is not None:
                    stamp_us = point[0]
                    messages = [Message(reader, notice, (stamp_us,)) for reader in readers]
                    yield Finding(records.results(node, point), messages, stamp_us, is_last)
                elif readers:
                    yield Finding((), [Message(reader, notice) for reader in readers])
