"""The machine of a worker: what the simulation asks when a worker has served something.

Rules of this file:

* The machine decides everything about scripts: which sensors a worker hosts, which arrivals it lets
  in, what it finds out and which workers it tells. The simulation decides when it is asked, what
  that costs, and how messages travel.
* A worker that fails is restored, and is given again what came since. So a message may be heard a
  second time, and then changes nothing.

The model's worker is one machine. The operator of the Spark side is another one: ``take`` keeps an
arrival for the micro-batch and answers nothing, ``end_batch`` gives all of them to the stateful
processor and answers what was found, ``flush`` and ``hear`` are micro-batches of their own. Its
admission is that of its workers, too. A message is a block of bytes for one other worker, with
results of several streams; its sender numbers its messages, so that a reader can pass over one that
it had before.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from model.script.graph import compile_graph
from model.script.machine import Effect, Notice, Worker, WorkerState
from model.script.placement import Placement
from model.script.rules import RULES, Rules
from model.script.run import Records
from model.vocabulary import Event, ScriptConfig, Step
from model.vocabulary.script import END_US, Rejected
from sim.script.placements import placing


class Message(NamedTuple):
    """What a worker tells another one."""

    reader: int
    """The worker that it is for."""
    content: object
    """Read by the machine of that worker, and by nobody else."""
    stamps_us: tuple[int, ...] = ()
    """Stamps of the results in it; without any it is a notice that a stream is known further."""


class Finding(NamedTuple):
    """One thing that a worker has found out."""

    steps: Sequence[Step] = ()
    """What is recorded of it."""
    messages: Sequence[Message] = ()
    """What other workers are told of it."""
    stamp_us: int | None = None
    """Stamp of the result that was computed; ``None``: it is none."""
    is_last: bool = False
    """Whether it took the end of the stream to know it."""


class Machine(Protocol):
    """One worker."""

    @property
    def known_us(self) -> int:
        """Stamp before which all results of this worker are there."""
        ...

    def take(self, event: Event) -> Sequence[Finding]:
        """Take one arrival of a sensor that the worker hosts; return what follows, in order."""
        ...

    def hear(self, content: object) -> Sequence[Finding]:
        """Take a message of another worker; return what follows, in order."""
        ...

    def end_batch(self) -> Sequence[Finding]:
        """End a micro-batch; return what follows, in order."""
        ...

    def flush(self) -> Sequence[Finding]:
        """End the stream; return what follows, in order."""
        ...

    def saved(self) -> object:
        """Return what a checkpoint holds."""
        ...

    def restore(self, saved: object) -> None:
        """Forget everything and go on from a checkpoint."""
        ...


class CompiledScripts(Protocol):
    """A set of workflows, compiled for its workers."""

    @property
    def hosts(self) -> Sequence[frozenset[str]]:
        """By worker: the sensors whose tuples it is sent."""
        ...

    @property
    def readers(self) -> Sequence[frozenset[int]]:
        """By worker: the other workers that it sends results."""
        ...

    def machine(self, worker: int) -> Machine:
        """Return the machine of a worker."""
        ...


MachineOf: TypeAlias = Callable[[ScriptConfig, str], CompiledScripts]
"""Compiles the scripts of a query, given the name of a placement."""


@dataclass(frozen=True, slots=True)
class ModelScripts:
    """The model's workers as :class:`CompiledScripts`."""

    config: ScriptConfig
    placement: Placement
    rules: Rules = RULES

    @property
    def hosts(self) -> Sequence[frozenset[str]]:
        """By worker: the sensors whose tuples it is sent."""
        nodes = self.placement.graph.nodes
        return [frozenset(nodes[each].sensor for each in at) for at in self.placement.hosts]

    @property
    def readers(self) -> Sequence[frozenset[int]]:
        """By worker: the other workers that it sends results."""
        found: list[set[int]] = [set() for _ in self.placement.hosts]
        for number, readers in self.placement.readers.items():
            found[self.placement.worker[number]].update(readers)
        return [frozenset(each) for each in found]

    def machine(self, worker: int) -> Machine:
        """Return the machine of a worker."""
        return ModelMachine(Worker(self.config, self.placement, worker, self.rules), self.placement)


def compile_scripts(config: ScriptConfig, way: str, rules: Rules = RULES) -> ModelScripts:
    """Compile the scripts of a query as the model does, placed in a way that has this name."""
    placement = placing(way)(compile_graph(config, rules), config, rules)
    return ModelScripts(config, placement, rules)


class ModelMachine:
    """The model's worker as a :class:`Machine`."""

    __slots__ = ("_readers", "_records", "_worker")

    def __init__(self, worker: Worker, placement: Placement) -> None:
        self._worker = worker
        self._readers = placement.readers
        self._records = Records(placement.graph)

    @property
    def known_us(self) -> int:
        """Stamp before which all results of this worker are there."""
        return self._worker.known_us

    def take(self, event: Event) -> Sequence[Finding]:
        """Take one arrival of a sensor that the worker hosts; return what follows, in order."""
        found = self._worker.take(event)
        return [*self._findings(found)] if found else ()

    def hear(self, content: object) -> Sequence[Finding]:
        """Take a message of another worker; return what follows, in order."""
        assert isinstance(content, Notice)
        return [*self._findings(self._worker.hear(content))]

    def end_batch(self) -> Sequence[Finding]:
        """End a micro-batch; return what follows, in order."""
        return [*self._findings(self._worker.end_batch())]

    def flush(self) -> Sequence[Finding]:
        """End the stream; return what follows, in order."""
        return [*self._findings(self._worker.flush())]

    def saved(self) -> object:
        """Return what a checkpoint holds."""
        return self._worker.saved()

    def restore(self, saved: object) -> None:
        """Forget everything and go on from a checkpoint."""
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
            for told in each.notices():
                point = told.point
                if point is not None:
                    stamp_us = point[0]
                    messages = [Message(reader, told, (stamp_us,)) for reader in readers]
                    yield Finding(records.results(node, point), messages, stamp_us, is_last)
                elif readers:
                    yield Finding((), [Message(reader, told) for reader in readers])
