"""The computation of a sharing graph: slices once per stream, and every node once.

Source: docs/script.md, sections 5 to 7.

Rules of this file:

* A node is computed from the streams of its inputs. A window is a fold of slices that all windows
  over the same stream share.
* Tuples come in the order of their stamps, in portions of any size: portions change no slice and no
  window. ``forget`` alone drops something.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import inf
from typing import TypeAlias

from model.script.graph import CONSTANT, OPERATION, SENSOR, UNION, Graph, Node
from model.script.rules import Rules, cutting_of
from model.script.slices import (
    Cutting,
    Partial,
    Units,
    answer,
    merge_partials,
    partial_of,
    rescale,
    slice_around,
    to_units,
)
from model.script.stream import Point, Stream, before, known_stream
from model.vocabulary.script.config import END_US, MILLISECOND_US


class Slices:
    """The slices of one stream, for all windows over it."""

    __slots__ = ("_cutting", "_origin_us", "_rules", "_scale", "parts", "starts_us", "until_us")

    def __init__(self, cutting: Cutting, rules: Rules) -> None:
        self.until_us = 0
        """Stamp below which every tuple has been taken."""
        self.starts_us: list[int] = []
        self.parts: list[Partial] = []
        """Partial aggregates of one scale, so that they can be folded together."""
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
        whole = self._to_scale(to_units(values))
        if self._origin_us is None:
            self._origin_us = self._rules.origin_us(stamps[0])
        origin_us, first = self._origin_us, 0
        while first < len(stamps):
            start_us, end_us = slice_around(self._cutting, stamps[first] - origin_us)
            behind = bisect_left(stamps, end_us + origin_us, first)
            units = Units(whole[first:behind], self._scale)
            self._add(start_us + origin_us, partial_of(values[first:behind], units))
            first = behind

    def windows(self, node: Node, from_us: int) -> Iterator[tuple[int, float]]:
        """Yield end and aggregate of the windows that end at ``from_us`` or later, in order.

        ``from_us`` is a multiple of the slide. Windows without a tuple are left out, and so are
        windows that end after ``self.until_us``.
        """
        assert node.span is not None
        length_us, slide_us = (span * MILLISECOND_US for span in node.span)
        starts_us = self.starts_us
        first = bisect_left(starts_us, from_us - length_us)
        while first < len(starts_us):
            end_us = max(from_us, (starts_us[first] // slide_us + 1) * slide_us)
            if end_us > self.until_us:
                return
            # Slices between two windows are in none.
            first = bisect_left(starts_us, end_us - length_us, first)
            behind = bisect_left(starts_us, end_us, first)
            if first < behind:
                parts = self.parts[first:behind]
                mean = self._rules.mean
                yield end_us, mean(parts) if node.op == "avg" else answer(node.op, parts)
            from_us = end_us + slide_us
            first = bisect_left(starts_us, from_us - length_us, first)

    def forget(self, before_us: int) -> None:
        """Drop the slices that start before a stamp, because no window needs them any more."""
        behind = bisect_left(self.starts_us, before_us)
        del self.starts_us[:behind], self.parts[:behind]

    def _add(self, start_us: int, part: Partial) -> None:
        if self.starts_us and self.starts_us[-1] == start_us:
            self.parts[-1] = merge_partials(self.parts[-1], part)
        else:
            self.starts_us.append(start_us)
            self.parts.append(part)

    def _to_scale(self, units: Units) -> list[int]:
        """Return values in units of the slices; the units become smaller if a value needs it."""
        whole, scale = units
        if scale > self._scale:
            self.parts = [rescale(part, scale) for part in self.parts]
            self._scale = scale
        factor = self._scale // scale
        return whole if factor == 1 else [each * factor for each in whole]


CONSTANT_STREAM = Stream((), END_US)
Latest: TypeAlias = dict[int, float | None]
"""Latest value of each input of an operation, by input; ``None`` before the first one."""


def evaluate(graph: Graph, sensors: Mapping[str, Stream], rules: Rules) -> list[Stream]:
    """Return the stream of every node; ``undefined`` stamps are the node's, not its inputs'."""
    spans = graph.spans()
    streams: list[Stream] = []
    slices: dict[int, Slices] = {}
    for node in graph.nodes:
        if node.span is not None:
            source = node.inputs[0]
            if source not in slices:
                cutting = cutting_of(rules, spans[source], graph.per_hour[source])
                slices[source] = Slices(cutting, rules)
                slices[source].take(*streams[source][:2])
            made = window(node, slices[source], 0, rules)
        elif node.kind == OPERATION:
            latest = first_values(node, graph.nodes)
            until_us = until_us_of(node, (streams[each].until_us for each in latest), rules)
            points = {each: before(streams[each].points, until_us) for each in latest}
            made = operation(node, latest, points, until_us, rules)
        elif node.kind == UNION:
            made = union(node, [streams[each] for each in node.inputs], rules)
        else:
            made = sensors[node.sensor] if node.kind == SENSOR else CONSTANT_STREAM
        streams.append(made)
    return streams


def until_us_of(node: Node, inputs_us: Iterable[int], rules: Rules) -> int:
    """Return the stamp until which a node is known, from the stamps of its inputs."""
    least_us = min(inputs_us, default=END_US)
    if node.span is None or least_us == END_US:
        return least_us
    slide_us = node.span.slide_ms * MILLISECOND_US
    return rules.stamp_us((least_us // slide_us + 1) * slide_us)


def known_at_first(graph: Graph, rules: Rules) -> list[int]:
    """Return the stamp until which each node is known before the first tuple."""
    until_us: list[int] = []
    for node in graph.nodes:
        inputs_us = [until_us[each] for each in node.inputs]
        until_us.append(0 if node.kind == SENSOR else until_us_of(node, inputs_us, rules))
    return until_us


def union(node: Node, parts: Sequence[Stream], rules: Rules) -> Stream:
    """Return all tuples of all parts, in order."""
    until_us = until_us_of(node, (part.until_us for part in parts), rules)
    points: list[Point] = []
    for part in parts:
        points += before(part.points, until_us)
    return Stream(tuple(sorted(points)), until_us)


def window(node: Node, slices: Slices, from_us: int, rules: Rules) -> Stream:
    """Return the windows that end at ``from_us`` or later, as far as they are known."""
    values = {rules.stamp_us(end_us): value for end_us, value in slices.windows(node, from_us)}
    return known_stream(values, until_us_of(node, (slices.until_us,), rules))


# ------------------------------------------------------------------------------------ operations


def operation(
    node: Node,
    latest: Latest,
    points: Mapping[int, Sequence[Point]],
    until_us: int,
    rules: Rules,
) -> Stream:
    """Compute an operation at every stamp of new tuples, and update the latest values."""
    updates = sorted([(*point, each) for each, new in points.items() for point in new])
    made: list[Point] = []
    undefined: set[int] = set()
    for stamp, group in groupby(updates, lambda update: update[0]):
        # Updates are in order of value, so the greatest of several at one time stays.
        for at_once in [list(group)] if rules.is_atomic else [[each] for each in group]:
            latest.update({each: value for _, value, each in at_once})
            values = [latest[each] for each in node.inputs]
            defined = [value for value in values if value is not None]
            if len(defined) == len(values):
                value = compute(node.op, defined) + 0.0
                if abs(value) < inf:
                    made.append((stamp, value))
                else:
                    undefined.add(stamp)
    return Stream(tuple(sorted(made)), until_us, frozenset(undefined))


def first_values(node: Node, nodes: Sequence[Node]) -> Latest:
    """Return the latest values of an operation's inputs before the first tuple."""
    return {
        each: nodes[each].value if nodes[each].kind == CONSTANT else None for each in node.inputs
    }


def compute(op: str, values: Sequence[float]) -> float:
    """Return the result of one operation; infinite or not a number if it is undefined."""
    if op in ("max", "min"):
        return max(values) if op == "max" else min(values)
    if op in ("avg", "sum"):
        return answer(op, [partial_of(values, to_units(values))])
    left, right = values
    if op == "+":
        return left + right
    if op == "-":
        return left - right
    if op == "*":
        return left * right
    return left / right if right else inf
