"""Small workloads of windows and joins, drawn ones of every room, and their right answers."""

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
