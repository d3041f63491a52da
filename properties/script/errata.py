"""Errata of room ``script``: where the framework for sensor scripts, read literally, does not hold.

Source: a framework for real-time aggregation over large numbers of sensors.
"""

from collections.abc import Callable

from model.script.variants import VARIANTS
from properties.pages.errata import Erratum, Findings
from properties.script import placing_errata, slicing_errata, updating_errata

FRAMEWORK = "a framework for real-time aggregation over large numbers of sensors"


def _erratum(
    name: str, variant: str, promise: str, source: str, search: Callable[[], Findings]
) -> Erratum:
    """One that is a variant of the model, too."""
    bug = VARIANTS[variant]
    return Erratum(name, promise, f"{FRAMEWORK}: {source}", bug.mistake, bug.corrected, search)


ERRATA: tuple[Erratum, ...] = (
    _erratum(
        "load-not-added",
        "target_not_charged",
        "Work is spread evenly over the workers.",
        "algorithm 1, whose loop takes the worker with the least load and leaves it as it is; it"
        " also sorts the loads without the subgraphs that they belong to",
        placing_errata.uncharged,
    ),
    _erratum(
        "half-updated",
        "at_every_change",
        "What several scripts need is computed once, and results are the same.",
        "an operation over streams gives a result at the moment at which the value of any input"
        " changes; that inputs may change together is not spoken of",
        updating_errata.half_updated,
    ),
    Erratum(
        "gcd-panes",
        "Windows over one sensor are merged so that as little as possible is computed.",
        f"{FRAMEWORK}: different windows over a sensor are merged by the greatest common divisor,"
        " always",
        "A stream is cut into panes as wide as the greatest common divisor of all lengths and"
        " slides over it.",
        "It is cut at the edges of windows instead where that costs less, by the rate of the"
        " stream.",
        slicing_errata.panes_that_lose,
    ),
)
