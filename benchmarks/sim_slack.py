"""Speed of the timed room ``slack``: tuples per second of wall-clock time.

The stream of ``benchmarks/slack_model.py`` (five windows a tuple, 16 keys, conformal control) at
two unequal tasks, each at about half of its capacity, with a micro-batch a second.
``tuples_per_s`` counts everything from the first arrival to the figures of the finished run;
``timed_tuples_per_s`` the timed run alone.
"""

from dataclasses import replace
from statistics import median
from time import perf_counter

from benchmarks.slack_model import CONFIG, arrivals
from model.vocabulary import Workload
from sim.batches import cut
from sim.cluster import Worker
from sim.distributions import Exponential
from sim.slack.timed import figures, room_of, timeline
from sim.windows.answers import observe
from sim.windows.timed import Cluster

ROUNDS = 3
SAMPLES = 300
CLUSTER = Cluster(workers=(Worker(Exponential(1_000.0)), Worker(Exponential(500.0), speed=0.5)))


def measure() -> dict[str, float]:
    """Median rates over three rounds."""
    events = tuple(arrivals())
    start_us = events[0].arrival_us
    cuts, ends_us = cut(events, start_us, 1_000_000)
    workload = Workload("slack", events, replace(CONFIG, tasks=2).to_json(), cuts)
    rates = [_rates(workload, ends_us) for _ in range(ROUNDS)]
    return {
        "tuples_per_s": median(whole for whole, _ in rates),
        "timed_tuples_per_s": median(timed for _, timed in rates),
    }


def _rates(workload: Workload, ends_us: tuple[float, ...]) -> tuple[float, float]:
    sample_at_us = [ends_us[-1] * row / SAMPLES for row in range(1, SAMPLES)]
    start_us = workload.arrivals[0].arrival_us
    started_s = perf_counter()
    room = room_of(workload, CLUSTER, start_us, ends_us, sample_at_us)
    room.run()
    timed_s = perf_counter() - started_s
    room.trace()
    observed = observe(room)
    timeline(observed)
    figures(observed)
    tuples = len(workload.arrivals)
    return tuples / (perf_counter() - started_s), tuples / timed_s
