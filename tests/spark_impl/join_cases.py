"""Workloads for the chain, and the obvious join over the admitted tuples."""

import random
from collections import Counter
from itertools import product

from model.vocabulary import Event, JoinConfig, Trace, Workload
from model.vocabulary.join import (
    NO_WATERMARK_US,
    REASON_LATE,
    REASON_NOT_FINITE,
    REASON_SHED,
    And,
    Apart,
    Band,
    Equi,
    Ineq,
    Match,
    Predicate,
    Rejected,
)

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


def admitted(workload: Workload) -> tuple[dict[str, list[Event]], set[Rejected]]:
    """Admit arrivals by section 2, one after the other; decisions shed some of them before."""
    lateness_us = JoinConfig.from_json(workload.config).lateness_us
    dropped = shed(workload)
    t_max = {"R": NO_WATERMARK_US, "S": NO_WATERMARK_US}
    taken: dict[str, dict[int, Event]] = {"R": {}, "S": {}}
    rejected = set()
    for event in workload.arrivals:
        stream = event.stream
        started = lateness_us is not None and t_max[stream] != NO_WATERMARK_US
        watermark = t_max[stream] - (lateness_us or 0) if started else NO_WATERMARK_US
        if event in dropped:
            rejected.add(Rejected(stream, event.seq, event.source_id, REASON_SHED))
        elif event.value in (float("inf"), float("-inf")) or event.value != event.value:
            rejected.add(Rejected(stream, event.seq, event.source_id, REASON_NOT_FINITE))
        elif event.event_time_us < watermark:
            rejected.add(Rejected(stream, event.seq, event.source_id, REASON_LATE))
        elif event.source_id not in taken[stream]:
            taken[stream][event.source_id] = event
            t_max[stream] = max(t_max[stream], event.event_time_us)
    return {stream: list(events.values()) for stream, events in taken.items()}, rejected


def shed(workload: Workload) -> set[Event]:
    """Return the arrivals whose draw is below the share of their epoch (section 14)."""
    decisions = JoinConfig.from_json(workload.config).decisions
    found = set()
    for epoch, events in enumerate(workload.batches()):
        share = ([0.0] + [each.share for each in decisions if each.epoch <= epoch])[-1]
        found |= {event for event in events if draw_of(event.stream, event.seq) < share}
    return found


def draw_of(stream: str, seq: int) -> float:
    """Return the draw of an arrival, in whole numbers."""
    z = (2 * seq + (stream == "S") + 1) * 0x9E3779B97F4A7C15 % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return ((z ^ z >> 31) >> 11) / 2**53


def nested_loop(workload: Workload) -> Counter[Pair]:
    """Return every pair of every query, with the number of times that it may come: once."""
    config = JoinConfig.from_json(workload.config)
    taken, _ = admitted(workload)
    epochs = {event.seq: n for n, events in enumerate(workload.batches()) for event in events}

    def is_of(query: str, event: Event) -> bool:
        first, last = config.span(query)
        return first <= epochs[event.seq] and (last is None or epochs[event.seq] <= last)

    return Counter(
        (name, r.source_id, s.source_id)
        for name, predicate in config.queries
        for r, s in product(taken["R"], taken["S"])
        if abs(r.event_time_us - s.event_time_us) <= config.window_us
        and is_of(name, r)
        and is_of(name, s)
        and holds(predicate, r, s)
    )


def holds(predicate: Predicate, r: Event, s: Event) -> bool:
    """Return whether the predicate holds, word by word."""
    if isinstance(predicate, And):
        return all(holds(part, r, s) for part in predicate.parts)
    if isinstance(predicate, Equi):
        return bool(getattr(r, predicate.column) == getattr(s, predicate.column))
    if isinstance(predicate, Band):
        return abs(r.value - s.value) <= predicate.eps
    if isinstance(predicate, Apart):
        return abs(r.value - s.value) > predicate.eps
    left, right = getattr(r, predicate.left), getattr(s, predicate.right)
    outcomes: dict[str, bool] = {
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
        "!=": left != right,
    }
    return outcomes[predicate.op]


def pairs(trace: Trace) -> Counter[Pair]:
    """Return the pairs in a trace."""
    return Counter((match.query, match.r_id, match.s_id) for match in trace.of(Match))
