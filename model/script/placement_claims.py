"""Promise 4 of docs/script.md: what a placement must keep, judged on the placement alone.

Rules of this file:

* A placement is judged by what it says: who computes what, and who is sent what. The best over
  whole components is found by trying everything.
"""

from collections.abc import Iterator
from fractions import Fraction

from model.script.optimum import least_makespan
from model.script.placement import (
    WHOLE,
    Placement,
    components,
    hash_baseline,
    load_cap,
    sensors_of,
)
from model.vocabulary import ScriptConfig

COMPONENTS_MAX = 6
"""More are not tried in every way."""


def against(config: ScriptConfig, placed: Placement) -> Iterator[str]:
    """What speaks against a placement that has something to compute."""
    graph, n = placed.graph, config.workers
    for number in graph.computed:
        worker = placed.worker.get(number, -1)
        if not 0 <= worker < n:
            yield f"Computation {number} has no worker."
        elif not sensors_of(graph, number) <= placed.hosts[worker]:
            yield f"Worker {worker} is not sent all that computation {number} reads."
    cap = load_cap(graph, n, config.cap_percent)
    most, sent = hash_baseline(graph, n)
    if placed.communication > sent and most <= cap:
        yield f"{float(placed.communication):,g} is sent; by hash it were {float(sent):,g}."
    if most <= cap < max(placed.loads):
        yield f"The cap of {float(cap):,g} is not kept, which hashing keeps."
    pieces = components(graph)
    if len(pieces) <= COMPONENTS_MAX:
        yield from _against_bound(placed, cap, n)


def _against_bound(placed: Placement, cap: Fraction, n: int) -> Iterator[str]:
    rates = placed.graph.per_hour
    loads = [
        sum((rates[each] for each in piece.sensors), Fraction())
        for piece in components(placed.graph)
    ]
    bound = least_makespan(loads, n) * (Fraction(4, 3) - Fraction(1, 3 * n))
    if max(placed.loads) > bound:
        yield f"A worker has {float(max(placed.loads)):,g}, more than {float(bound):,g}."
    if bound <= cap and placed.way != WHOLE:
        yield "Components are split, although LPT keeps the cap."
