"""Picture of the sharing graph of a plan, as SVG: sensors on the left, results on the right.

Rules of this file:

* A column is a step of the computation, a colour a worker. Slices stand between a stream and its
  windows. Computations that several workflows need have a thick border.
* Boxes of a column stand in the order of their inputs, so that few lines cross.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from statistics import fmean

from model.vocabulary.script.graph import CONSTANT, SENSOR, UNION
from straggler.rooms.script.plan import DescribedPlan, figure

COLUMN, WIDTH, ROW, HEIGHT, LEFT, TOP = 300, 236, 46, 34, 20, 70
LETTERS = 38
"""Letters that fit into a box."""
COLOURS = (
    "#cfe2f3",
    "#fde5cd",
    "#d6ead2",
    "#f4d3d3",
    "#e3d9f0",
    "#e9ddd3",
    "#f7d9ea",
    "#e0e0e0",
    "#eeeec6",
    "#cdeef2",
)
"""Colours of workers; after the last the first is used again."""
PLAIN, GREY = "#ffffff", "#999999"
NAMESPACE = "http://www.w3.org/2000/svg"

Key = tuple[str, int]
"""A kind (node or slices) and the number of the node."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box of the picture."""

    text: str
    below: str
    """Second line."""
    colour: str
    inputs: tuple[Key, ...]
    is_shared: bool = False
    is_round: bool = False


def picture(plan: DescribedPlan) -> str:
    """Return the text of an SVG file."""
    boxes = dict(_boxes(plan))
    places = _places(boxes)
    width = LEFT * 2 + WIDTH + COLUMN * max(column for column, _ in places.values())
    height = round(TOP + ROW * (1 + max(row for _, row in places.values())) + LEFT)
    lines = list(_dropped(plan, height))
    height += 18 * len(lines)
    parts = [
        f'<svg xmlns="{NAMESPACE}" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="{PLAIN}"/>',
        *_legend(plan),
    ]
    for key, box in boxes.items():
        parts += [_line(places[each], places[key]) for each in box.inputs]
    parts += [_box(box, *places[key]) for key, box in boxes.items()]
    return "\n".join([*parts, *lines, "</svg>"]) + "\n"


def _boxes(plan: DescribedPlan) -> Iterator[tuple[Key, Box]]:
    """Yield all boxes, inputs before the boxes that need them."""
    graph, placed = plan.graph, plan.placement
    flows = _workflows(plan)
    needed = {each for node in graph.nodes for each in node.inputs}
    for number, node in enumerate(graph.nodes):
        key, inputs = ("node", number), tuple(("node", each) for each in dict.fromkeys(node.inputs))
        rate = f"{figure(graph.per_hour[number])} an hour"
        if node.kind == SENSOR:
            at = [str(worker) for worker, hosts in enumerate(placed.hosts) if number in hosts]
            if at:
                yield key, Box(node.sensor, f"{rate}, to {', '.join(at)}", PLAIN, (), is_round=True)
        elif node.kind == UNION:
            if number in needed:
                yield key, Box(f"union of {len(node.inputs)}", rate, PLAIN, inputs, is_round=True)
        elif node.kind != CONSTANT:
            if node.span is not None:
                inputs = (("slices", node.inputs[0]),)
            inputs = tuple(each for each in inputs if graph.nodes[each[1]].kind != CONSTANT)
            colour = COLOURS[placed.worker[number] % len(COLOURS)]
            names = ", ".join(plan.names.get(number, (f"#{number}",)))
            text = _formula(plan, number)
            yield key, Box(text, names, colour, inputs, is_shared=len(flows.get(number, ())) > 1)
        if number in plan.slices:
            choice = plan.slices[number]
            cost = f"{figure(choice.panes_cost)} or {figure(choice.edges_cost)} steps"
            yield ("slices", number), Box(plan.cut(number), cost, PLAIN, (key,))


def _formula(plan: DescribedPlan, number: int) -> str:
    """Return the text of a computation; a window omits its source, which a line shows."""
    text = plan.expression_of(number)
    node = plan.graph.nodes[number]
    if node.span is None:
        return text
    return f"{node.op} of {text[:-1].rsplit(', ', 2)[1]} every {text[:-1].rsplit(', ', 2)[2]}"


