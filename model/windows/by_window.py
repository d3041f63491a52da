"""Something for every (window, key) that is still wanted, given up in the order of windows."""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from heapq import heapify, heappop, heappush
from math import inf
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

    def join(self, indices: Iterable[int], key: str, _event_us: int, value: float) -> None:
        """A tuple joins these windows."""
        for index in indices:
            self.at(index, key).append(value)


class Panes(dict[int, dict[str, Values]]):
    """The values in open windows, kept once for all windows that share a pane: by number and key.

    The same as :class:`OpenWindows`, but for the order of values, where a tuple joins all of its
    windows that have not been taken out.
    """

    def __init__(self, windows: WindowSpec, first: int) -> None:
        super().__init__()
        self.pane_us = windows.pane_us
        self._windows = windows
        self._first = first
        """Windows before it have been taken out."""
        self._numbers: list[int] = []
        """Of the panes that there are, ascending."""

    def __missing__(self, number: int) -> dict[str, Values]:
        insort(self._numbers, number)
        by_key: dict[str, Values] = defaultdict(list)
        self[number] = by_key
        return by_key

    def join(self, indices: Collection[int], key: str, event_us: int, value: float) -> None:
        """A tuple joins all of its windows that are still there, or none."""
        if indices:
            self[event_us // self.pane_us][key].append(value)

    def take(self, first: int) -> list[tuple[int, str, Values]]:
        """Take out what belongs to windows before ``first``, in the order (index, key)."""
        if first <= self._first:
            return []
        taken = self._before(first)
        self._first = first
        gone = bisect_left(self._numbers, self._windows.start_us(first) // self.pane_us)
        for number in self._numbers[:gone]:
            del self[number]
        del self._numbers[:gone]
        return taken

    def windows(self) -> list[tuple[int, str, Values]]:
        """Everything there is, in the same order."""
        return self._before(inf)

    def _before(self, first: float) -> list[tuple[int, str, Values]]:
        windows, pane_us, numbers = self._windows, self.pane_us, self._numbers
        index, begin = self._first, 0
        before: list[tuple[int, str, Values]] = []
        while index < first:
            begin = bisect_left(numbers, windows.start_us(index) // pane_us, begin)
            if begin == len(numbers):
                break
            earliest = windows.first_index(numbers[begin] * pane_us)
            if index < earliest:
                # For many windows there may be nothing, and between them what is in none.
                index = earliest
                continue
            end = bisect_left(numbers, windows.end_us(index) // pane_us, begin)
            found: dict[str, Values] = {}
            for number in numbers[begin:end]:
                for key, values in self[number].items():
                    if key in found:
                        found[key] += values
                    else:
                        found[key] = values.copy()
            before += [(index, key, found[key]) for key in sorted(found)]
            index += 1
        return before
