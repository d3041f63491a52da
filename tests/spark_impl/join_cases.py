"""Drawn arrivals for a chain, and what a loop over them admits, refuses and pairs."""

import random
from collections import Counter

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import (
    And,
    Apart,
    Band,
    Equi,
    Ineq,
    Predicate,
    Rejected,
)
from properties.oracles.join import Recomputation

Pair = tuple[str, int, int]
PREDICATES: tuple[Predicate, ...] = (
    And(),
    Equi("key"),
    Equi("value"),
    Band("value", 1.0),
    Apart("value", 1.0),
    Ineq("value", "<", "value"),
    Ineq("key", ">=", "key"),
    Ineq("value", "!=", "value"),
    And((Equi("key"), Band("value", 0.5))),
)


def random_case(seed: int, tuples: int = 40, at_least: int = 0) -> Workload:
    """Return arrivals with equal times, disorder, redeliveries and values that are not finite."""
    draw = random.Random(seed)
    config = JoinConfig(
        window_us=draw.choice([0, 3, 10, 1000]),
        queries=tuple((f"q{n}", draw.choice(PREDICATES)) for n in range(draw.choice([1, 1, 2, 3]))),
        workers=draw.choice([1, 2, 2, 3, 3, 4, 5]),
        block_size=draw.choice([1, 2, 3, 8, 100]),
        credit=draw.choice([1, 2, 4]),
        lateness_us=draw.choice([None, 0, 2, 8, 50]),
    )
    count = draw.randint(at_least, tuples)
    share = draw.choice([0.0, 0.2, 0.5, 0.5, 1.0])
    events: list[Event] = []
    for seq in range(count):
        stream = "R" if draw.random() < share else "S"
        again = [event for event in events if event.stream == stream]
        if again and draw.random() < 0.1:
            event = draw.choice(again)._replace(seq=seq, arrival_us=seq)
        else:
            ts = 1000 + seq - draw.choice([0, 0, 1, 3, 9])
            value = draw.choice([0.0, 0.5, 1.0, 2.0, 2.5, 4.0])
            if draw.random() < 0.03:
                value = float("inf")
            key = draw.choice(["a", "b", "ä", "a\N{GRINNING FACE}"])
            event = Event(seq, seq * 7 % 1009, key, ts, value, seq, stream)
        events.append(event)
    cuts = sorted(draw.sample(range(count + 1), min(count, draw.choice([0, 0, 1, 3]))))
    return Workload("join", tuple(events), config.to_json(), tuple(cuts), seed=seed)


def recomputed(workload: Workload) -> Recomputation:
    """Recompute a chain with all of its settings."""
    config = JoinConfig.from_json(workload.config).to_json()
    return Recomputation(workload.with_(config=config).to_json())


def admitted(workload: Workload) -> tuple[dict[str, set[int]], set[Rejected]]:
    """Return the identities that are admitted, by stream, and the rejected arrivals."""
    found = recomputed(workload)
    taken = {name: {one.identity for one, _epoch in own} for name, own in found.tuples.items()}
    return taken, {Rejected(*each) for each in found.rejected}


def nested_loop(workload: Workload) -> Counter[Pair]:
    """Return every pair of every query, with the number of times that it may come: once."""
    return recomputed(workload).pairs
