"""How fast the timed room ``watermark`` is; ``benchmarks/_timed_rooms.py`` says how it is measured.

``standard_...`` is the run of the default settings, in which calm and storm come by turns;
``sliding_...`` the same with five windows a tuple and corrections from history.
"""

from functools import partial
from time import process_time

from benchmarks._timed_rooms import paces, standard
from sim.watermark import from_settings

SLIDING = {"slide_us": "2000000", "corrections": "yes"}


def measure() -> dict[str, float]:
    """Medians over five rounds."""
    tuples = len(from_settings(SLIDING, 1).workload.arrivals)
    return {**standard(partial(from_settings, {})), **paces(tuples, _once)}


def _once() -> dict[str, float]:
    started_s = process_time()
    from_settings(SLIDING, 1)
    return {"sliding_": process_time() - started_s}
