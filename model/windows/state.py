"""State of windows and corrections: what a task keeps, what a user can query, what is pending.

Rules of this file:

* State decides nothing; decisions are in ``rules``, the steps of a correction in ``correction``.
* ``Store`` and ``History`` survive a crash, a ``Plan`` does not.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import heappop, heappush
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from model.vocabulary import Event, Step
from model.vocabulary.windows import Final, Late, Result, WindowQuery

T = TypeVar("T")

# --------------------------------------------------------------------------------- open windows

BEFORE_TIME_US = -(1 << 63)
"""Clock of a task that has accepted nothing, smaller than every event time."""


class ByWindow(Generic[T]):
    """One entry for each (window index, key), created on first access.

    Windows end in the order of their indices, so entries are taken out in that order. Entries must
    be handed in by index, too.
    """

    __slots__ = ("_by_index", "_make", "_next")

    def __init__(self, make: Callable[[], T], entries: Iterable[tuple[int, str, T]] = ()) -> None:
        self._make = make
        self._by_index: dict[int, dict[str, T]] = {}
        for index, key, entry in entries:
            self._by_index.setdefault(index, {})[key] = entry
        self._next = list(self._by_index)

    def at(self, index: int, key: str) -> T:
        """Return the entry of a window and key; create it if there is none."""
        by_key = self._by_index.get(index)
        if by_key is None:
            by_key = self._by_index[index] = {}
            heappush(self._next, index)
        if key in by_key:
            return by_key[key]
        entry = by_key[key] = self._make()
        return entry

    def keys(self, index: int) -> Collection[str]:
        """Return the keys that have an entry in a window."""
        return self._by_index.get(index, {}).keys()

    def take(self, first: int) -> list[tuple[int, str, T]]:
        """Remove and return the entries of windows before ``first``, in the order (index, key)."""
        taken = []
        while self._next and self._next[0] < first:
            index = heappop(self._next)
            by_key = self._by_index.pop(index)
            taken += [(index, key, by_key[key]) for key in sorted(by_key)]
        return taken

    def entries(self) -> Iterator[tuple[int, str, T]]:
        """Yield every entry with its window index and key."""
        for index, by_key in self._by_index.items():
            for key, entry in by_key.items():
                yield index, key, entry


Values: TypeAlias = list[float]
SavedWindows: TypeAlias = tuple[tuple[int, str, tuple[float, ...]], ...]
"""Open windows as (window index, key, sorted values), in order."""


class OpenWindows(ByWindow[Values]):
    """The values in each open window."""

    __slots__ = ()

    def __init__(self, saved: SavedWindows = ()) -> None:
        super().__init__(list, ((index, key, list(values)) for index, key, values in saved))

    def save(self) -> SavedWindows:
        """Return the open windows as an immutable value."""
        saved = ((index, key, tuple(sorted(values))) for index, key, values in self.entries())
        return tuple(sorted(saved))

    def join(self, indices: Iterable[int], key: str, value: float) -> None:
        """Add the value of a tuple to these windows."""
        for index in indices:
            self.at(index, key).append(value)


# ----------------------------------------------------------------------------------- corrections


class Window(NamedTuple):
    """One window of one task and key."""

    task: int
    start_us: int
    key: str


class Pair(NamedTuple):
    """A late (tuple, window) pair."""

    task: int
    start_us: int
    key: str
    source_id: int
    event_time_us: int

    @property
    def window(self) -> Window:
        """The window for which the tuple was late."""
        return Window(self.task, self.start_us, self.key)


class Answer(NamedTuple):
    """The current answer of a window; revision 0 was written by the stream."""

    value: float
    n: int
    revision: int
    batch: int


class Plan(NamedTuple):
    """A correction under way: what it will write and clear, and how far it is."""

    task: int
    batch: int
    reason: str
    pairs: tuple[Pair, ...]
    answers: tuple[tuple[Window, float, int], ...]
    """(window, value, n) from the history as it was when the plan was made."""
    written: int = 0
    is_cleared: bool = False


class History:
    """The values of the tuples that one task accepted, each once, for look-up by window.

    They are kept in buckets of one slide, so that a window reads ceil(W / s) buckets.
    """

    __slots__ = ("_buckets", "_identities", "_is_keyed", "_windows")

    def __init__(self, config: WindowQuery) -> None:
        self._windows = config.windows
        self._is_keyed = config.keyed
        self._identities: set[int] = set()
        self._buckets: dict[tuple[int, str], list[tuple[int, float]]] = defaultdict(list)
        """Event times and values, by (bucket, key)."""

    def add(self, event: Event) -> None:
        """Keep the first accepted delivery of an identity; ignore later ones."""
        if event.source_id not in self._identities:
            self._identities.add(event.source_id)
            bucket = event.event_time_us // self._windows.slide_us
            key = event.key if self._is_keyed else ""
            self._buckets[bucket, key].append((event.event_time_us, event.value))

    def values(self, start_us: int, key: str) -> list[float]:
        """Return the values in the window that starts at ``start_us``."""
        end_us = start_us + self._windows.size_us
        first, last = self._windows.last_index(start_us), self._windows.last_index(end_us - 1)
        found = [
            each
            for bucket in range(first, last + 1)
            for each in self._buckets.get((bucket, key), ())
        ]
        return [value for time_us, value in found if time_us < end_us]


class Pending:
    """The set P of one task: late pairs that no correction has covered yet."""

    __slots__ = ("newest_us", "oldest_us", "pairs")

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        self.pairs: dict[Pair, None] = {}
        self.oldest_us = self.newest_us = 0
        for pair in pairs:
            self.add(pair)

    def add(self, pair: Pair) -> None:
        """Add a pair; adding it again changes nothing."""
        event_time_us = pair.event_time_us
        self.oldest_us = min(self.oldest_us, event_time_us) if self.pairs else event_time_us
        self.newest_us = max(self.newest_us, event_time_us) if self.pairs else event_time_us
        self.pairs[pair] = None

    def without(self, pairs: Collection[Pair]) -> "Pending":
        """Return the pending pairs without ``pairs``."""
        gone = set(pairs)
        return Pending(pair for pair in self.pairs if pair not in gone)


class Store:
    """Current answers, which users query, pending pairs of each task, and incomplete windows."""

    __slots__ = ("answers", "incomplete", "pending")

    def __init__(
        self, answers: Iterable[tuple[Window, Answer]] = (), pairs: Iterable[Pair] = ()
    ) -> None:
        self.answers = dict(answers)
        self.incomplete: set[Window] = set()
        """Windows of arrivals that were rejected."""
        self.pending: dict[int, Pending] = {}
        for pair in pairs:
            self.pending.setdefault(pair.task, Pending()).add(pair)

    def all_pending(self) -> Iterator[Pair]:
        """Yield the pending pairs of all tasks."""
        for pending in self.pending.values():
            yield from pending.pairs

    def record(self, step: Step) -> None:
        """Keep an answer or a late pair that the stream emitted; ignore other steps."""
        if isinstance(step, Result):
            window = Window(step.task, step.start_us, step.key)
            self.answers[window] = Answer(step.value, step.n_rcv, 0, step.batch)
        elif isinstance(step, Late):
            self.pending.setdefault(step.task, Pending()).add(Pair(*step[:5]))

    def final(self) -> list[Final]:
        """Return the answer of every window, marked exact if it counts all rows of the window."""
        inexact = {pair.window for pair in self.all_pending()} | self.incomplete
        return [
            Final(*window, answer.value, answer.n, answer.revision, window not in inexact)
            for window, answer in self.answers.items()
        ]
