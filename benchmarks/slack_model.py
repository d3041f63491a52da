"""Speed of the reference: events/s of one task, plain Python (``make bench``).

A keyed sum with five windows a tuple (W/s = 5), 16 keys, delays up to two slides, conformal
control. Only the stream side is timed, from the first arrival to the flush.
"""

from random import Random
from statistics import median
from time import perf_counter

from model.slack.machine import Task
from model.vocabulary import Event, SlackConfig

EVENTS = 100_000
SECOND_US = 1_000_000
CONFIG = SlackConfig(size_us=10 * SECOND_US, slide_us=2 * SECOND_US, cv=0.5)
START_US = 1_700_000_000 * SECOND_US


def arrivals(events: int = EVENTS, seed: int = 0) -> list[Event]:
    """A stream of 1,000 events a second of event time, disordered by up to four seconds."""
    random = Random(seed)
    sent = [(START_US + n * 1_000, random.randrange(4 * SECOND_US)) for n in range(events)]
    sent.sort(key=lambda pair: pair[0] + pair[1])
    return [
        Event(seq, seq, f"key-{seq % 16}", ts_us, float(random.randrange(1, 9)), ts_us + delay_us)
        for seq, (ts_us, delay_us) in enumerate(sent)
    ]


def measure(runs: int = 3) -> dict[str, float]:
    """Median over ``runs`` of the events routed a second."""
    stream = arrivals()
    return {"events_per_s": median(_events_per_s(stream) for _ in range(runs))}


def _events_per_s(stream: list[Event]) -> float:
    task = Task(CONFIG, 0)
    start_s = perf_counter()
    for event in stream:
        task.arrive(event, 0)
    task.flush(1)
    return len(stream) / (perf_counter() - start_s)
