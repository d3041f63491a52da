"""Plan of a set of workflows, as data, tables and sentences.

Rules of this file:

* A computation has the name of the first statement that contains it, or else a number.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from model.vocabulary import ScriptConfig
from model.vocabulary.durations import write_duration
from model.vocabulary.script.config import MILLISECOND_US
from model.vocabulary.script.graph import CONSTANT, OPERATION, SENSOR, UNION
from model.vocabulary.script.placement import hash_baseline, load_cap
from model.vocabulary.script.plan import ScriptPlan, compile_plan
from model.vocabulary.settings import JsonObject
from straggler.cli import render
from straggler.errors import counted

SIGNS = ("+", "-", "*", "/")


Rate = Fraction | float
LARGEST = Fraction(sys.float_info.max)


@dataclass(frozen=True)
class DescribedPlan(ScriptPlan):
    """A plan with names and sentences."""

    @cached_property
    def names(self) -> dict[int, tuple[str, ...]]:
        """Names of computations, by number."""
        found: dict[int, list[str]] = {}
        for output in self.graph.outputs:
            if output.is_result:
                found.setdefault(output.node, []).append(f"{output.workflow}.{output.name}")
        return {number: tuple(names) for number, names in found.items()}

    @cached_property
    def dropped(self) -> tuple[str, ...]:
        """Sensors that no script names."""
        asked_for = self.config.asked_for
        return tuple(sensor for sensor, _ in self.config.sensors if sensor not in asked_for)

    def name(self, number: int) -> str:
        """Return the name of a node within the text of another."""
        node = self.graph.nodes[number]
        if node.kind in (SENSOR, CONSTANT, UNION):
            return self.expression_of(number)
        return self.names.get(number, (f"#{number}",))[0]

    def expression_of(self, number: int) -> str:
        """Return the computation of a node, in the language of scripts."""
        node = self.graph.nodes[number]
        if node.kind == SENSOR:
            return f'"{node.sensor}"'
        if node.kind == CONSTANT:
            return f"{node.value:g}"
        inputs = [self.name(each) for each in node.inputs]
        if node.kind == UNION:
            return f"union({', '.join(inputs)})"
        if node.kind == OPERATION and node.op in SIGNS:
            return f" {node.op} ".join(inputs)
        if node.span is not None:
            inputs += [write_duration(span_ms * MILLISECOND_US) for span_ms in node.span[:2]]
            inputs += [f'"{node.span.zone}"'] if node.span.zone else []
        return f"{node.op}({', '.join(inputs)})"

    def cut(self, number: int) -> str:
        """Return how a stream is cut into slices, in words."""
        choice = self.slices[number]
        if choice.is_panes:
            widths = [write_duration(comb.every_ms * MILLISECOND_US) for comb in choice.cutting]
            return f"panes of {' and '.join(widths)}"
        return f"at the edges, {counted(len(choice.cutting), 'comb')}"

    def sentences(self) -> Iterator[str]:
        """Yield the figures of the plan as sentences; loads and rates are in tuples per hour."""
        graph, placed = self.graph, self.placement
        cap = load_cap(graph, self.config.workers, self.config.cap_percent)
        most, by_hash = hash_baseline(graph, self.config.workers)
        written, made = graph.written, len(graph.computed)
        yield (
            f"The scripts contain {counted(written, 'computation')};"
            f" {made:,} {'remains' if made == 1 else 'remain'} after sharing."
        )
        sensors = len(self.config.sensors)
        asked_for = sensors - len(self.dropped)
        be = "is" if asked_for == 1 else "are"
        yield f"{asked_for:,} of {counted(sensors, 'sensor')} {be} used."
        above = ", which is above" if max(placed.loads) > cap else ", within"
        yield (
            f"Tuples an hour by worker (placement: {placed.way}):"
            f" {', '.join(map(figure, placed.loads))}{above} the cap of {figure(cap)}."
        )
        sent = placed.communication
        yield (
            f"Tuples and results sent in an hour: {figure(sent)}{_less(sent, by_hash)};"
            f" by the hash of sensors it would be {figure(by_hash)}, with up to {figure(most)}"
            " tuples at one worker."
        )

    def to_json(self) -> JsonObject:
        """Return plain data; rates in tuples per hour."""
        graph, placed = self.graph, self.placement
        most, sent = hash_baseline(graph, self.config.workers)
        return {
            "written": graph.written,
            "computations": [
                {
                    "number": number,
                    "says": self.expression_of(number),
                    "names": list(self.names.get(number, ())),
                    "worker": placed.worker[number],
                    "per_hour": as_float(graph.per_hour[number]),
                }
                for number in graph.computed
            ],
            "streams": [
                {
                    "stream": self.name(number),
                    "cut": self.cut(number),
                    "panes_cost": as_float(choice.panes_cost),
                    "edges_cost": as_float(choice.edges_cost),
                }
                for number, choice in self.slices.items()
            ],
            "dropped": list(self.dropped),
            "placement": placed.way,
            "workers": [
                {
                    "sensors": sorted(sensors),
                    "per_hour": float(load),
                }
                for sensors, load in zip(placed.sensors, placed.loads, strict=True)
            ],
            "communication": as_float(placed.communication),
            "by_hash": {"largest_load": as_float(most), "communication": as_float(sent)},
        }


def figure(number: Rate) -> str:
    """Return a rate or a load as text, to three digits or as a whole number."""
    return f"{as_float(number):,.0f}" if 1_000 <= number < 1e15 else f"{as_float(number):,.3g}"


def as_float(rate: Rate) -> float:
    """Return a rate as a float, at most the largest: each line of a script may double rates."""
    return float(max(-LARGEST, min(rate, LARGEST)))


def _less(sent: Rate, baseline: Rate) -> str:
    share = as_float(1 - sent / baseline) if baseline else 0.0
    return f", {share:.0%} less" if share > 0 else ""


def make_plan(config: ScriptConfig) -> DescribedPlan:
    """Compile the workflows of a configuration, to describe them."""
    made = compile_plan(config)
    return DescribedPlan(made.config, made.graph, made.slices, made.placement)


SHOWN = 200
"""Most rows of a table, and most sensors of a line: the layout of thousands takes minutes."""
NUMBERS = ("per hour", "worker", "panes cost", "edges cost")
"""Headings of columns with numbers."""


def print_plan(out: Console, plan: DescribedPlan) -> None:
    """Print the computations, the cuts of streams, the dropped sensors and the figures."""
    graph = plan.graph
    made = [
        (
            f"#{number}",
            plan.expression_of(number),
            ", ".join(plan.names.get(number, ())),
            figure(graph.per_hour[number]),
            str(plan.placement.worker[number]),
        )
        for number in graph.computed[:SHOWN]
    ]
    _print_table(out, ("", "computation", "called", "per hour", "worker"), made)
    cut = [
        (plan.name(number), plan.cut(number), *map(_cost, choice[1:]))
        for number, choice in islice(plan.slices.items(), SHOWN)
    ]
    _print_table(out, ("windows over", "cut into", "panes cost", "edges cost"), cut)
    if plan.dropped:
        more = len(plan.dropped) - SHOWN
        others = f" and {more:,} more" if more > 0 else ""
        render.print_lines(out, [f"Dropped: {', '.join(plan.dropped[:SHOWN])}{others}.", ""])
    if len(graph.computed) > SHOWN:
        render.print_lines(out, [f"Tables show {SHOWN} rows; --json FILE has all.", ""])
    render.print_lines(out, plan.sentences())


def _cost(steps: Rate) -> str:
    return f"{as_float(steps):,.1f}" if steps < 1e15 else figure(steps)


def _print_table(out: Console, headings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        justify: JustifyMethod = "right" if heading in NUMBERS else "left"
        grid.add_column(heading, justify=justify, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))
    out.print(grid)
    out.print()
