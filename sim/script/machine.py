"""The machine of a worker, which the simulation asks when the worker has served an item.

Rules of this file:

* The plan says which sensors a worker hosts and what it computes. The machine decides which
  arrivals it admits, its findings, and the readers of its messages. The simulation decides when
  the machine is asked, the cost, and how messages travel.
* How far silence has moved the watermarks of sensors is known at the log, which sees all arrivals.
  It comes with an arrival of the sensor, and with the end of a micro-batch.
* A worker that fails is restored from its checkpoint, and gets all later items again. So it may
  hear a message a second time, which then changes nothing.

``sim/script/worker.py`` is one machine. The operator of the Spark side is another one: ``take``
keeps an arrival for the micro-batch and answers nothing, ``end_batch`` gives all of them to the
stateful processor and answers what was found, ``flush`` and ``hear`` are micro-batches of their
own. Its workers also decide which arrivals are admitted. A message is a block of bytes for one
other worker, with results of several streams; its sender numbers its messages, so that a reader can
skip one that it has had before.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from model.vocabulary import Event, Step
from model.vocabulary.script.plan import ScriptPlan
from sim.timed_room import Restorable


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
    """True if the finding follows only from the end of the stream."""


class ScriptMachine(Restorable, Protocol):
    """One worker."""

    @property
    def known_us(self) -> int:
        """Stamp before which this worker has all results."""

    def take(self, event: Event, floor_us: int) -> Sequence[Finding]:
        """Take one arrival of a sensor that the worker hosts; return its findings, in order.

        Before it, the watermark of the sensor is at least the floor, because it was silent.
        """

    def hear(self, content: object) -> Sequence[Finding]:
        """Take a message of another worker; return the findings, in order."""

    def end_batch(self, floors_us: Mapping[str, int], tuples: int) -> Sequence[Finding]:
        """End a micro-batch, with the floors of idle sensors; return the findings, in order.

        The log had so many tuples then. Tuples that come by several ways may have overtaken its
        mark: those with numbers from there on belong to a later micro-batch.
        """

    def flush(self) -> Sequence[Finding]:
        """End the stream; return the findings, in order."""


MachineOf: TypeAlias = Callable[[ScriptPlan, int], ScriptMachine]
"""Function from the plan of a query and the number of a worker to the worker's machine."""
