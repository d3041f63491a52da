"""How a stream is cut into slices for the windows over it (docs/script.md, section 7)."""

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
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
    panes = (Comb(reduce(gcd, (n for w in windows for n in (w.length_ms, w.slide_ms))), 0),)
    edges = _edges(windows)
    panes_cost, edges_cost = (_cost(combs, windows, per_hour) for combs in (panes, edges))
    return Cutting(panes if panes_cost <= edges_cost else edges, panes_cost, edges_cost)


def _edges(windows: Sequence[Node]) -> tuple[Comb, ...]:
    """A comb for all begins and one for all ends of each window, without those that add no cut."""
    found: list[Comb] = []
    offsets = {(w.slide_ms, offset) for w in windows for offset in (0, -w.length_ms % w.slide_ms)}
    for every, offset in sorted(offsets):  # a comb lies within one that is not wider
        if not any(
            every % each.every_ms == offset % each.every_ms - each.offset_ms == 0 for each in found
        ):
            found.append(Comb(every, offset))
    return tuple(found)


def _cost(combs: Sequence[Comb], windows: Sequence[Node], per_hour: Fraction) -> Fraction:
    density = min(sum(Fraction(1, comb.every_ms) for comb in combs), per_hour / HOUR_MS)
    spans = {(w.length_ms, w.slide_ms) for w in windows}  # whose slices are folded once
    folds = sum(Fraction(length, slide) for length, slide in spans)
    return per_hour * len(combs) + HOUR_MS * folds * density
