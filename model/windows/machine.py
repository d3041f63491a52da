"""The stream side of one task, common to all windowed rooms (docs/slack.md, section 2).

Rules of this file:

* No clock, no I/O, no Spark. One arrival in, the steps it causes out, in the specified order.
* Only the watermark decides whether a window is closed, never the set of open windows.
* The stream never writes a closed window again: only a correction does.
"""

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from model.vocabulary import Event, Step
from model.vocabulary.windows import Late, Rejected, Result
from model.windows.query import Query, aggregate_of
from model.windows.rules import WindowRules
from model.windows.state import OpenWindows, SavedWindows, Values
from model.windows.upstream import Insertion

QueryT = TypeVar("QueryT", bound=Query)


class SavedTask(Protocol):
    """The part of a saved task that all rooms share."""

    @property
    def t_max_us(self) -> int:
        """The largest event time accepted so far."""
        ...

    @property
    def wm_us(self) -> int:
        """The watermark."""
        ...

    @property
    def accepted(self) -> tuple[tuple[int, int], ...]:
        """(identity, event time), sorted."""
        ...

    @property
    def open_windows(self) -> SavedWindows:
        """Values of the open windows."""
        ...


class WindowTask(Generic[QueryT]):
    """Clock, accepted identities and open windows of one task.

    A room decides how the watermark moves; this part refuses, closes and routes. Batches are
    numbers that are only written into steps.
    """

    __slots__ = (
        "_aggregate",
        "accepted",
        "config",
        "first_open",
        "n_accepted",
        "number",
        "open",
        "rules",
        "t_max_us",
        "windows",
        "wm_us",
    )

    def __init__(self, config: QueryT, number: int, rules: WindowRules[QueryT]) -> None:
        self.config = config
        self.number = number
        self.rules = rules
        self.windows = config.windows
        self._aggregate = aggregate_of(config)

    def restore_stream(self, saved: SavedTask, n_accepted: int) -> None:
        """Forget everything and continue from ``saved``."""
        self.t_max_us = saved.t_max_us
        self.wm_us = saved.wm_us
        self.n_accepted = n_accepted
        self.accepted = dict(saved.accepted)
        self.open = OpenWindows(saved.open_windows)
        self.first_open = self.rules.first_open(self.windows, self.wm_us)

    def refuse(self, event: Event, batch: int) -> list[Step] | None:
        """Return the steps of an arrival that is not accepted; None if it is accepted."""
        reason = self.rules.reject(self.config, event)
        if reason is not None:
            return [Rejected(self.number, event.seq, event.source_id, batch, reason)]
        return [] if self.rules.is_redelivery(self, event) else None

    def close(self, batch: int, wait_us: int, steps: list[Step]) -> list[tuple[int, str, Values]]:
        """Answer and return the windows that the watermark has passed."""
        self.first_open = self.rules.first_open(self.windows, self.wm_us)
        closed = self.open.take(self.first_open)
        number, wm_us, start_us = self.number, self.wm_us, self.windows.start_us
        for index, key, values in closed:
            value, n_rcv = self._aggregate(values), len(values)
            steps.append(Result(number, start_us(index), key, batch, value, n_rcv, wait_us, wm_us))
        return closed

    def insert(self, insertion: Insertion, batch: int) -> list[Step]:
        """Take a watermark from upstream; only rooms with upstream operators send any."""
        raise NotImplementedError

    def route(self, event: Event, batch: int, steps: list[Step]) -> Sequence[int]:
        """Put an accepted arrival into its open windows; return the windows it is late for."""
        route, event_us = self.rules.route, event.event_time_us
        key = event.key if self.config.keyed else ""
        joined, late = [], []
        for index in self.windows.indices(event_us):
            joins, is_late = route(self, index, event)
            if joins:
                joined.append(index)
            if is_late:
                late.append(index)
                start_us = self.windows.start_us(index)
                steps.append(Late(self.number, start_us, key, event.source_id, event_us, batch))
        self.open.join(joined, key, event.value)
        return late
