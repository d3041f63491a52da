"""Small workloads and files of every room, and their right answers."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from model.vocabulary import Event, JoinConfig, SlackConfig, Trace, Workload
from model.vocabulary.join import Equi
from model.vocabulary.windows import Final
from straggler.rooms import find_room
from straggler.strategies.examples import cases_of, collect

TIMES_S = (0, 4, 11, 3, 22, 1, 35, 12)
DRAWN = 40


def stream(*times_s: int) -> tuple[Event, ...]:
    """Return tuples of these event times."""
    return tuple(
        Event(seq, seq, "k", at_s * 1_000_000, 2.0, seq) for seq, at_s in enumerate(times_s)
    )


def windows() -> Workload:
    """Return eight tuples for windows of ten seconds, some of them late."""
    config = SlackConfig(10_000_000, 10_000_000, control="fixed", gamma_us=0, max_age_us=0)
    return Workload("slack", stream(*TIMES_S), config.to_json(), (2, 5))


def pairs(**settings: Any) -> Workload:
    """Return the same tuples in two streams, to be joined within five seconds."""
    config = JoinConfig(5_000_000, (("q", Equi("key")),), lateness_us=2_000_000)
    arrivals = [each._replace(stream="RS"[each.seq % 2]) for each in stream(*TIMES_S)]
    return Workload("join", tuple(arrivals), config.to_json(), (4,), **settings)


def model(workload: Workload) -> Trace:
    """Run the model of the room of a workload."""
    return find_room(workload.room).reference()(workload)


@cache
def drawn(room: str, seed: int) -> list[Workload]:
    """Draw workloads of a room, once for all tests of a process."""
    return collect(cases_of(room), DRAWN, seed)


def exact_windows(workload: Workload) -> Trace:
    """Return the windows of an engine that sees all tuples at once, and revises nothing."""
    sums: dict[tuple[int, str], list[float]] = {}
    for event in workload.arrivals:
        start_us = event.event_time_us // 10_000_000 * 10_000_000
        sums.setdefault((start_us, event.key), []).append(event.value)
    found = (
        Final(0, start_us, key, sum(values), len(values), 0, True)
        for (start_us, key), values in sums.items()
    )
    return Trace("exact", found)


# -------------------------------------------------------------------------------- files of rooms

SCRIPTS = "--script means.script worst.script --lateness 5s --workers 2"
ASKED = {
    "slack": "--input stream.csv --time-unit s --control fixed --per task --aggregate sum",
    "watermark": "--input trips.csv --time-unit s --key car --window 10s --max-wait 20s --k 4",
    "join": "--r r.csv --s s.csv --time-unit s --window 5s --lateness 4s --batches 3",
    "grouping": "--input hits.csv --key page --value bytes",
    "script": f"--input readings.csv --key sensor --event-time at --time-unit s {SCRIPTS}",
}


def ask(room: str, *more: str, system: str = "") -> tuple[str, ...]:
    """Return a comparison of a room's small files, with the model or another system."""
    return ("diff", room, *ASKED[room].split(), "--system", system or model_of(room), *more)


def model_of(room: str) -> str:
    return f"model.{room}:make_system"


def small_files() -> Mapping[str, list[str]]:
    """Return an input of every room, in which something is late and keys are skewed, as lines."""
    stream = [f"{at},1,k" for at in (1, 2, 9, 3, 12, 30, 11, 40)]
    r = [f"{n - 9 * (n % 5 == 0)},{n % 7},{'abc'[n % 3]}" for n in range(20, 80)]
    s = [f"{n},{n % 7},{'abc'[n % 3]}" for n in range(20, 80)]
    hits = [f"{'hot' if n % 2 else f'p{n % 30}'},{n % 9}" for n in range(100)]
    swapped = {5: 7, 7: 5}  # of two cars, one a minute behind the other
    times = [2 * swapped.get(n, n) + 60 * (n % 2 == 0) for n in range(200)]
    trips = [f"{'ab'[n % 2]},{time},{n % 5}" for n, time in enumerate(times)]
    order = sorted(range(90), key=lambda n: n + (30 if n % 11 == 0 else 0))
    readings = [f"{'lrm'[n % 3]},{n // 3},{n % 7 - 3 + n % 4 / 10}" for n in order]
    return {
        "stream.csv": ["event_time,value,key", *stream],
        "r.csv": ["event_time,value,key", *r],
        "s.csv": ["event_time,value,key", *s],
        "hits.csv": ["page,bytes", *hits],
        "trips.csv": ["car,event_time,value", *trips],
        "readings.csv": ["sensor,at,value", *readings],
        "means.script": [
            'left = avg("l", 4_000, 2_000)',
            'right = avg("r", 6_000, 2_000)',
            "never = left / (right - right)",
        ],
        "worst.script": ['worst = max(avg("l", 4_000, 2_000), "m")'],
    }
