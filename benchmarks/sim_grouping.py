"""The timed room ``grouping``: how fast it is, and what it says of the policies.

``benchmarks/_timed_rooms.py`` says how speed is measured. ``standard_...`` is the run of the
default settings. The other rates are of 60,000 tuples of 2,000 keys in windows of 10,000 through
``tag`` and twelve unequal instances, with measured times: ``timed_...`` the timed run alone, and
without a prefix everything from the first arrival to the figures of the finished run. All else is
simulated, and the same on every machine; ``sim/grouping/experiments.py`` says what it is.
"""

from functools import partial
from time import process_time

from benchmarks._timed_rooms import paces, standard
from model.grouping.rules import RULES
from model.vocabulary import Workload
from sim.grouping import experiments, from_settings
from sim.grouping.run import trace_of
from sim.grouping.series import series_of
from sim.grouping.settings import Given, given
from sim.grouping.summary import summary_of
from sim.grouping.timed import Room
from sim.kernel.log import simulate_arrivals
from sim.kernel.run import uncollected

LARGE = {"tuples": "60000", "keys": "2000", "window_tuples": "10000"}


def measure() -> dict[str, float | str]:
    """Median rates over five rounds, and the experiments."""
    asked = given(LARGE)
    events = simulate_arrivals(asked.plan, seed=1).events
    cuts = tuple(range(asked.batch_tuples, len(events), asked.batch_tuples))
    workload = Workload("grouping", events, asked.config.to_json(), cuts)
    return {
        **standard(partial(from_settings, {}), Room),
        **paces(len(events), lambda: _once(workload, asked)),
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


@uncollected()
def _once(workload: Workload, asked: Given) -> dict[str, float]:
    started_s = process_time()
    room = Room(workload, asked.crew, asked.plan.epoch_us, RULES, asked.measured)
    room.run()
    timed_s = process_time() - started_s
    trace_of(room)
    series_of(room)
    summary_of(room)
    return {"": process_time() - started_s, "timed_": timed_s}
