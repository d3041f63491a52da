"""The timed room ``script``: how fast it is, and what it says of the placements.

``benchmarks/_timed_rooms.py`` says how speed is measured. ``standard_...`` is the run of the
default settings, ``longer_...`` one of 24 sensors of a bridge that send 20 times a second for two
minutes to four workers. All else is simulated, and the same on every machine: 40 seconds by
default, with gaps and bursts, in which all placements meet the same tuples.
"""

from functools import partial

from benchmarks._timed_rooms import paces, parts, standard
from sim.script import from_settings, side_by_side

LONGER = {"rates_hz": "20", "seconds": "120"}


def measure() -> dict[str, float | str]:
    """Return median rates over five rounds, and all placements side by side."""
    longer = partial(from_settings, LONGER)
    tuples = len(longer(1).workload.arrivals)
    return {
        **standard(partial(from_settings, {})),
        **paces(tuples, lambda: parts("longer_", longer)),
        **dict(_sides()),
    }


def _sides() -> list[tuple[str, float | str]]:
    found: list[tuple[str, float | str]] = []
    for side in side_by_side({}, 1):
        figures = side._asdict()
        placement = figures.pop("placement")
        found += [
            (f"{placement}: {name}", "-" if figure is None else figure)
            for name, figure in figures.items()
        ]
    return found
