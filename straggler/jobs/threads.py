"""Several calls at once, none of which may hang."""

from collections.abc import Callable, Iterator, Sequence
from multiprocessing import TimeoutError as TooLateError
from multiprocessing.pool import ThreadPool
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class HangsError(Exception):
    """A call that did not end in time."""


def map_in_order(
    function: Callable[[T], R], items: Sequence[T], *, threads: int, limit_s: float
) -> Iterator[R]:
    """Yield what a function returns for each item, in order; raise what it raises.

    The threads are not waited for at the end of the program: a call of a user may never return.
    Calls that nobody waits for any more are not begun. Raise :class:`HangsError` if one of them
    lasts longer than the limit.
    """
    with ThreadPool(threads) as pool:
        results = pool.imap(function, items)
        for _ in items:
            try:
                yield results.next(limit_s)
            except TooLateError:
                raise HangsError from None
