"""The ledger of a store as a section of a page, with its course over micro-batches."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TypeAlias

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from model.checking.accounts import EVERY_ROW
from model.checking.claims import Outcome, Verdict
from sim.report.drawing import STYLES, as_svg, panels
from sim.report.run_page import NumbersTable, RunSection
from spark_impl.runtime import accounts
from spark_impl.runtime.accounts import Ledger

POINTS_MAX = 200
"""Most points of a line; beyond, a point stands for several micro-batches."""
SO_FAR = (accounts.READ, accounts.ANSWERED, accounts.PENDING)
IN_NO_ANSWER = (accounts.REFUSED, accounts.REDELIVERED, accounts.LATE, accounts.SHED)
COLUMNS = (*SO_FAR, *IN_NO_ANSWER, accounts.UNASKED)
Course: TypeAlias = Sequence[tuple[int, Mapping[str, int]]]
"""Rows of each micro-batch by place, in order."""
Panels: TypeAlias = Sequence[tuple[str, Sequence[str], Course]]
"""Headings, each with the places that are drawn, and their rows."""


def ledger_section(
    name: str, number: int, store: str, ledger: Ledger, course: Course
) -> RunSection:
    """Return the section of a ledger; ``name`` is that of its aggregate, if there are several."""
    section = f"ledger-{number}"
    outcome = Outcome.HOLDS if ledger.balances else Outcome.BROKEN
    sentence = f"Accounted for: {ledger.accounted:,} of {ledger.read:,}."
    landed = [] if ledger.landed is None else [("landed", ledger.landed)]
    rows = [(accounts.READ, ledger.read), *landed, *ledger.rows()]
    figures = tuple((place, f"{count:,}") for place, count in rows if count)
    points = _points(course)
    shown = _panels(points)
    each = -(-len(course) // max(len(points), 1))
    about = "The account has no micro-batch, so there is nothing to draw."
    if shown:
        stands = f"{each} micro-batches" if each > 1 else "a micro-batch"
        about = f"A point stands for {stands}. Rows that did not land are in no micro-batch."
    return RunSection(
        name=section,
        title=name or "All rows",
        about="Where each row is that was handed in.",
        outcome=outcome,
        sentences=(sentence,),
        key_figures=(("Rows", figures),),
        settings=(("store", store),),
        verdicts=(Verdict(EVERY_ROW, outcome, sentence, occurred=ledger.read),),
        report=(),
        faults=(),
        picture=as_svg(_draw, shown) if shown else "",
        about_picture=about,
        tables=(("Rows by micro-batch", _table(points)),) if shown else (),
    )


def _points(course: Course) -> Course:
    """Return the course with at most :data:`POINTS_MAX` points, named by their last micro-batch."""
    size, points = -(-len(course) // POINTS_MAX) or 1, list[tuple[int, Counter[str]]]()
    for at, (batch, rows) in enumerate(course):
        here = points.pop()[1] if at % size else Counter[str]()
        here.update(rows)  # a sum would leave out negative changes
        points.append((batch, here))
    return points


def _panels(points: Course) -> Panels:
    """Return panels of the rows so far, and of the rows in no answer; none without rows."""
    total, so_far = Counter[str](), []
    for batch, rows in points:
        total.update(rows)
        so_far.append((batch, Counter(total)))
    drawn = (
        ("Rows so far", SO_FAR, so_far),
        ("Rows of each point that are in no answer", IN_NO_ANSWER, points),
    )
    known = [
        (heading, [place for place in places if any(rows.get(place) for _, rows in shown)], shown)
        for heading, places, shown in drawn
    ]
    return [each for each in known if each[1]]


def _draw(shown: Panels) -> Figure:
    """Draw rows by place over micro-batches, panel below panel."""
    size = (8.0, 2.2 * len(shown) + 0.6)
    figure, axes_below = panels(len(shown), size, "", "micro-batch")
    for axes, (heading, places, points) in zip(axes_below, shown, strict=True):
        axes.set_title(heading)
        axes.set_ylabel("rows")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        for place, (colour, style) in zip(places, cycle(STYLES), strict=False):
            rows = [each.get(place, 0) for _, each in points]
            batches = [batch for batch, _ in points]
            axes.plot(batches, rows, label=place, color=colour, linestyle=style, marker=".")
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _table(points: Course) -> NumbersTable:
    """Return the rows of each point by place."""
    places = [place for place in COLUMNS if any(rows.get(place) for _, rows in points)]
    rows = [
        (str(batch), *(f"{each.get(place, 0):,}" for place in places)) for batch, each in points
    ]
    return NumbersTable(("micro-batch", *places), tuple(rows), 1)
