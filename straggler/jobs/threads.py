"""Several calls at once, none of which may hang."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class HangsError(Exception):
    """A call that did not end in time."""


def map_in_order(
    function: Callable[[T], R], items: Iterable[T], *, threads: int, limit_s: float
) -> Iterator[R]:
    """Yield what a function returns for each item, in order; raise what it raises.

    The threads are not waited for at the end of the program: a call of a user may never return.
    Calls that nobody waits for any more are not begun. Raise :class:`HangsError` if one of them
    lasts longer than the limit.
    """
    todo = list(items)
    results: list[queue.SimpleQueue[tuple[R | None, BaseException | None]]]
    results = [queue.SimpleQueue() for _ in todo]
    numbers = iter(range(len(todo)))
    lock, ended = threading.Lock(), threading.Event()

    def work() -> None:
        while not ended.is_set():
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            try:
                results[number].put((function(todo[number]), None))
            except BaseException as error:
                results[number].put((None, error))

    for _ in range(min(threads, len(todo))):
        threading.Thread(target=work, daemon=True).start()
    try:
        for each in results:
            try:
                value, error = each.get(timeout=limit_s)
            except queue.Empty:
                raise HangsError from None
            if error is not None:
                raise error
            yield value  # type: ignore[misc]  # no error: it is what the function returned
    finally:
        ended.set()
