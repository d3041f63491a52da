"""The machine of the room: what the simulation calls when a sender or an instance does something.

Rules of this file:

* The machine decides everything about tuples; the simulation decides when it is called.
* The model's senders and instances are one machine, the routers of the Spark side another.

The second one is a thin adapter of what a Spark job calls for a whole micro-batch. ``route`` is
``router.choose`` for a single tuple. ``end_batch`` is ``router.route`` for the sender's part of the
micro-batch, from the state that the sender had before it: it has to choose the same instances, and
leaves the state that goes on, summary included. ``rebalance`` is ``windows.rebalanced`` and, for
every sender, ``router.begun``; what it returns is what the new table says of its heavy keys.
``serve`` keeps rows, of which ``results`` makes ``partials.partials``, ``merged`` and ``answers``.
``saved`` is the table with the senders' states after their last micro-batches, as the store of the
stream holds them, and the keys that were routed since.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

from model.vocabulary import Event, GroupingConfig, Step


class Machine(Protocol):
    """All senders of a stream, and the instances behind them."""

    def route(self, sender: int, key: str) -> int:
        """Route the next tuple of a sender; return its instance."""
        ...

    def end_batch(self, sender: int) -> object:
        """End a sender's part of a micro-batch: it has routed all of it."""
        ...

    def is_full(self, tuples: int) -> bool:
        """Say whether a micro-batch ends the window, at whose end it has so many tuples."""
        ...

    def rebalance(self, times_us: tuple[int, ...]) -> Sequence[Step]:
        """Begin a window in which a tuple takes these times; return the steps that can be seen.

        All senders have ended the last micro-batch of the window before.
        """
        ...

    def serve(self, instance: int, window: int, event: Event) -> Sequence[Step]:
        """Let an instance take in a tuple of a window; return the steps that can be seen."""
        ...

    def results(self) -> Iterable[Step]:
        """Return partial aggregates and answers, once everything has been served."""
        ...

    def saved(self) -> object:
        """Return what a checkpoint of the senders holds.

        The instances have no part in it: every tuple that one has served is a checkpoint of it.
        """
        ...

    def restore(self, saved: object) -> None:
        """Let the senders forget everything and go on from a checkpoint."""
        ...


MachineOf: TypeAlias = Callable[[GroupingConfig], Machine]
"""Makes the machine of a run."""
