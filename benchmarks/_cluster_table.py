"""Figures of the benchmark of a cluster: as they are stored, as a table, and as two pictures."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from straggler.cli.render import markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINKS_MBIT = (1, 10, 100)
GOALS = (0.20, 0.30, inf)
"""Largest relative difference between prediction and measurement: throughput, p50 and p99."""
FIGURES = ("tuples/s", "p50, s", "p99, s")


class Side(NamedTuple):
    """Figures of a cell, predicted or measured."""

    rate_hz: float
    p50_s: float
    p99_s: float


class Cell(NamedTuple):
    """A cell of the table."""

    mbit: int
    room: str
    name: str
    predicted: Side
    measured: Side


def figures_of(cells: Sequence[Cell]) -> Iterator[tuple[str, float]]:
    """Yield the figures of cells, by name."""
    for cell in cells:
        label = f"{cell.room}, {cell.name}, {cell.mbit} Mb/s"
        for who in ("predicted", "measured"):
            side: Side = getattr(cell, who)
            for figure, value in zip(FIGURES, side, strict=True):
                yield f"{label}: {who} {figure}", value


def cells_of(figures: Mapping[str, float]) -> list[Cell]:
    """Return the cells of stored figures, by link, room and name, as they were measured."""
    names = list(dict.fromkeys(label.partition(":")[0] for label in figures))
    found = []
    for label in names:
        room, *middle, link = label.split(", ")
        sides = [
            Side(
                *(
                    figures[f"{label}: {who} {figure}"]
                    for figure in ("tuples/s", "p50, s", "p99, s")
                )
            )
            for who in ("predicted", "measured")
        ]
        found.append(Cell(int(link.split()[0]), room, ", ".join(middle), *sides))
    return found


# --------------------------------------------------------------------------------------- table

COLUMNS = (
    "cell",
    "link, Mb/s",
    "tuples/s, predicted",
    "measured",
    "off by",
    "p50, predicted",
    "measured ",
    "off by ",
    "p99, predicted",
    "measured  ",
    "goal",
)


def with_table(page: str, results: Path) -> str:
    """Return a page with the table as it is now, by a folder of benchmark results."""
    stored = results / "cluster.json"
    if not stored.exists():
        return page
    cells = cells_of(json.loads(stored.read_text("utf-8"))["figures"])
    lines = markdown(dict.fromkeys(COLUMNS, ""), [*rows_of(cells)])
    old = re.compile(r"^\| cell \| link.*\n(\|.*\n)*", re.MULTILINE)
    return old.sub(lambda _: lines + "\n", page)


def rows_of(cells: Sequence[Cell]) -> Iterator[list[object]]:
    """Yield a row of the table for each cell."""
    for cell in cells:
        predicted, measured = cell.predicted, cell.measured
        row: list[object] = [f"`{cell.room}` {cell.name}", cell.mbit]
        for field, form in (("rate_hz", ",.0f"), ("p50_s", ".2f")):
            sides = getattr(predicted, field), getattr(measured, field)
            row += [*(format(side, form) for side in sides), f"{sides[1] / sides[0] - 1:+.0%}"]
        row += [format(predicted.p99_s, ".2f"), format(measured.p99_s, ".2f")]
        yield [*row, "yes" if is_within_goal(cell) else "no"]


def is_within_goal(cell: Cell) -> bool:
    """Return whether throughput and p50 were predicted well enough."""
    pairs = zip(cell.predicted, cell.measured, GOALS, strict=True)
    return all(abs(measured / predicted - 1) <= goal for predicted, measured, goal in pairs)


def ranks_agree(cells: Sequence[Cell]) -> bool:
    """Return whether cells of one link have the same order by predicted and measured throughput."""
    orders = [
        sorted(cells, key=lambda cell: float(getattr(cell, side).rate_hz))
        for side in ("predicted", "measured")
    ]
    return orders[0] == orders[1]


# ------------------------------------------------------------------------------------ pictures


def draw(cells: Sequence[Cell]) -> None:
    """Draw throughput and latency of each room, predicted and measured."""
    from benchmarks.__main__ import MEASURED
    from sim.report.drawing import save

    MEASURED.mkdir(exist_ok=True)
    for room in ("grouping", "join"):
        own = [cell for cell in cells if cell.room == room]
        save(picture, (room, own), MEASURED / f"cluster-{room}.svg")


def picture(room: str, cells: Sequence[Cell]) -> "Figure":
    """Return a picture of the cells of a room: a point is a cell, on the diagonal if predicted."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    from sim.report.drawing import BLACK, BLUE, GREEN, ORANGE

    figure = Figure(figsize=(8.0, 4.2), layout="constrained", facecolor="white")
    FigureCanvasSVG(figure)
    figure.suptitle(f"Room {room} on three hosts: measured over predicted")
    panels = figure.subplots(1, 2)
    titles = (
        ("rate_hz", "throughput (tuples/s)", GOALS[0]),
        ("p50_s", "latency, p50 (s)", GOALS[1]),
    )
    names = list(dict.fromkeys(cell.name for cell in cells))
    marks = dict(zip(names, "osv^D*XP+", strict=False))
    colours = dict(zip(LINKS_MBIT, (ORANGE, GREEN, BLUE), strict=True))
    for axes, (field, title, goal) in zip(panels, titles, strict=True):
        points = [(getattr(c.predicted, field), getattr(c.measured, field)) for c in cells]
        low, high = min(map(min, points)) * 0.9, max(map(max, points)) * 1.1
        axes.plot([low, high], [low, high], color=BLACK, linewidth=0.8)
        ends = [low, high]
        axes.fill_between(
            ends, [(1 - goal) * x for x in ends], [(1 + goal) * x for x in ends], alpha=0.12
        )
        for cell, (x, y) in zip(cells, points, strict=True):
            axes.plot(x, y, marks[cell.name], color=colours[cell.mbit], ms=5.0)
        axes.set(title=title, xlabel="predicted", ylabel="measured")
        axes.set_xlim(low, high)
        axes.set_ylim(low, high)
    legend = [
        *(panels[1].plot([], [], marks[name], color=BLACK, label=name)[0] for name in names),
        *(
            panels[1].plot([], [], "s", color=colours[mbit], label=f"{mbit} Mb/s")[0]
            for mbit in LINKS_MBIT
        ),
    ]
    panels[1].legend(handles=legend, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
