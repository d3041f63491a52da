"""Queries whose driver process is killed, again and again, until they are at their end.

How drivers are killed: :mod:`properties.killing`.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import repeat, takewhile
from pathlib import Path
from random import Random
from threading import Event
from typing import NamedTuple

from model.vocabulary import SlackConfig, Workload
from properties.killing import Kill, kills, run_to_its_end
from properties.slack.driver import prepare
from sim.arrivals import simulate_arrivals
from sim.scenarios import umts

BATCHES = 10
AT_ONCE = 2
DRIVER = "properties.slack.driver"

CONFIGS = (
    SlackConfig(1_000_000, 200_000, tasks=2, max_slack_us=20_000, gamma_us=1_000_000),
    SlackConfig(900_000, 500_000, aggregate="median", control="fixed", keyed=False, tasks=2),
)


def workload_of(number: int, seed: int) -> Workload:
    """A few phones for a minute, in ``BATCHES`` micro-batches."""
    events = simulate_arrivals(umts(seed + number, messages=60), seed).events
    cuts = tuple(len(events) * batch // BATCHES for batch in range(1, BATCHES))
    config = CONFIGS[number % len(CONFIGS)].to_json()
    return Workload("slack", events, config, cuts, seed=seed, name=f"query-{number}")


class Query(NamedTuple):
    """A query that was interrupted and has come to its end."""

    folder: Path
    workload: Workload
    kills: list[Kill]


def interrupted(folder: Path, workload: Workload, stop: Event) -> Query:
    """Run a query to its end, with interruptions."""
    folder.mkdir()
    prepare(folder, workload)
    random = Random(f"{workload.seed}/{workload.name}")
    seen = list(takewhile(lambda _: not stop.is_set(), kills(folder, DRIVER, random)))
    if not stop.is_set():
        run_to_its_end(folder, DRIVER)
    return Query(folder, workload, seen)


def ordeal(folder: Path, seed: int, wanted: int, stop: Event) -> list[Query]:
    """Interrupt queries, some at a time, until so many kills interrupted something.

    Returns as soon as it may when ``stop`` is set, with queries that are not at their end.
    """
    queries: list[Query] = []
    for first in range(0, wanted, AT_ONCE):
        workloads = [workload_of(first + number, seed) for number in range(AT_ONCE)]
        folders = [folder / workload.name for workload in workloads]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            queries += pool.map(interrupted, folders, workloads, repeat(stop))
        if stop.is_set() or sum(len(query.kills) for query in queries) >= wanted:
            break
    return queries
