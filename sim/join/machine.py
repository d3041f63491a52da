"""The machine of a chain, which the simulation calls when a worker takes a task from its queue.

Rules of this file:

* The machine decides everything about the chain: which tuples are admitted, dropped and sent, which
  pairs come out, and when an epoch is over. The simulation decides when the machine is asked, the
  cost, and which messages arrive late or twice.
* One machine is a whole chain, because an epoch is saved, begun again, merged and split as a whole.
  It is asked for one worker at a time. Workers tell each other everything in messages, of kinds
  that only the machine itself reads.

The model's chain is one machine (:mod:`sim.join.model_chain`). The Spark side's workers, chained in
process, are another one (``straggler/rooms/join/spark_machine.py``): ``begin`` makes a ``Worker``
of each state in the store; ``admit``, ``receive`` and ``look`` call its ``admit``, its ``receive``
or nothing, then ``work``, and empty its outbox and its pairs; ``end_intake`` ends the intakes at
both ends; the epoch is over when each worker is ``finished``; ``commit`` puts their states into the
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
    """Number of the worker that receives it."""
    message: object
    kind: Literal["block", "ack", "hint"]
    """Kind under which it is counted; all but blocks and acknowledgements are hints."""
    tuples: int = 0


class FoundPairs(NamedTuple):
    """Pairs of one query, by the identities of their tuples."""

    query: int
    """Number of the query."""
    r_ids: IntArray
    s_ids: IntArray


class Service(NamedTuple):
    """One service of a worker: the messages and pairs that leave at its end, and its cost."""

    sent: Sequence[Sent] = ()
    found: Sequence[FoundPairs] = ()
    tuples: int = 0
    """Number of tuples that were admitted, taken, sent or dropped."""
    comparisons: int = 0


NOTHING = Service()


class ChainGauges(NamedTuple):
    """Gauges of a chain, as a dashboard shows them."""

    held: Sequence[int]
    """Number of tuples in the stores of each worker."""
    watermark_us: int
    """Lower watermark of the two streams."""


class ChainMachine(Protocol):
    """A chain of workers that join two streams."""

    def begin(self, epoch: int, *, flush: bool) -> None:
        """Begin an epoch with the state of the chain at the last :meth:`commit`.

        An epoch that a failure broke off begins again without its results.
        """

    def admit(self, worker: int, stream: str, events: Sequence[Event]) -> Service:
        """Admit arrivals of a stream at the worker where it enters, or reject them."""

    def receive(self, worker: int, sender: int, message: object) -> Service:
        """Take a message from a neighbour, perhaps for the second time."""

    def look(self, worker: int) -> Service:
        """Let a worker drop and send all that it may, and send hints to its neighbours."""

    def end_intake(self) -> None:
        """End the intake of the epoch; every worker will :meth:`look` next."""

    def is_over(self) -> bool:
        """Return whether all workers are done with the epoch."""

    def commit(self) -> Sequence[Step]:
        """Keep the state of the chain; return rejections and recorded steps of the epoch."""

    def resize(self, workers: int) -> Service:
        """Change the number of workers between two epochs; return pairs and tuples that moved."""

    def set_block_size(self, block_size: int) -> None:
        """Set the largest block, from the next one or from the next epoch on."""

    def gauges(self) -> ChainGauges:
        """Return the gauges of the chain."""


MachineOf: TypeAlias = Callable[[JoinConfig, ChainTuning], ChainMachine]
"""Function from a query and a tuning to the machine of a chain."""
