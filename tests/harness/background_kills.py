"""Queries whose driver process is killed repeatedly in the background until they end.

If one process runs all tests, a test that uses the fixture of such queries runs last: until then
other tests run, which keep at most one core busy. Of several processes, the one that runs such a
test begins with the kills then, while the others keep the cores busy.
:mod:`tests.harness.driver_kills` kills the drivers.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import islice, repeat, takewhile
from pathlib import Path
from random import Random
from threading import Event
from typing import NamedTuple

import pytest

from model.vocabulary import Workload
from tests.harness.driver_kills import KILLS_A_QUERY, Kill, kills, needs_proc, run_to_its_end

KILLED_QUERIES, KILLED_CHAINS, KILLED_SCRIPTS = FIXTURES = (
    "killed_queries",
    "killed_chains",
    "killed_scripts",
)
"""Names of the fixtures that return finished queries."""
AT_ONCE = 2
BACKGROUND = "driver-kills"
"""Prefix of the names of all threads that kill drivers."""


class Subject(NamedTuple):
    """A kind of query whose drivers are killed."""

    driver: str
    """Module of the driver program."""
    prepare: Callable[[Path, Workload], None]
    """Write the files of a query into the folder of its driver."""
    workload_of: Callable[[int, int], Workload]
    """Return the workload of a query, by its number and a seed."""
    kills_a_query: int = KILLS_A_QUERY
    at_once: int = AT_ONCE
    """Number of queries that are killed at the same time; each room needs one of them."""


class Query(NamedTuple):
    """A query that was interrupted and has finished."""

    folder: Path
    workload: Workload
    kills: list[Kill]


class KillPlan(NamedTuple):
    """The number of kills that are wanted for one kind of query."""

    subject: Subject
    seed: int
    wanted: int
    """Number of kills that interrupt a query; every room of the subject gets an equal share."""


def kill_drivers(plan: KillPlan, folder: Path, stop: Event) -> list[Query]:
    """Interrupt queries, some at a time, until every room has its share of the kills.

    The first queries are of all rooms; later ones are of the rooms with too few kills. If ``stop``
    is set, return early, with queries that have not finished.
    """
    subject, seed, wanted = plan
    share = -(-wanted // subject.at_once)
    subject = subject._replace(kills_a_query=min(share, subject.kills_a_query))
    queries: list[Query] = []
    every = (subject.workload_of(number, seed) for number in range(3 * wanted))
    useful = (each for each in every if not queries or each.room in _lacking(queries, wanted))
    while workloads := list(islice(useful, subject.at_once)):
        given = (repeat(subject), repeat(folder), workloads, repeat(stop))
        with ThreadPoolExecutor(subject.at_once, BACKGROUND) as pool:
            queries += pool.map(_kill_and_finish, *given)
        if stop.is_set() or not _lacking(queries, wanted):
            break
    return queries


def _lacking(queries: Sequence[Query], wanted: int) -> set[str]:
    """Return the rooms with less than an equal share of the kills."""
    rooms = {query.workload.room for query in queries}
    kills_of = Counter(query.workload.room for query in queries for _ in query.kills)
    return {room for room in rooms if kills_of[room] * len(rooms) < wanted}


def _kill_and_finish(subject: Subject, parent: Path, workload: Workload, stop: Event) -> Query:
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
    """Return whether a test uses queries that were killed."""
    return any(_uses(item, name) for name in FIXTURES)


def _uses(item: pytest.Item, name: str) -> bool:
    return isinstance(item, pytest.Function) and name in item.fixturenames


def run_in_background(
    plans: Mapping[str, KillPlan], request: pytest.FixtureRequest, folders: pytest.TempPathFactory
) -> Iterator[Callable[[str], Future[list[Query]]]]:
    """Yield a function that returns the finished queries of a fixture, and starts their kills once.

    A process that runs all tests starts the kills for all fixtures that some test uses at once.
    Every test of a folder that starts Spark uses this, so kills begin with the first such test.
    """
    stop = Event()
    with ThreadPoolExecutor(1, BACKGROUND) as pool:

        @cache
        def begin(name: str) -> Future[list[Query]]:
            return pool.submit(kill_drivers, plans[name], folders.mktemp(name), stop)

        is_alone = not hasattr(request.config, "workerinput")
        if is_alone and not needs_proc.args[0]:
            for name in plans:
                if any(_uses(item, name) for item in request.session.items):
                    begin(name)
        yield begin
        stop.set()
