"""The ledger of a store as a section of a page, with its course over micro-batches."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from model.checking.accounts import EVERY_ROW
from model.checking.claims import Outcome, Verdict
from sim.report.contents import Axis, Chart, Curve, NumbersTable, Point
from sim.report.plot import svg
from sim.report.run_page import RunSection
from sim.report.run_plots import RunPicture
from spark_impl.runtime import accounts
from spark_impl.runtime.accounts import Ledger

POINTS_MAX = 200
"""Most points of a line; beyond, a point stands for several micro-batches."""
SO_FAR = (accounts.READ, accounts.ANSWERED, accounts.PENDING)
IN_NO_ANSWER = (accounts.REFUSED, accounts.REDELIVERED, accounts.LATE, accounts.SHED)
COLUMNS = (*SO_FAR, *IN_NO_ANSWER, accounts.UNASKED)
Course = Sequence[tuple[int, Mapping[str, int]]]
"""Rows of each micro-batch by place, in order."""


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
    pictures = tuple(_pictures(section, points))
    each = -(-len(course) // max(len(points), 1))
    about = "The account has no micro-batch, so there is nothing to draw."
    if pictures:
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
        pictures=pictures,
        about_pictures=about,
        tables=(("Rows by micro-batch", _table(points)),) if pictures else (),
    )


def _points(course: Course) -> Course:
    """Return the course with at most :data:`POINTS_MAX` points, named by their last micro-batch."""
    size, points = -(-len(course) // POINTS_MAX) or 1, list[tuple[int, Counter[str]]]()
    for at, (batch, rows) in enumerate(course):
        here = points.pop()[1] if at % size else Counter[str]()
        here.update(rows)  # a sum would leave out negative changes
        points.append((batch, here))
    return points


def _pictures(section: str, points: Course) -> Iterator[RunPicture]:
    """Yield plots of the rows so far, and of the rows in no answer; none without micro-batches."""
    total, so_far = Counter[str](), []
    for batch, rows in points:
        total.update(rows)
        so_far.append((batch, Counter(total)))
    for number, (heading, places, shown) in enumerate(
        (
            ("Rows so far", SO_FAR, so_far),
            ("Rows of each point that are in no answer", IN_NO_ANSWER, points),
        )
    ):
        known = [place for place in places if any(rows.get(place) for _, rows in shown)]
        if known:
            lines = tuple(_line(place, shown) for place in known)
            chart = Chart("", Axis("micro-batch"), Axis("rows"), lines)
            said = f"{heading}: {', '.join(known)}"
            drawn = svg(chart, f"{section}-{number}", f"{said}, over micro-batches")
            yield RunPicture(said, drawn)


def _line(place: str, shown: Course) -> Curve:
    rows = [(batch, float(each.get(place, 0))) for batch, each in shown]
    return Curve(place, tuple(Point(batch, count, count, count) for batch, count in rows))


def _table(points: Course) -> NumbersTable:
    """Return the rows of each point by place."""
    places = [place for place in COLUMNS if any(rows.get(place) for _, rows in points)]
    rows = [
        (str(batch), *(f"{each.get(place, 0):,}" for place in places)) for batch, each in points
    ]
    return NumbersTable(("micro-batch", *places), tuple(rows), 1)
