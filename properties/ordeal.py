"""Queries whose driver process is killed in the background, again and again, until their end.

A test that asks for the fixture :data:`KILLED` comes last: until then other tests run, which keep
one core busy at most. How drivers are killed: :mod:`properties.killing`.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import repeat, takewhile
from pathlib import Path
from random import Random
from threading import Event
from typing import NamedTuple

import pytest

from model.vocabulary import Workload
from properties.killing import KILLS_A_QUERY, Kill, kills, needs_proc, run_to_its_end

KILLED = "killed"
"""Name of the fixture with the queries, which are at their end."""
AT_ONCE = 2


class Subject(NamedTuple):
    """What is to be killed."""

    driver: str
    """Module of the driver."""
    prepare: Callable[[Path, Workload], None]
    """Make a folder ready for its driver."""
    workload_of: Callable[[int, int], Workload]
    """Query number so and so, for a seed."""
    kills_a_query: int = KILLS_A_QUERY


class Query(NamedTuple):
    """A query that was interrupted and has come to its end."""

    folder: Path
    workload: Workload
    kills: list[Kill]


def ordeal(subject: Subject, folder: Path, seed: int, wanted: int, stop: Event) -> list[Query]:
    """Interrupt queries, some at a time, until so many kills interrupted something.

    Returns as soon as it may when ``stop`` is set, with queries that are not at their end.
    """
    queries: list[Query] = []
    for first in range(0, 2 * wanted, AT_ONCE):
        workloads = [subject.workload_of(first + number, seed) for number in range(AT_ONCE)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            queries += pool.map(
                _interrupted, repeat(subject), repeat(folder), workloads, repeat(stop)
            )
        if stop.is_set() or sum(len(query.kills) for query in queries) >= wanted:
            break
    return queries


def _interrupted(subject: Subject, parent: Path, workload: Workload, stop: Event) -> Query:
    folder = parent / workload.name
    folder.mkdir()
    subject.prepare(folder, workload)
    random = Random(f"{workload.seed}/{workload.name}")
    each = kills(folder, subject.driver, random, subject.kills_a_query)
    seen = list(takewhile(lambda _: not stop.is_set(), each))
    if not stop.is_set():
        run_to_its_end(folder, subject.driver)
    return Query(folder, workload, seen)


def waits(item: pytest.Item) -> bool:
    """Whether a test asks for queries that were killed."""
    return isinstance(item, pytest.Function) and KILLED in item.fixturenames


def in_background(
    subject: Subject,
    here: Path,
    request: pytest.FixtureRequest,
    folders: pytest.TempPathFactory,
    seed: int,
    wanted: int,
) -> Iterator[Future[list[Query]] | None]:
    """For a fixture of a room that every test of it uses: begin with the first one.

    ``here`` is the folder of its tests; nothing is begun where none of them asks for it.
    """
    asked = any(waits(item) and item.path.parent == here for item in request.session.items)
    if needs_proc.args[0] or not asked:
        yield None
        return
    stop = Event()
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(ordeal, subject, folders.mktemp(KILLED), seed, wanted, stop)
        stop.set()
