"""Rules that look right and are not: literal readings of the source, and planted bugs.

Rules of this file:

* A variant is the rules of a router with entries replaced. Its example is a smallest workload on
  which the reference keeps the promise and the variant does not.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import floor

from model.checking.variants import AGREEMENT, PLANTED, Variant
from model.grouping.candidates import (
    CANDIDATES,
    drawn_by_speed,
    two_instances,
)
from model.grouping.claims import FEW
from model.grouping.machine import system
from model.grouping.rules import COSTS, RULES
from model.grouping.state import Candidates, Rules, Table
from model.vocabulary import Event, GroupingConfig, Workload

PAPER = "TAG, read literally"

_variant = partial(Variant, system=system)


# ------------------------------------------------------------------------------ what they decide


def _with_propagation(config: GroupingConfig, times_us: tuple[int, ...]) -> tuple[int, ...]:
    pairs = zip(times_us, config.latency_us or (0,) * len(times_us), strict=True)
    return tuple([time_us + latency_us for time_us, latency_us in pairs])


def _with_tag(light: Candidates, heavy: Candidates) -> Rules:
    def found(table: Table, key: str) -> set[int]:
        return (heavy if key in table.heavy else light)(table, key)

    return replace(RULES, candidates={**CANDIDATES, "tag": found})


# ------------------------------------------------------------------------------------- the table


def _case(keys: str, cuts: tuple[int, ...] = (), **config: object) -> Workload:
    """Return a workload with one tuple a letter, and two instances unless said otherwise."""
    arrivals = tuple(Event(seq, seq, key, 100, 1.0, 100) for seq, key in enumerate(keys))
    return Workload("grouping", arrivals, {"instances": 2, "window_tuples": 1, **config}, cuts)


VARIANTS: Mapping[str, Variant[Rules]] = {
    variant.name: variant
    for variant in (
        _variant(
            "too_few_counters",
            AGREEMENT,
            "A summary has floor(1/eps) counters.",
            PLANTED,
            "A summary has ceil(1/eps) counters.",
            replace(RULES, counters=lambda config: floor(1 / config.eps_share)),
            _case("abcddddd", (4, 7), theta=0.51, eps=0.252, window_tuples=7),
        ),
        _variant(
            "heavy_drawn",
            FEW,
            "A heavy key's candidates are drawn by speed, and may be one.",
            PAPER,
            "A key's candidates are a beginning of its rendezvous order, two at least.",
            _with_tag(CANDIDATES["tag"], heavy=drawn_by_speed),
            _case("cc", (1,)),
        ),
        _variant(
            "uniform_if_light",
            AGREEMENT,
            "A light key's two candidates are uniform, whatever the speeds are.",
            PAPER,
            "The two are the first of its rendezvous order, which is weighted by speed.",
            _with_tag(two_instances, heavy=CANDIDATES["tag"]),
            _case("b", instances=3, times_us=((0, (1, 1, 9)),)),
        ),
        _variant(
            "with_propagation",
            AGREEMENT,
            "The time of a tuple includes its way to the instance.",
            PAPER,
            "It is the time that the instance is busy; the way chooses among equals.",
            replace(RULES, costs={**COSTS, "tag": _with_propagation}),
            _case("adbb", window_tuples=4, latency_us=(5, 0)),
        ),
    )
}
