"""The timed room ``grouping``: how fast it is, and what it says of the policies.

``tuples_per_s`` counts wall-clock time from the first arrival to the figures of the finished run,
``timed_tuples_per_s`` without trace and figures: 60,000 tuples of 2,000 keys in windows of 10,000
through ``tag`` and twelve unequal instances, with measured times. Everything else is simulated, and
the same on every machine; ``sim/grouping/experiments.py`` says what it is.
"""

from statistics import median
from time import perf_counter

from model.grouping.rules import RULES
from model.vocabulary import Workload
from sim.arrivals import simulate_arrivals
from sim.grouping import experiments
from sim.grouping.run import trace_of
from sim.grouping.series import series_of
from sim.grouping.settings import given
from sim.grouping.summary import summary_of
from sim.grouping.timed import Room

ROUNDS = 3
STANDARD = {"tuples": "60000", "keys": "2000", "window_tuples": "10000"}


def measure() -> dict[str, float | str]:
    """Median rates over three rounds, and the experiments."""
    rates = [_rates() for _ in range(ROUNDS)]
    return {
        "tuples_per_s": median(whole for whole, _ in rates),
        "timed_tuples_per_s": median(timed for _, timed in rates),
        **dict(experiments.sides(experiments.policies())),
        **dict(experiments.rho_over_instances()),
        **dict(experiments.throughput_over_speeds()),
        **dict(experiments.rho_over_windows()),
        **dict(experiments.rho_over_senders()),
        **dict(experiments.swap()),
        **dict(experiments.propagation()),
        **dict(experiments.tag_against_dag()),
        **dict(experiments.tag_against_nag()),
    }


def _rates() -> tuple[float, float]:
    asked = given(STANDARD)
    events = simulate_arrivals(asked.plan, seed=1).events
    cuts = tuple(range(asked.batch_tuples, len(events), asked.batch_tuples))
    workload = Workload("grouping", events, asked.config.to_json(), cuts)
    started_s = perf_counter()
    room = Room(workload, asked.crew, asked.plan.epoch_us, RULES, asked.measured)
    room.run()
    timed_s = perf_counter() - started_s
    trace_of(room)
    series_of(room)
    summary_of(room)
    return len(events) / (perf_counter() - started_s), len(events) / timed_s
