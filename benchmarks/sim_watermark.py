"""Speed of the timed room ``watermark``, as measured by ``benchmarks/_timed_rooms.py``.

``standard_...`` is the run of the default settings, in which calm and storm come by turns;
``sliding_...`` the same with five windows a tuple and corrections from history.
"""

from functools import partial

from benchmarks._timed_rooms import paces, parts, standard
from sim.watermark import from_settings

SLIDING = {"slide_us": "2000000", "corrections": "yes"}


def measure() -> dict[str, float]:
    """Medians over five rounds."""
    sliding = partial(from_settings, SLIDING)
    tuples = len(sliding(1).workload.arrivals)
    return {
        **standard(partial(from_settings, {})),
        **paces(tuples, lambda: parts("sliding_", sliding)),
    }
