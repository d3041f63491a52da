"""Something for every (window, key) that is still wanted, given up in the order of windows."""

from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeAlias, TypeVar

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
        if key in by_key:
            return by_key[key]
        thing = by_key[key] = self._make()
        return thing

    def keys(self, index: int) -> Collection[str]:
        """Keys for which there is something in a window."""
        return self._by_index.get(index, {}).keys()

    def take(self, first: int) -> list[tuple[int, str, T]]:
        """Take out what belongs to windows before ``first``, in the order (index, key)."""
        taken = []
        while self._next and self._next[0] < first:
            index = heappop(self._next)
            by_key = self._by_index.pop(index)
            taken += [(index, key, by_key[key]) for key in sorted(by_key)]
        return taken

    def windows(self) -> Iterator[tuple[int, str, T]]:
        """Everything there is."""
        for index, by_key in self._by_index.items():
            for key, thing in by_key.items():
                yield index, key, thing


class OpenWindows(ByWindow[Values]):
    """The values in open windows, kept window by window: a tuple may join any of its own."""

    __slots__ = ()

    def __init__(self, windows: Iterable[tuple[int, str, Values]] = ()) -> None:
        super().__init__(list, windows)

    def join(self, indices: Iterable[int], key: str, value: float) -> None:
        """A tuple joins these windows."""
        for index in indices:
            self.at(index, key).append(value)
