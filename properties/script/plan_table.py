"""The plan of a set of workflows for a terminal: the model's, and that of the query on Spark."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from properties.cli import render
from properties.script.plan import Plan, Rate, Summary, as_float, figure

if TYPE_CHECKING:
    from properties.script.running import Explained

NUMBERS = ("per hour", "worker", "panes cost", "edges cost")
"""Headings of columns with numbers."""


def print_plan(out: Console, plan: Plan) -> None:
    """What is computed, how streams are cut, what is dropped, and the figures."""
    graph = plan.graph
    made = [
        (
            f"#{number}",
            plan.said(number),
            ", ".join(plan.names.get(number, ())),
            figure(graph.per_hour[number]),
            str(plan.placement.worker[number]),
        )
        for number in graph.computed
    ]
    _print_table(out, ("", "computation", "called", "per hour", "worker"), made)
    cut = [
        (plan.name(number), plan.cut(number), *map(_cost, choice[1:]))
        for number, choice in plan.slices.items()
    ]
    _print_table(out, ("windows over", "cut into", "panes cost", "edges cost"), cut)
    _print_dropped(out, plan.dropped)
    render.print_lines(out, plan.sentences())


def print_query(out: Console, query: "Explained") -> None:
    """The same of the query that Spark runs, what each worker is sent, and Spark's own plan."""
    made = [
        (
            f"#{row['number']}",
            row["says"],
            ", ".join(row["names"]),
            figure(row["per_hour"]),
            str(row["worker"]),
            _numbers(row["to"]),
        )
        for row in query.computations
    ]
    _print_table(out, ("", "computation", "called", "per hour", "worker", "sent on to"), made)
    cut = [
        (
            row["stream"],
            _combs(row["combs"]),
            _cost(row["panes_cost"]),
            _cost(row["edges_cost"]),
        )
        for row in query.cuttings
    ]
    _print_table(out, ("windows over", "cut every", "panes cost", "edges cost"), cut)
    sent = [
        (str(row["worker"]), figure(row["per_hour"]), ", ".join(row["sensors"]))
        for row in query.workers
    ]
    _print_table(out, ("worker", "per hour", "is sent"), sent)
    _print_dropped(out, query.dropped)
    render.print_lines(out, summary_of(query).sentences())
    render.print_lines(out, ["", "A micro-batch in Spark:", ""])
    render.print_lines(out, query.physical.splitlines())


def summary_of(query: "Explained") -> Summary:
    """What the plan of a query comes to."""
    found = query.figures
    return Summary(
        found["written"],
        found["computed"],
        found["sensors"],
        found["asked_for"],
        found["placement"],
        [row["per_hour"] for row in query.workers],
        found["cap"],
        found["communication"],
        found["communication_by_hash"],
        found["largest_load_by_hash"],
    )


def _cost(steps: Rate) -> str:
    return f"{as_float(steps):,.1f}" if steps < 1e15 else figure(steps)


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _combs(combs: Sequence[tuple[int, int]]) -> str:
    """Where cuts are, in milliseconds."""
    return " and ".join(
        f"{every_ms:_} ms" + (f" from {offset_ms:_}" if offset_ms else "")
        for every_ms, offset_ms in combs
    )


def _print_dropped(out: Console, sensors: Sequence[str]) -> None:
    if sensors:
        render.print_lines(out, [f"Dropped: {', '.join(sensors)}.", ""])


def _print_table(out: Console, headings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        justify: JustifyMethod = "right" if heading in NUMBERS else "left"
        grid.add_column(heading, justify=justify, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))
    out.print(grid)
    out.print()
