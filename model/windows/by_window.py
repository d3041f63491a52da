"""Something for every (window, key) that is still wanted, given up in the order of windows."""

from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeAlias, TypeVar

from model.vocabulary import WindowSpec

T = TypeVar("T")
Values: TypeAlias = list[float]


class ByWindow(Generic[T]):
    """One thing for each (window index, key), made when it is asked for first.

    Windows end in the order of their indices, so those that end first are taken out first.
    """

    __slots__ = ("_by_index", "_make", "_next")

    def __init__(self, make: Callable[[], T], things: Iterable[tuple[int, str, T]] = ()) -> None:
        self._make = make
        self._by_index: dict[int, dict[str, T]] = {}
        for index, key, thing in things:
            self._by_index.setdefault(index, {})[key] = thing
        self._next = list(self._by_index)
        heapify(self._next)

    def at(self, index: int, key: str) -> T:
        """What there is for a window and key."""
        by_key = self._by_index.get(index)
        if by_key is None:
            by_key = self._by_index[index] = {}
            heappush(self._next, index)
        thing = by_key.get(key)
        if thing is None:
            thing = by_key[key] = self._make()
        return thing

    def spread(self, indices: Iterable[int], key: str) -> list[T]:
        """What there is for each of these windows and a key."""
        found = []
        for index in indices:
            by_key = self._by_index.get(index)
            thing = None if by_key is None else by_key.get(key)
            found.append(self.at(index, key) if thing is None else thing)
        return found

    def keys(self, index: int) -> Collection[str]:
        """Keys for which there is something in a window."""
        return self._by_index.get(index, {}).keys()

    def take(self, first: int) -> Iterator[tuple[int, str, T]]:
        """Take out what belongs to windows before ``first``, in the order (index, key)."""
        while self._next and self._next[0] < first:
            index = heappop(self._next)
            by_key = self._by_index.pop(index)
            for key in sorted(by_key):
                yield index, key, by_key[key]

    def __iter__(self) -> Iterator[tuple[int, str, T]]:
        for index, by_key in self._by_index.items():
            for key, thing in by_key.items():
                yield index, key, thing


class ByPane(dict[tuple[int, str], list[Values]]):
    """Values of all windows of a (pane number, key), made when they are asked for first.

    Only to be asked for panes of which no window has been taken out.
    """

    LIMIT = 1_000
    """Of panes that are remembered at a time, for no more than speed."""

    def __init__(self, windows: WindowSpec, values: ByWindow[Values]) -> None:
        super().__init__()
        self.pane_us = windows.pane_us
        self._windows = windows
        self._values = values

    def __missing__(self, place: tuple[int, str]) -> list[Values]:
        if len(self) >= self.LIMIT:
            self.clear()
        pane, key = place
        found = self._values.spread(self._windows.indices(pane * self.pane_us), key)
        self[place] = found
        return found
