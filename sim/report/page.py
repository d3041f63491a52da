"""The page: verdicts first, then one experiment after the other.

Rules of this file:

1. The page fetches nothing and runs nothing; a policy in its head makes browsers hold it to that.
2. No date and no machine is on it: the same results make the same page.
3. A verdict is said in words, never by a colour alone.
"""

from collections import Counter
from collections.abc import Iterator
from importlib.resources import files

from model.checking.claims import Outcome
from sim.report.article import alarm, article, counted, told
from sim.report.contents import Entry, Report
from sim.report.markup import Markup, element
from sim.report.status import MEANINGS, Status, chip, status
from sim.sweep.reading import catalogue

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
ABOUT = (
    "Each experiment measures a published figure or table again, by simulation. Verdicts come"
    " first, then what was claimed and what was seen, with the line that runs it again."
)
TITLE = "What was published, and what came out"


def page(report: Report) -> str:
    """The whole file."""
    head = (
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"Straggler: {TITLE[0].lower()}{TITLE[1:]}"),
        element("style", Markup(files(__package__).joinpath("page.css").read_text("utf-8"))),
    )
    body = (
        element("a", "To the verdicts", href="#verdicts", class_="skip"),
        _header(report),
        element("main", _verdicts(report), _rooms(report)),
        element("footer", _footer(report)),
    )
    whole = element("html", element("head", *head), "\n", element("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"


def _header(report: Report) -> Markup:
    runs = sum(entry.runs for entry in report)
    failed = sum(len(entry.failures) for entry in report)
    efforts = " and ".join(dict.fromkeys(entry.effort for entry in report))
    said = f"{counted(len(report), 'experiment')}, {counted(runs, 'run')} ({efforts})."
    missing = set(catalogue()).difference(entry.name for entry in report)
    if 0 < len(missing) < len(catalogue()):
        more = counted(len(missing), "experiment")
        said += f" The catalogue has {more} more, of which there are no results here."
    broken = [entry for entry in report if entry.outcome is Outcome.BROKEN]
    return element(
        "header",
        element("h1", TITLE),
        element("p", ABOUT, class_="lead"),
        element("p", said),
        _tally(report),
        alarm("Not as expected: ", _links(broken), ".") if broken else "",
        alarm(f"{counted(failed, 'run')} failed; each is named with its experiment.")
        if failed
        else "",
    )


def _links(entries: list[Entry]) -> Iterator[str]:
    for number, entry in enumerate(entries):
        yield "; " if number else ""
        yield _link(entry)


def _link(entry: Entry) -> Markup:
    return element("a", entry.title, href=f"#{entry.name}")


def _tally(report: Report) -> Markup:
    counts = Counter(map(status, report))
    shown = (each for each in Status if counts[each])
    items = (element("li", chip(each, f"{counts[each]} {each.value}")) for each in shown)
    return element("ul", items, class_="tally")


def _verdicts(report: Report) -> Markup:
    """The table; its roles are written out, for on a phone it is laid out as a list."""
    names = ("Verdict", "Experiment", "Published", "Here")
    heads = (element("th", name, scope="col", role="columnheader") for name in names)
    head = element("thead", element("tr", heads, role="row"), role="rowgroup")
    bodies = (
        element("tbody", _room_row(room), map(_row, entries), role="rowgroup")
        for room, entries in _by_room(report)
    )
    return element(
        "section",
        element("h2", "Verdicts", id="verdicts"),
        _key(report),
        element("table", head, bodies, class_="verdicts", role="table", aria_labelledby="verdicts"),
    )


def _key(report: Report) -> Markup:
    """What the verdicts on the page mean, and the signs beside them."""
    shown = {status(entry) for entry in report}
    said = (
        (element("dt", chip(each, is_short=True)), element("dd", f"{MEANINGS[each]}."))
        for each in Status
        if each in shown
    )
    signs = "A sign before a sentence says whether that was seen as expected (✓) or not (✗, ?)."
    summary = element("summary", "What the verdicts mean")
    return element("details", summary, element("dl", said), element("p", signs), class_="key")


def _room_row(room: str) -> Markup:
    link = element("a", f"Room {room}", href=f"#room-{room}")
    cell = element("th", link, colspan="4", scope="rowgroup", role="rowheader")
    return element("tr", cell, class_="room", role="row")


def _row(entry: Entry) -> Markup:
    here = told(entry.decisive) if entry.decisive else ""
    return element(
        "tr",
        element("td", chip(status(entry), is_short=True), role="cell"),
        element("th", _link(entry), scope="row", role="rowheader"),
        element("td", entry.published, role="cell", data_label="Published:"),
        element("td", here, role="cell", data_label="Here:", class_="here"),
        role="row",
    )


def _by_room(report: Report) -> Iterator[tuple[str, list[Entry]]]:
    for room in dict.fromkeys(entry.room for entry in report):
        yield room, [entry for entry in report if entry.room == room]


def _rooms(report: Report) -> Iterator[Markup]:
    for room, entries in _by_room(report):
        heading = element("h2", f"Room {room}", id=f"room-{room}")
        yield element("section", heading, map(article, entries))


def _footer(report: Report) -> Markup:
    command = element("code", "straggler report")
    return element(
        "p",
        "Written by ",
        command,
        " from what sweeps have stored. What an experiment says holds for the code that it was"
        " run with: its version stands with its configuration.",
    )