def _workflows(plan: DescribedPlan) -> Mapping[int, set[str]]:
    """Return the workflows that contain each computation."""
    found: dict[int, set[str]] = {}
    for output in plan.graph.outputs:
        for number in (output.node, *output.own):
            found.setdefault(number, set()).add(output.workflow)
    return found


def _places(boxes: Mapping[Key, Box]) -> dict[Key, tuple[int, float]]:
    """Return column and row of every box."""
    columns: dict[Key, int] = {}
    for key, box in boxes.items():
        columns[key] = 1 + max((columns[each] for each in box.inputs), default=-1)
    rows: dict[Key, float] = {}
    for column in sorted(set(columns.values())):
        inside = [key for key, at in columns.items() if at == column]
        wanted = {
            key: fmean([rows[each] for each in boxes[key].inputs]) if boxes[key].inputs else n
            for n, key in enumerate(inside)
        }
        free = 0.0
        for key in sorted(inside, key=lambda each: (wanted[each], each)):
            rows[key] = max(free, wanted[key])
            free = rows[key] + 1
    return {key: (columns[key], rows[key]) for key in boxes}


# ---------------------------------------------------------------------------------------- drawing


def _at(column: int, row: float) -> tuple[int, int]:
    return LEFT + column * COLUMN, round(TOP + row * ROW)


def _box(box: Box, column: int, row: float) -> str:
    x, y = _at(column, row)
    radius = HEIGHT // 2 if box.is_round else 3
    border = 2.5 if box.is_shared else 0.8
    return (
        f"<g><title>{escape(box.text)}: {escape(box.below)}</title>"
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="{radius}" '
        f'fill="{box.colour}" stroke="#333" stroke-width="{border}"/>'
        f'<text x="{x + WIDTH // 2}" y="{y + 14}" text-anchor="middle">{_short(box.text)}</text>'
        f'<text x="{x + WIDTH // 2}" y="{y + 28}" text-anchor="middle" font-size="9" '
        f'fill="#555">{_short(box.below, LETTERS + 8)}</text></g>'
    )


def _short(text: str, letters: int = LETTERS) -> str:
    return escape(text if len(text) <= letters else f"{text[: letters - 1]}…")


def _line(start: tuple[int, float], end: tuple[int, float]) -> str:
    (x, y), (to_x, to_y) = _at(*start), _at(*end)
    x, y, to_y = x + WIDTH, y + HEIGHT // 2, to_y + HEIGHT // 2
    bend = min(30, (to_x - x) // 2)
    # The bend is close to the start, so that the line crosses other columns straight.
    path = f"M{x},{y} C{x + bend},{y} {to_x - bend},{to_y} {to_x},{to_y}"
    return f'<path d="{path}" fill="none" stroke="{GREY}" stroke-width="0.8"/>'


def _legend(plan: DescribedPlan) -> Iterator[str]:
    sent = f"{figure(plan.placement.communication)} tuples and results sent an hour"
    kept = f"{plan.graph.written:,} computations written, {len(plan.graph.computed):,} made"
    yield f'<text x="{LEFT}" y="22" font-size="14">{kept}; {sent}</text>'
    x = LEFT
    for worker, load in enumerate(plan.placement.loads[: len(COLOURS)]):
        text = f"worker {worker}: {figure(load)} an hour"
        square = f'<rect x="{x}" y="34" width="12" height="12" fill="{COLOURS[worker]}"'
        yield f'{square} stroke="#333"/>'
        yield f'<text x="{x + 17}" y="44">{text}</text>'
        x += 40 + 6 * len(text)
    yield f'<text x="{x}" y="44">thick border: several workflows need it</text>'


def _dropped(plan: DescribedPlan, top: int) -> Iterator[str]:
    """Yield the sensors that no script names, a few a line."""
    names = plan.dropped
    for first in range(0, len(names), 12):
        word = "dropped: " if first == 0 else ""
        text = escape(word + ", ".join(names[first : first + 12]))
        y = top + 18 * (first // 12)
        yield f'<text x="{LEFT}" y="{y}" fill="{GREY}">{text}</text>'
