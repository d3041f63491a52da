"""Workloads of room ``join`` for tests of the model: small, seeded, full of corner cases."""

from dataclasses import replace
from random import Random

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import And, Apart, Band, Equi, Ineq, Predicate

PREDICATES: tuple[Predicate, ...] = (
    And(),
    Equi("key"),
    Equi("value"),
    Band("value", 1.0),
    Apart("value", 1.0),
    Ineq("value", "<", "value"),
    And((Band("value", 2.0), Ineq("key", "!=", "key"))),
)


def workload(seed: int, n: int = 40, *, flush: bool = True, limited: bool = False) -> Workload:
    """Draw disorder, equal times, redeliveries and skewed keys; the seed draws the chain, too.

    Queries are limited to epochs only if ``limited``. A stream falls silent only with some seeds
    above 9; others admit the same whatever the cuts are.
    """
    random = Random(seed)
    events: list[Event] = []
    for seq in range(n):
        if events and random.random() < 0.1:
            events.append(random.choice(events)._replace(seq=seq, arrival_us=seq))
            continue
        ts_us = max(0, seq + random.randrange(-6, 7))
        key = "aaab"[random.randrange(4)]
        stream = "RS"[random.random() < (0.5 if seed % 9 else 0.0)]
        value = float(random.randrange(5)) if random.random() < 0.98 else float("inf")
        events.append(Event(seq, seq // 2, key, ts_us, value, seq, stream))
    events = [event for event in events if not _is_other(event, events)]
    events = [event._replace(seq=seq) for seq, event in enumerate(events)]
    queries = tuple(
        (f"q{number}", random.choice(PREDICATES)) for number in range(random.randrange(1, 4))
    )
    config = JoinConfig(
        window_us=random.randrange(8),
        queries=queries,
        workers=random.randrange(1, 5),
        block_size=random.choice([1, 2, 4, 100]),
        credit=random.randrange(1, 4),
        lateness_us=random.choice([None, 0, 4, 12]),
    )
    cuts = tuple(sorted(random.randrange(len(events) + 1) for _ in range(random.randrange(4))))
    if limited:
        config = replace(config, epochs=_epochs(random, [name for name, _ in queries]))
    if seed > 9 and seed % 5 == 1 and config.lateness_us is not None:
        config = replace(config, idle_after_us=random.choice([1, 4]))
        events, cuts = _silenced(events, "RS"[seed % 2]), tuple(range(4, len(events), 4))
    return Workload("join", tuple(events), config.to_json(), cuts, seed=seed, flush=flush)


def _silenced(events: list[Event], stream: str) -> list[Event]:
    """Let what a stream sends in the second quarter come when half of all is there."""
    first, half = len(events) // 4, len(events) // 2
    away = sorted(events[first:half], key=lambda event: event.stream == stream)
    return [
        event._replace(seq=seq)
        for seq, event in enumerate([*events[:first], *away, *events[half:]])
    ]


def _epochs(random: Random, queries: list[str]) -> tuple[tuple[str, int, int | None], ...]:
    """Limit some queries to the epochs from one on, some to a range, and some not at all."""
    drawn = [(name, random.randrange(3), random.choice([None, 0, 1])) for name in queries]
    return tuple(
        (name, first, None if more is None else first + more)
        for name, first, more in drawn
        if random.randrange(3)
    )


def _is_other(event: Event, events: list[Event]) -> bool:
    """Return whether an earlier arrival has the same identity and another content."""
    first = next(e for e in events if (e.stream, e.source_id) == (event.stream, event.source_id))
    return first[2:5] != event[2:5]
