"""The plan of a set of workflows, for a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from properties import render
from properties.script.plan import Plan, figure


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
        (plan.name(number), plan.cut(number), *(f"{float(cost):,.1f}" for cost in choice[1:]))
        for number, choice in plan.slices.items()
    ]
    _print_table(out, ("windows over", "cut into", "panes cost", "edges cost"), cut)
    if plan.dropped:
        render.print_lines(out, [f"Dropped: {', '.join(plan.dropped)}.", ""])
    render.print_lines(out, plan.sentences())


def _print_table(out: Console, headings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        is_number = heading in ("per hour", "worker", "panes cost", "edges cost")
        grid.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))
    out.print(grid)
    out.print()
