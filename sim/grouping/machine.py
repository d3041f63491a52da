"""The machine of room ``grouping``, which the simulation calls for senders and instances.

Rules of this file:

* The machine decides everything about tuples; the simulation decides when it is called.
* The model's senders and instances are one machine, the routers of the Spark side another.

The second machine (``straggler/rooms/grouping/spark_machine.py``) is a thin adapter of the
functions that a Spark job calls for a whole micro-batch:

* ``route`` calls ``router.choose`` for a single tuple.
* ``end_batch`` calls ``router.route`` for the sender's part of the micro-batch, from the state
  before it. The routes must be the same; the state of this call, summary included, is kept.
* ``rebalance`` calls ``windows.rebalance`` and, for every sender, ``router.begin_window``; it
  returns the heavy keys of the new table.
* ``serve`` aggregates rows, some at a time (``instances.aggregate``). ``results`` aggregates the
  others and merges the answers (``instances.merge_answers``).
* ``saved`` returns the table and the senders' states after their last micro-batches, as the store
  of the stream holds them, and the keys that were routed since.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

from model.vocabulary import Event, GroupingConfig, Step
from sim.timed_room import Restorable


class GroupingMachine(Restorable, Protocol):
    """All senders of a stream, and the instances behind them.

    A checkpoint holds the senders alone; an instance has one after each tuple that it serves.
    """

    def route(self, sender: int, key: str) -> int:
        """Route the next tuple of a sender; return its instance."""

    def end_batch(self, sender: int) -> object:
        """End a sender's part of a micro-batch, all of which has been routed."""

    def is_full(self, tuples: int) -> bool:
        """Return whether a window with so many tuples ends with this micro-batch."""

    def rebalance(self, times_us: tuple[int, ...], tiers: tuple[int, ...]) -> Sequence[Step]:
        """Begin a window with the times and tiers of instances; return the visible steps.

        All senders have ended the last micro-batch of the window before.
        """

    def serve(self, instance: int, window: int, event: Event) -> Sequence[Step]:
        """Let an instance take in a tuple of a window; return the visible steps."""

    def results(self) -> Iterable[Step]:
        """Return partial aggregates and answers, after everything has been served."""


MachineOf: TypeAlias = Callable[[GroupingConfig], GroupingMachine]
"""Function from a configuration to the machine of a run."""
