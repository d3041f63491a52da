"""The machine of a chain: what the simulation asks when a worker takes something from its queue.

Rules of this file:

* The machine decides everything about the chain: who is admitted, what is dropped, sent and told,
  which pairs come out, and when an epoch is over. The simulation decides when it is asked, what
  that costs, and which messages arrive late or twice.
* One machine is a whole chain, because an epoch is saved, begun again, merged and split as a whole.
  It is asked for one worker at a time. What a worker says to another one, it says in messages that
  nobody else reads: a machine has its own kinds of them.

The model's chain is one machine (:mod:`sim.join.model_chain`). The Spark side's workers, chained in
process, are another one (``tests/harness/join_machine.py``): ``begin`` makes a ``Worker`` of each
state in the store; ``admit``, ``receive`` and ``look`` call its ``admit``, its ``receive`` or
nothing, then ``work``, and empty its outbox and its pairs; ``end_intake`` ends the intakes at both
ends; the epoch is over when each worker is ``finished``; ``commit`` puts their states into the
store, and ``resize`` lets the next ``begin`` adopt them by as many workers as are wanted then.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from model.vocabulary import Event, JoinConfig, Step
from sim.join.tuning import ChainTuning
from sim.kernel.disorder import IntArray


class Sent(NamedTuple):
    """A message that leaves a worker."""

    neighbour: int
    """The worker that it is for."""
    message: object
    kind: Literal["block", "ack", "hint"]
    """How it is counted; whatever is neither block nor acknowledgement is a hint."""
    tuples: int = 0


class Found(NamedTuple):
    """Pairs of one query, by the identities of their tuples."""

    query: int
    """Number of the query."""
    r_ids: IntArray
    s_ids: IntArray


class Service(NamedTuple):
    """What a worker did in one service: what leaves at its end, and what it cost."""

    sent: Sequence[Sent] = ()
    found: Sequence[Found] = ()
    tuples: int = 0
    """Tuples that were admitted, taken, sent or dropped."""
    comparisons: int = 0


NOTHING = Service()


class Gauges(NamedTuple):
    """Where a chain stands: what a dashboard shows."""

    held: Sequence[int]
    """Tuples in the stores of each worker."""
    watermark_us: int
    """The lower one of the watermarks of the two streams."""


class Machine(Protocol):
    """A chain of workers that join two streams."""

    def begin(self, epoch: int, *, flush: bool) -> None:
        """Begin an epoch with what the chain held at the last :meth:`commit`.

        An epoch that a failure broke off is begun again; nothing of it counts.
        """

    def admit(self, worker: int, stream: str, events: Sequence[Event]) -> Service:
        """Let arrivals of a stream in at the worker where it enters, or reject them."""
        ...

    def receive(self, worker: int, sender: int, message: object) -> Service:
        """Take a message from a neighbour, perhaps for the second time."""
        ...

    def look(self, worker: int) -> Service:
        """Do what a worker does by itself: drop, send, and tell neighbours what is new."""
        ...

    def end_intake(self) -> None:
        """End the intake of the epoch; every worker will :meth:`look` next."""

    def is_over(self) -> bool:
        """Say whether no worker has anything left to do in the epoch."""
        ...

    def commit(self) -> Sequence[Step]:
        """Keep what the chain holds; return rejections and recorded steps of the epoch."""
        ...

    def resize(self, workers: int) -> Service:
        """Change the number of workers between two epochs; return pairs and tuples that moved."""
        ...

    def set_block_size(self, block_size: int) -> None:
        """Set the largest block, from the next one or from the next epoch on."""

    def is_overdue(self, worker: int, stream: str) -> bool:
        """Say whether tuples of a stream should have left a worker, and wait there."""
        ...

    def gauges(self) -> Gauges:
        """Return where the chain stands."""
        ...


MachineOf: TypeAlias = Callable[[JoinConfig, ChainTuning], Machine]
"""Makes the machine of a chain, given the query and what is asked beside it."""
