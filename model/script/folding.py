"""The slices of one stream, and windows as folds of them.

Source: docs/script.md, sections 5 and 7.

Rules of this file:

* Tuples come in the order of their stamps, in as many portions as they like: portions change no
  slice and no window.
* All windows over a stream share its slices. Nothing is dropped but what ``forget`` is told to.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from model.script.graph import Node
from model.script.partial import Partial, Units, answer, in_units, merged, of_values, rescaled
from model.script.rules import Rules
from model.script.slices import Cutting, slice_around
from model.script.stream import Point
from model.vocabulary.script import MILLISECOND_US


class Slices:
    """One stream in pieces, for all windows over it."""

    __slots__ = ("_cutting", "_origin_us", "_rules", "_scale", "parts", "starts_us", "until_us")

    def __init__(self, cutting: Cutting, rules: Rules) -> None:
        self.until_us = 0
        """Every tuple with a stamp below this has been taken."""
        self.starts_us: list[int] = []
        self.parts: list[Partial] = []
        """All of one scale, so that they can be folded together."""
        self._cutting = cutting
        self._rules = rules
        self._scale = 1
        self._origin_us: int | None = None

    def take(self, points: Sequence[Point], until_us: int) -> None:
        """Take the tuples, in order, with stamps from ``self.until_us`` to below ``until_us``."""
        self.until_us = until_us
        if not points:
            return
        stamps = [stamp for stamp, _ in points]
        values = [value for _, value in points]
        whole = self._to_scale(in_units(values))
        if self._origin_us is None:
            self._origin_us = self._rules.origin_us(stamps[0])
        origin_us, first = self._origin_us, 0
        while first < len(stamps):
            start_us, end_us = slice_around(self._cutting, stamps[first] - origin_us)
            behind = bisect_left(stamps, end_us + origin_us, first)
            units = Units(whole[first:behind], self._scale)
            self._add(start_us + origin_us, of_values(values[first:behind], units))
            first = behind

    def windows(self, node: Node, from_us: int) -> Iterator[tuple[int, float]]:
        """Yield end and aggregate of the windows that end at ``from_us`` or later, in order.

        ``from_us`` is a multiple of the slide. Windows without a tuple are left out, and so are
        those that end after ``self.until_us``.
        """
        assert node.span is not None
        length_us, slide_us = (span * MILLISECOND_US for span in node.span)
        starts_us = self.starts_us
        first = bisect_left(starts_us, from_us - length_us)
        while first < len(starts_us):
            end_us = max(from_us, (starts_us[first] // slide_us + 1) * slide_us)
            if end_us > self.until_us:
                return
            # What lies between two windows is in none.
            first = bisect_left(starts_us, end_us - length_us, first)
            behind = bisect_left(starts_us, end_us, first)
            if first < behind:
                parts = self.parts[first:behind]
                mean = self._rules.mean
                yield end_us, mean(parts) if node.op == "avg" else answer(node.op, parts)
            from_us = end_us + slide_us
            first = bisect_left(starts_us, from_us - length_us, first)

    def forget(self, before_us: int) -> None:
        """Drop the slices that start before a stamp: no window needs them any more."""
        behind = bisect_left(self.starts_us, before_us)
        del self.starts_us[:behind], self.parts[:behind]

    def _add(self, start_us: int, part: Partial) -> None:
        if self.starts_us and self.starts_us[-1] == start_us:
            self.parts[-1] = merged(self.parts[-1], part)
        else:
            self.starts_us.append(start_us)
            self.parts.append(part)

    def _to_scale(self, units: Units) -> list[int]:
        """Return values in units of the slices, which become smaller if that takes it."""
        whole, scale = units
        if scale > self._scale:
            self.parts = [rescaled(part, scale) for part in self.parts]
            self._scale = scale
        factor = self._scale // scale
        return whole if factor == 1 else [each * factor for each in whole]
