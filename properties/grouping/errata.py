"""Errata of room ``grouping``: where time-aware grouping, read literally, breaks its promises.

Source: TAG, time-aware grouping for stream processing.
"""

from collections.abc import Callable

from model.grouping.variants import VARIANTS
from properties.grouping import balance_errata, key_errata
from properties.pages.errata import Erratum, Findings

TAG = "TAG, time-aware grouping for stream processing"
CONSTANT = "The imbalance is O(1), whatever the speeds of the instances are."


def _erratum(
    name: str, variant: str, promise: str, source: str, search: Callable[[], Findings]
) -> Erratum:
    """One that is a variant of the router, too."""
    bug = VARIANTS[variant]
    return Erratum(name, promise, f"{TAG}: {source}", bug.mistake, bug.corrected, search)


ERRATA: tuple[Erratum, ...] = (
    _erratum(
        "uniform-candidates",
        "uniform_if_light",
        CONSTANT,
        "keys that are not heavy go to one of two instances, by two hash functions",
        balance_errata.uniform,
    ),
    Erratum(
        "hidden-makespan",
        "Where the imbalance is small, the instances are used well.",
        f"{TAG}: balance is measured as I = (max l - mean l) / (mean l)",
        "I compares the largest work with the mean of what was done.",
        "rho compares it with what a fluid would take: max l * S / m - 1.",
        balance_errata.hidden,
    ),
    _erratum(
        "way-as-work",
        "with_propagation",
        CONSTANT,
        "the time of a tuple is said to include its propagation to the instance",
        balance_errata.propagation,
    ),
    _erratum(
        "one-candidate",
        "heavy_drawn",
        "A heavy key is spread over several instances.",
        "as many draws, by speed, as a key has multiples of q; that they differ is not asked for",
        key_errata.one_candidate,
    ),
    Erratum(
        "memory",
        "k keys need at most 2k + 5n^2 - 2n entries.",
        f"{TAG}: memory, with at most 5n heavy keys; which are heavy changes from window to window",
        "Entries are counted as if the heavy keys and their candidates stayed the same.",
        "In a window there are at most 2k + 5n^2 - 10n; at its end they are merged and given up.",
        key_errata.memory,
    ),
    _erratum(
        "counters-rounded-down",
        "too_few_counters",
        "A key with more than eps of the tuples is found.",
        "the size of the summary that finds the heavy keys, floor(1/eps)",
        key_errata.counters,
    ),
)
