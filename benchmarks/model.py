"""Speed of the reference: the explorer, and one task of room ``slack``, in plain Python."""

from random import Random
from statistics import median
from time import perf_counter

from model.checking.explorer import explore
from model.slack.machine import Task
from model.vocabulary import Event, SlackConfig
from tests.model.two_phase_commit import CLAIMS, two_phase_commit

MANAGERS = 7
RUNS = 3
EVENTS = 100_000
SECOND_US = 1_000_000
CONFIG = SlackConfig(size_us=10 * SECOND_US, slide_us=2 * SECOND_US, cv=0.5)
"""A keyed sum with five windows a tuple (W/s = 5) and conformal control."""
START_US = 1_700_000_000 * SECOND_US


def measure_explorer() -> dict[str, float]:
    """Return the median of generated states (transitions) a second, and the unique states.

    The model is two-phase commit with 7 resource managers. Its claims are checked, as in any real
    use.
    """
    rates_hz = []
    for _ in range(RUNS):
        started_s = perf_counter()
        result = explore(two_phase_commit(MANAGERS), CLAIMS)
        rates_hz.append(result.transitions / (perf_counter() - started_s))
    return {
        "generated_states_per_s": median(rates_hz),
        "unique_states": float(result.unique_states),
    }


def measure_slack() -> dict[str, float]:
    """Return the median of events that one task routes a second.

    Only the stream side is timed, from the first arrival to the flush.
    """
    stream = arrivals()
    return {"events_per_s": median(_events_per_s(stream) for _ in range(RUNS))}


def arrivals(events: int = EVENTS, seed: int = 0) -> list[Event]:
    """Return a stream of 1,000 events a second of event time with 16 keys.

    Delays of up to four seconds, two slides, put it out of order.
    """
    random = Random(seed)
    sent = [(START_US + n * 1_000, random.randrange(4 * SECOND_US)) for n in range(events)]
    sent.sort(key=lambda pair: pair[0] + pair[1])
    return [
        Event(seq, seq, f"key-{seq % 16}", ts_us, float(random.randrange(1, 9)), ts_us + delay_us)
        for seq, (ts_us, delay_us) in enumerate(sent)
    ]


def _events_per_s(stream: list[Event]) -> float:
    task = Task(CONFIG, 0)
    start_s = perf_counter()
    for event in stream:
        task.arrive(event, 0)
    task.flush(1)
    return len(stream) / (perf_counter() - start_s)
