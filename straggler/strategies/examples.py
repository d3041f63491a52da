"""Examples that Hypothesis draws, the same ones for the same seed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.configuration import set_hypothesis_home_dir, storage_directory
from hypothesis.strategies import SearchStrategy

from model.vocabulary import Workload, stable_hash
from straggler.errors import UsageError
from straggler.rooms import find_room

T = TypeVar("T")

RUN = 50
"""Number of examples that one run of Hypothesis draws."""
_STREAMS = {"slack": "streams"}


def cases_of(room: str) -> SearchStrategy[Workload]:
    """Return the strategy of all workloads of a room, also of those that no system has to run."""
    module = import_module(f"straggler.strategies.{_STREAMS.get(room, room)}")
    cases: SearchStrategy[Workload] = module.cases()
    return cases


def workloads(room: str) -> SearchStrategy[Workload]:
    """Return the Hypothesis strategy of the workloads of a room: a query, and a stream in order.

    Raise :class:`straggler.errors.UsageError` with a suggestion if there is no such room.

    Args:
        room: ``"slack"``, ``"join"``, ``"grouping"``, ``"watermark"`` or ``"script"``.

    Examples:
        >>> from hypothesis import given
        >>> from straggler.strategies.examples import collect, workloads
        >>> @given(workloads("join"))
        ... def test_my_join(workload):
        ...     assert workload.room == "join"
    """
    refuse = find_room(room).refuse

    def is_judged(workload: Workload) -> bool:
        try:
            refuse(workload)
        except UsageError:
            return False
        return True

    return cases_of(room).filter(is_judged)


def collect(strategy: SearchStrategy[T], n: int, seed: int) -> list[T]:
    """Return examples of a strategy, for use outside of a property.

    Examples come from several runs with different seeds, because within a run Hypothesis tends to
    repeat its draws.

    Args:
        strategy: any strategy of Hypothesis.
        n: number of examples.
        seed: whole number; the same seed gives the same examples.

    Examples:
        >>> [workload.room for workload in collect(workloads("slack"), 2, seed=0)]
        ['slack', 'slack']
    """
    found: list[T] = []
    for run in range(-(-n // RUN)):
        found += collect_run(strategy, min(RUN, n - len(found)), stable_hash(f"{seed} {run}"))
    return found


def collect_run(strategy: SearchStrategy[T], n: int, seed: int) -> list[T]:
    """Return the first ``n`` examples of a single run of Hypothesis."""
    found: list[T] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=n,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(strategy)
    def draw(example: T) -> None:
        found.append(example)

    with _without_folder():
        draw()
    return found[:n]


@contextmanager
def _without_folder() -> Iterator[None]:
    """Let Hypothesis keep nothing in the current folder, not even the constants of our modules."""
    before = storage_directory(intent_to_write=False).home_directory
    set_hypothesis_home_dir(os.devnull)
    try:
        yield
    finally:
        set_hypothesis_home_dir(before)
