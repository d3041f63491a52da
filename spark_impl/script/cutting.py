"""How a stream is cut into slices for the windows over it (docs/script.md, section 7)."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import chain
from math import gcd
from typing import NamedTuple

from spark_impl.script.graph import HOUR_MS, Node


class Comb(NamedTuple):
    """Cuts at all stamps ``offset_ms + k every_ms``."""

    every_ms: int
    offset_ms: int


class Cutting(NamedTuple):
    """The combs of a stream, and what both ways would cost in steps an hour."""

    combs: tuple[Comb, ...]
    panes_cost: Fraction
    edges_cost: Fraction

    @property
    def is_panes(self) -> bool:
        """Whether all slices are equally long."""
        return self.panes_cost <= self.edges_cost


def cut(windows: Sequence[Node], per_hour: Fraction) -> Cutting:
    """The cheaper way to cut a stream of so many tuples an hour."""
    # Windows of the same length and slide fold the same slices.
    panes, edges = _ways(tuple(sorted({(w.length_ms, w.slide_ms) for w in windows})))
    panes_cost, edges_cost = (way.cost(per_hour) for way in (panes, edges))
    cheaper = panes if panes_cost <= edges_cost else edges
    return Cutting(cheaper.combs, panes_cost, edges_cost)


class _Way(NamedTuple):
    combs: tuple[Comb, ...]
    cuts_in_an_hour: Fraction
    spans_in_an_hour: Fraction
    """How many hours of slices windows fold in an hour."""

    def cost(self, per_hour: Fraction) -> Fraction:
        slices = min(self.cuts_in_an_hour, per_hour)
        return per_hour * len(self.combs) + self.spans_in_an_hour * slices


@lru_cache(maxsize=1024)  # most streams have windows as others have
def _ways(spans: tuple[tuple[int, int], ...]) -> tuple[_Way, _Way]:
    """Panes, and cuts at edges."""
    panes = (Comb(reduce(gcd, chain.from_iterable(spans)), 0),)
    folded = sum((Fraction(length, slide) for length, slide in spans), Fraction())

    def way(combs: tuple[Comb, ...]) -> _Way:
        cuts = sum((Fraction(HOUR_MS, comb.every_ms) for comb in combs), Fraction())
        return _Way(combs, cuts, folded)

    return way(panes), way(_edges(spans))


def _edges(spans: Sequence[tuple[int, int]]) -> tuple[Comb, ...]:
    """A comb for all begins and one for all ends of each window, without those that add no cut."""
    found: list[Comb] = []
    offsets = {(slide, offset) for length, slide in spans for offset in (0, -length % slide)}
    for every, offset in sorted(offsets):  # a comb lies within one that is not wider
        within = (
            every % comb.every_ms == 0 and (offset - comb.offset_ms) % comb.every_ms == 0
            for comb in found
        )
        if not any(within):
            found.append(Comb(every, offset))
    return tuple(found)
