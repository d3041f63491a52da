"""All placements side by side: the same arrivals, the same work, the same workers."""

from collections.abc import Mapping
from typing import NamedTuple

from model.vocabulary.settings import look_up
from sim.clusters import NONE
from sim.script.placements import PLACEMENTS
from sim.script.settings import ALL, prepare


class Side(NamedTuple):
    """A placement beside the others."""

    placement: str
    way: str
    """What it came to."""
    predicted_per_hour: float
    """Tuples and results sent, by the rates."""
    measured_per_hour: float
    sent_over_baseline: float | None
    """Predicted, by what sending sensors to their hash takes; nothing where that is nothing."""
    largest_over_even: float | None
    """Predicted load of the worker with the most, by an even share."""
    busiest: float | None
    """Share of the time in which that worker worked."""
    mean_tuple_latency_us: float | None
    """From arrival until served."""
    mean_result_latency_us: float | None


def named(text: str) -> tuple[str, ...]:
    """The placements of a setting: all, none, or names with commas between them.

    Raises ``ValueError`` for a name that there is not.
    """
    if text in ("all", NONE):
        return tuple(PLACEMENTS) if text == "all" else ()
    known = {name: name for name in PLACEMENTS}
    return tuple([look_up("placements", name.strip(), known) for name in text.split(",")])


def side_by_side(settings: Mapping[str, str], seed: int) -> tuple[Side, ...]:
    """Run every placement that ``placements`` names with these settings.

    Raises ``ValueError`` as :func:`sim.script.from_settings` does.
    """
    asked = prepare(settings, seed)
    found = []
    for placement in named(str(settings.get("placements", ALL))):
        summary = asked.run(placement).summary
        found.append(Side(**{name: summary.get(name) for name in Side._fields}))  # type: ignore[arg-type]
    return tuple(found)
