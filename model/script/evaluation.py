"""What a sharing graph computes: slices once a stream, every node once.

Source: docs/script.md, sections 5 to 7.

Rules of this file:

* A node is computed from the streams of its inputs, a window from slices that all windows over
  the same stream share.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from heapq import merge
from itertools import groupby
from math import inf

from model.script.graph import CONSTANT, OPERATION, SENSOR, UNION, Graph, Node
from model.script.partial import Partial, Units, answer, in_units, of_values
from model.script.rules import Rules, cutting_of
from model.script.slices import Cutting, slice_around
from model.script.stream import Point, Stream, before, known
from model.vocabulary.script import END_US, MILLISECOND_US

CONSTANT_STREAM = Stream((), END_US)


def evaluate(graph: Graph, sensors: Mapping[str, Stream], rules: Rules) -> list[Stream]:
    """The stream of every node; ``undefined`` is that of the node alone."""
    spans = graph.spans()
    streams: list[Stream] = []
    slices: dict[int, Slices] = {}
    for node in graph.nodes:
        if node.span is not None:
            source = node.inputs[0]
            if source not in slices:
                cutting = cutting_of(rules, spans[source], graph.per_hour[source])
                slices[source] = Slices(cutting, streams[source], rules)
            made = slices[source].window(node)
        elif node.kind == OPERATION:
            made = operation(node, graph.nodes, streams, rules)
        elif node.kind == UNION:
            made = union(node, [streams[each] for each in node.inputs], rules)
        else:
            made = sensors[node.sensor] if node.kind == SENSOR else CONSTANT_STREAM
        streams.append(made)
    return streams


def until_us_of(node: Node, inputs_us: Iterable[int], rules: Rules) -> int:
    """Until when a node is known whose inputs are known until these stamps."""
    least_us = min(inputs_us, default=END_US)
    if node.span is None or least_us == END_US:
        return least_us
    slide_us = node.span.slide_ms * MILLISECOND_US
    return rules.stamp_us((least_us // slide_us + 1) * slide_us)


def union(node: Node, parts: Sequence[Stream], rules: Rules) -> Stream:
    """All tuples of all parts, in order."""
    until_us = until_us_of(node, (part.until_us for part in parts), rules)
    points: list[Point] = []
    for part in parts:
        points += before(part.points, until_us)
    return Stream(tuple(sorted(points)), until_us)


class Slices:
    """One stream in pieces, for all windows over it."""

    def __init__(self, cutting: Cutting, source: Stream, rules: Rules) -> None:
        self.rules = rules
        self.until_us = source.until_us
        stamps = [stamp for stamp, _ in source.points]
        values = [value for _, value in source.points]
        whole, scale = in_units(values)
        origin_us = rules.origin_us(stamps)
        self.starts_us: list[int] = []
        self.parts: list[Partial] = []
        first = 0
        while first < len(stamps):
            start_us, end_us = slice_around(cutting, stamps[first] - origin_us)
            behind = bisect_left(stamps, end_us + origin_us, first)
            units = Units(whole[first:behind], scale)
            self.starts_us.append(start_us + origin_us)
            self.parts.append(of_values(values[first:behind], units))
            first = behind

    def window(self, node: Node) -> Stream:
        """A fold of slices for every window that has one."""
        assert node.span is not None
        length_us, slide_us = (span * MILLISECOND_US for span in node.span)
        until_us = until_us_of(node, (self.until_us,), self.rules)
        ends_us = {
            end_us
            for start_us in self.starts_us
            for end_us in range(
                (start_us // slide_us + 1) * slide_us, start_us + length_us + 1, slide_us
            )
        }
        values = {}
        for end_us in ends_us:
            values[self.rules.stamp_us(end_us)] = self._fold(node.op, end_us - length_us, end_us)
        return known(values, until_us)

    def _fold(self, op: str, start_us: int, end_us: int) -> float:
        first = bisect_left(self.starts_us, start_us)
        parts = self.parts[first : bisect_left(self.starts_us, end_us, first)]
        return self.rules.mean(parts) if op == "avg" else answer(op, parts)


# ------------------------------------------------------------------------------------ operations


def operation(node: Node, nodes: Sequence[Node], streams: Sequence[Stream], rules: Rules) -> Stream:
    """Runs through the stamps of all inputs, and knows the latest value of each."""
    latest = {
        each: nodes[each].value if nodes[each].kind == CONSTANT else None for each in node.inputs
    }
    until_us = until_us_of(node, (streams[each].until_us for each in node.inputs), rules)
    updates = merge(*([(*point, each) for point in streams[each].points] for each in latest))
    points: list[Point] = []
    undefined: set[int] = set()
    for stamp, group in groupby(updates, lambda update: update[0]):
        if stamp >= until_us:
            break
        # In order of value: of several at one time the greatest stays.
        for at_once in [list(group)] if rules.is_atomic else [[each] for each in group]:
            latest.update({each: value for _, value, each in at_once})
            values = [latest[each] for each in node.inputs]
            defined = [value for value in values if value is not None]
            if len(defined) == len(values):
                value = computed(node.op, defined) + 0.0
                if abs(value) < inf:
                    points.append((stamp, value))
                else:
                    undefined.add(stamp)
    return Stream(tuple(sorted(points)), until_us, frozenset(undefined))


def computed(op: str, values: Sequence[float]) -> float:
    """One operation; infinite, or not a number, where it is undefined."""
    if op in ("max", "min"):
        return max(values) if op == "max" else min(values)
    if op in ("avg", "sum"):
        return answer(op, [of_values(values, in_units(values))])
    left, right = values
    if op == "+":
        return left + right
    if op == "-":
        return left - right
    if op == "*":
        return left * right
    return left / right if right else inf
