"""The stream side of one task, common to all windowed rooms (docs/slack.md, section 2).

Rules of this file:

* No clock, no I/O, no Spark. One arrival in, the steps it causes out, in the specified order.
* Only the watermark decides whether a window is closed, never the set of open windows.
* The stream never writes a closed window again: only a correction does.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from model.vocabulary import Event, Step
from model.vocabulary.windows import Late, Rejected, Result, WindowQuery
from model.windows.aggregates import aggregate_of
from model.windows.rules import Stream, WindowRules
from model.windows.state import BEFORE_TIME_US, OpenWindows, SavedWindows, Values

QueryT = TypeVar("QueryT", bound=WindowQuery)


class SavedStream(NamedTuple):
    """The part of a saved task that all rooms share."""

    t_max_us: int = BEFORE_TIME_US
    wm_us: int = BEFORE_TIME_US
    n_accepted: int = 0
    accepted: tuple[tuple[int, int], ...] = ()
    """(identity, event time), sorted."""
    open_windows: SavedWindows = ()


class Insertion(NamedTuple):
    """A watermark that every task receives, in the order of its tuples."""

    wm_us: int
    slack_us: int
    """Distance of the watermark from the largest event time upstream."""


class Passed(NamedTuple):
    """Result of an arrival that passes upstream."""

    steps: tuple[Step, ...] = ()
    insertion: Insertion | None = None
    """Watermark that the tasks receive before the arrival; None if nothing is inserted."""


Upstream: TypeAlias = Callable[[Event, int], Passed]
"""The operators before the windows: they take an arrival and its batch before the task does."""


class WindowTask(Stream, ABC, Generic[QueryT]):
    """Clock, accepted identities and open windows of one task.

    A room decides how the watermark moves; this part refuses, closes and routes. Batches are
    numbers that are only written into steps.
    """

    __slots__ = ("_aggregate", "n_accepted", "number", "open", "rules")

    config: QueryT

    def __init__(self, config: QueryT, number: int, rules: WindowRules) -> None:
        self.config = config
        self.number = number
        self.rules = rules
        self.windows = config.windows
        self._aggregate = aggregate_of(config)

    def restore_stream(self, saved: SavedStream) -> None:
        """Forget everything that all rooms share and continue from ``saved``."""
        self.t_max_us, self.wm_us, self.n_accepted, accepted, open_windows = saved
        self.accepted = dict(accepted)
        self.open = OpenWindows(open_windows)
        self.first_open = self.rules.first_open(self.windows, self.wm_us)

    def save_stream(self) -> SavedStream:
        """Return what all rooms share, for :meth:`restore_stream`."""
        accepted = tuple(sorted(self.accepted.items()))
        return SavedStream(self.t_max_us, self.wm_us, self.n_accepted, accepted, self.open.save())

    @abstractmethod
    def arrive(self, event: Event, batch: int) -> list[Step]:
        """Take one arrival; return the steps it causes, in order."""

    @abstractmethod
    def flush(self, batch: int) -> list[Step]:
        """Close every window; return the steps."""

    @abstractmethod
    def end_batch(self, batch: int, /) -> Sequence[Step]:
        """Return the steps recorded after a batch with an accepted arrival, or after a flush."""

    def refuse(self, event: Event, batch: int) -> list[Step] | None:
        """Return the steps of an arrival that is not accepted; None if it is accepted."""
        reason = self.rules.reject(event)
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
