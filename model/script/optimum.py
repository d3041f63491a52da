"""The best there is, by trying everything: what placements are measured against.

Rules of this file:

* Nothing of ``placement`` is used but what a placement costs. Workers are alike, so the first
  piece goes to the first worker, and a new worker is the next one only.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction


def assignments(pieces: int, workers: int) -> Iterator[tuple[int, ...]]:
    """Every way to give pieces to workers, but for their names."""

    def more(given: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(given) == pieces:
            yield given
            return
        for worker in range(min(workers, max(given, default=-1) + 2)):
            yield from more((*given, worker))

    return more(())


def least_makespan(loads: Sequence[Fraction], workers: int) -> Fraction:
    """The least possible load of the worker with the most."""
    return min(
        max(
            sum((load for load, at in zip(loads, given, strict=True) if at == worker), Fraction())
            for worker in range(workers)
        )
        for given in assignments(len(loads), workers)
    )
