"""Queries whose driver is killed until they end: windows of two rooms, chains, sensor scripts."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from model.vocabulary import ScriptConfig, SlackConfig, WatermarkConfig, Workload
from model.vocabulary.windows import Late
from sim.kernel.log import simulate_arrivals
from sim.scenarios import umts
from straggler.rooms import find_room
from straggler.rooms.script.language import parse
from tests.harness import drivers
from tests.harness.driver_kills import kills, run_to_its_end
from tests.harness.long_chains import long_case


class Subject(NamedTuple):
    """A kind of query whose drivers are killed."""

    driver: str
    """Program of the driver."""
    prepare: Callable[[Path, Workload], None]
    """Write the files of a query into the folder of its driver."""
    workload_of: Callable[[int, int], Workload]
    """Return the workload of a query, by its number and a seed."""


WINDOW_BATCHES, CHAIN_BATCHES, SCRIPT_BATCHES = 10, 5, 4
"""Micro-batches of a query, by kind of query."""
FEW = 3
"""Micro-batches of the queries with number 0, which are killed once."""
MEDIAN: dict[str, Any] = {"aggregate": "median", "keyed": False, "tasks": 2}
CORRECTED: dict[str, Any] = {"corrections": True, "gamma_us": 1_000_000}
WINDOW_QUERIES = (
    ("slack", SlackConfig(1_000_000, 200_000, tasks=2, max_slack_us=20_000, gamma_us=1_000_000)),
    ("watermark", WatermarkConfig(500_000, 200_000, 100_000, k=8, **MEDIAN, **CORRECTED)),
    ("slack", SlackConfig(900_000, 500_000, control="fixed", **MEDIAN)),
)
"""Room and query, in turn."""
PER_HOUR = {"A": 10_000, "B": 10_000, "C": 100}
"""Tuples an hour, by sensor. With these rates each worker gets one of A and B."""
SCRIPT = """
spread = stddev("A", 400, 200)
most = max(union("B", spread), 600, 300)
mean = avg("B", 400, 400)
total = sum(mean, "A")
ratio = "A" / spread
seldom = count("C", 2_000, 500)
"""


def windows_workload(number: int, seed: int) -> Workload:
    """Return windowed query ``number``: a few phones for half a minute, both rooms in turn.

    Some tuples are late: other phones are taken until they are.
    """
    room, config = WINDOW_QUERIES[number % len(WINDOW_QUERIES)]
    for more in count():
        events = simulate_arrivals(umts(seed + number + more, messages=60), seed).events
        cuts = _equal_cuts(len(events), WINDOW_BATCHES if number else FEW)
        name = f"query-{number}"
        workload = Workload(room, events, config.to_json(), cuts, seed=seed, name=name)
        if find_room(room).reference()(workload).of(Late):
            break
    return workload


def chain_workload(number: int, seed: int) -> Workload:
    """Return chain ``number``.

    None of its queries is limited to some epochs, because kills decide where an epoch ends.
    """
    case = long_case(3, seed + number, CHAIN_BATCHES if number else FEW)
    return case.with_(config={**case.config, "epochs": []}, name=f"chain-{number}")


def script_workload(number: int, seed: int) -> Workload:
    """Return query ``number`` of scripts, for two workers that send results to each other.

    Several phones are one sensor, so that its tuples are late.
    """
    sensors = tuple(PER_HOUR)
    events = tuple(
        event._replace(key=sensors[int(event.key.removeprefix("dev_")) % len(sensors)])
        for event in simulate_arrivals(umts(seed + number, messages=60), seed).events
    )
    rates = tuple(PER_HOUR.items())
    config = ScriptConfig((parse(SCRIPT, "killed"),), rates, 2, 50_000, cap_percent=100)
    cuts = _equal_cuts(len(events), SCRIPT_BATCHES)
    return Workload("script", events, config.to_json(), cuts, seed=seed, name=f"scripts-{number}")


def _equal_cuts(tuples: int, batches: int) -> tuple[int, ...]:
    return tuple(tuples * batch // batches for batch in range(1, batches))


WINDOWS = Subject(drivers.WINDOWS, drivers.prepare, windows_workload)
CHAINS = Subject(drivers.CHAIN, drivers.prepare_chain, chain_workload)
SCRIPTS = Subject(drivers.SCRIPTS, drivers.prepare, script_workload)


def kill_and_finish(
    subject: Subject, folder: Path, number: int, seed: int, at_most: int
) -> tuple[Workload, list[str]]:
    """Kill the driver of query ``number`` at most so many times, then let it finish.

    Return its workload, and its last line before each kill.
    """
    workload = subject.workload_of(number, seed)
    subject.prepare(folder, workload)
    seen = list(kills(folder, subject.driver, Random(f"{seed}/{workload.name}"), at_most))
    run_to_its_end(folder, subject.driver)
    return workload, seen
