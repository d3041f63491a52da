"""The timed room ``grouping``: how fast it is, and what it says of the policies.

``benchmarks/_timed_rooms.py`` says how speed is measured. ``standard_...`` is the run of the
default settings. The other rates are of 60,000 tuples of 2,000 keys in windows of 10,000 through
``tag`` and twelve unequal instances, with measured times; ``timed_...`` is the event loop of that
run. All else is simulated, and the same on every machine; ``sim/grouping/experiments.py`` says what
it is.
"""

from functools import partial

from benchmarks._timed_rooms import paces, parts, standard
from sim.grouping import experiments, from_settings

LARGE = {"tuples": "60000", "keys": "2000", "window_tuples": "10000"}


def measure() -> dict[str, float | str]:
    """Median rates over five rounds, and the experiments."""
    return {
        **standard(partial(from_settings, {})),
        **paces(int(LARGE["tuples"]), lambda: parts("", partial(from_settings, LARGE))),
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
