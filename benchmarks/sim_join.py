"""Speed of the timed room ``join``, as measured by ``benchmarks/_timed_rooms.py``.

``standard_...`` is the room's standard scenario, which docs/join.md, section 13, gives the reason
for. ``blocks_of_20_...`` is the same with blocks of at most 20 tuples, the published size, and
``default_...`` the run of the default settings, in which nearly every tuple is a message of its
own. Messages are blocks, acknowledgements and hints between workers.
"""

from collections.abc import Mapping
from functools import partial

from benchmarks._timed_rooms import paces, parts, standard
from sim.join import STANDARD, from_settings
from sim.join.tuning import ORDINARY

OTHERS: Mapping[str, Mapping[str, str]] = {
    "blocks_of_20": {**STANDARD, "seconds": "2", "block_size": "20"},
    "default": {},
}


def measure() -> dict[str, float]:
    """Medians over five rounds."""
    figures = {
        **standard(partial(from_settings, STANDARD)),
        **_messages("standard", STANDARD),
    }
    for name, settings in OTHERS.items():
        tuples = len(from_settings(settings, 1).workload.arrivals)
        figures |= paces(tuples, partial(parts, f"{name}_", partial(from_settings, settings)))
        figures |= _messages(name, settings)
    for name in ("standard", *OTHERS):
        per_s = figures[f"{name}_tuples_per_s"] * figures[f"{name}_messages_a_tuple"]
        figures[f"{name}_messages_per_s"] = per_s
    return figures


def _messages(name: str, settings: Mapping[str, str]) -> Mapping[str, float]:
    """Return the number of messages between workers for each arriving tuple."""
    run = from_settings(settings, 1)
    blocks, hint_bytes_per_s = (float(run.summary[key]) for key in ("blocks", "hint_bytes_per_s"))
    span_us = run.workload.arrivals[-1].arrival_us - run.plan.epoch_us
    hints = hint_bytes_per_s * span_us / 1e6 / ORDINARY.header_bytes
    # Each block has one acknowledgement.
    return {f"{name}_messages_a_tuple": (2 * blocks + hints) / len(run.workload.arrivals)}
