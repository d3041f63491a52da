"""One experiment on the page: plots on one side, what was claimed and found on the other."""

from collections.abc import Iterator, Mapping

from model.checking.claims import Outcome
from sim.report.contents import Cell, Chart, Entry, Failure, Finding, Table
from sim.report.markup import Markup, element
from sim.report.plot import svg
from sim.report.status import chip, status
from sim.report.words import version
from sim.sweep.experiment import Label

_SIGNS: Mapping[Outcome, tuple[str, str]] = {
    Outcome.HOLDS: ("✓", "met"),
    Outcome.BROKEN: ("✗", "unmet"),
    Outcome.UNDETERMINED: ("?", "unsure"),
}


def article(entry: Entry) -> Markup:
    """All that there is to say of an experiment."""
    title = element("a", entry.title, href=f"#{entry.name}")
    header = element(
        "header",
        element("h3", title, id=f"{entry.name}-title"),
        chip(status(entry)),
        element("p", entry.claim, class_="claim") if entry.claim else "",
        element("p", f"Source: {entry.source}", class_="small") if entry.source else "",
    )
    found = element("div", _found(entry), class_="found")
    body = element("div", _plots(entry), found, class_=_layout(entry))
    return element(
        "article",
        header,
        body,
        (alarm(f"{problem}.") for problem in entry.problems),
        map(_failure, entry.failures),
        _numbers(entry.table),
        _configuration(entry),
        id=entry.name,
        aria_labelledby=f"{entry.name}-title",
    )


def alarm(*said: str | Iterator[str]) -> Markup:
    """Something that is not as it should be."""
    return element("p", *said, class_="alarm")


def counted(number: int, noun: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _layout(entry: Entry) -> str | None:
    """One plot lies beside what was found, and several above it."""
    return "beside" if len(entry.charts) == 1 else None


def _plots(entry: Entry) -> Iterator[Markup]:
    drawn = [_drawn(entry, number, chart) for number, chart in enumerate(entry.charts)]
    below = element("figcaption", caption(entry), class_="small")
    if len(drawn) == 1:
        yield element("figure", drawn, below)
    elif drawn:
        titles = (_sentence(chart.title) for chart in entry.charts)
        panels = (
            element("figure", element("figcaption", title, class_="small"), each)
            for title, each in zip(titles, drawn, strict=True)
        )
        yield element("figure", element("div", panels, class_="panels"), below)


def _drawn(entry: Entry, number: int, chart: Chart) -> Markup:
    names = ", ".join(line.label for line in chart.lines)
    description = f"{entry.title}: {chart.y.label} over {chart.x.label}, for {names}. {chart.title}"
    return svg(chart, f"{entry.name}-{number}", description.strip())


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def caption(entry: Entry) -> str:
    """What all plots of an experiment have in common."""
    seeds = len(entry.seeds)
    said = ["One seed, and so no intervals."]
    if seeds > 1:
        said = [f"Means of {seeds} seeds with {entry.confidence:.0%} confidence intervals."]
    if len(entry.charts) == 1 and entry.charts[0].title:
        said.insert(0, f"{_sentence(entry.charts[0].title)}.")
    lines = [line for chart in entry.charts for line in chart.lines]
    if len({len(line.points) for line in lines}) > 1:
        said.append("Where a line has no point, there was nothing to measure.")
    if any(chart.published for chart in entry.charts):
        said.append("Dotted or starred: as published.")
    if entry.undrawn:
        more = counted(entry.undrawn, "more combination")
        said.append(f"There is no plot of {more}; all are among the numbers below.")
    return " ".join(said)


def _found(entry: Entry) -> Iterator[Markup]:
    if entry.published:
        yield element("h4", "Published")
        yield element("p", entry.published)
        if entry.numbers:
            yield element("p", f"As numbers: {entry.numbers}.", class_="measured")
    if entry.assumptions:
        yield element("h4", "Assumed")
        yield element("p", " ".join(entry.assumptions))
    if entry.findings:
        yield element("h4", "Here")
        yield element("ul", map(_finding, entry.findings), class_="findings")
    yield element("h4", "To run it again")
    yield element("pre", element("code", entry.again))


def _finding(finding: Finding) -> Markup:
    cells = _cells(finding.cells) if len(finding.cells) > 1 else ""
    return element("li", told(finding), cells)


def told(finding: Finding) -> tuple[Markup, ...]:
    """An expectation with a sign for whether it is met, and what was measured."""
    sign, kind = _SIGNS[finding.outcome]
    outcome = "" if finding.outcome is Outcome.HOLDS else f" ({finding.outcome.value})"
    return (
        element("span", sign, class_=f"mark {kind}", role="img", aria_label=finding.outcome.value),
        element("span", finding.says, element("span", outcome, class_=kind)),
        element("div", finding.sentence, class_="measured"),
    )


def _cells(cells: tuple[Cell, ...]) -> Markup:
    rows = (
        element(
            "tr",
            element("th", cell.label, scope="row"),
            element("td", cell.measured, class_="figure"),
            element("td", "" if cell.outcome is Outcome.HOLDS else cell.outcome.value),
        )
        for cell in cells
    )
    table = element("table", element("tbody", rows), class_="numbers")
    return element("details", element("summary", "Each of them"), _scrolled(table, "Each of them"))


def _scrolled(table: Markup, name: str) -> Markup:
    """A table that is moved by itself, by keys too, where the page is too narrow for it."""
    return element("div", table, class_="wide", tabindex="0", role="group", aria_label=name)


def _failure(failure: Failure) -> Markup:
    settings = "".join(f"{key} = {value}, " for key, value in failure.settings.items())
    return element(
        "div",
        alarm(f"A run failed ({settings}seed {failure.seed}): {failure.error}"),
        element("pre", element("code", failure.again)),
    )


def _numbers(table: Table) -> Markup:
    heads = (element("th", name, scope="col", class_=_side(table, n)) for n, name in _each(table))
    rows = (
        element("tr", (element("td", cell, class_=_side(table, n)) for n, cell in enumerate(row)))
        for row in table.rows
    )
    head = element("thead", element("tr", heads))
    grid = element("table", head, element("tbody", rows), class_="numbers")
    return element("details", element("summary", "Numbers"), _scrolled(grid, "Numbers"))


def _each(table: Table) -> Iterator[tuple[int, str]]:
    return enumerate(table.header)


def _side(table: Table, column: int) -> str | None:
    return "figure" if column >= table.names else None


def _configuration(entry: Entry) -> Markup:
    said = {
        **{name: _levels(name, levels) for name, levels in entry.factors.items()},
        **entry.base,
        "seeds": ", ".join(map(str, entry.seeds)),
        "runs": f"{entry.runs:,} ({entry.effort})",
        "code version": version(entry.code),
    }
    listed = ((element("dt", key), element("dd", value)) for key, value in said.items())
    summary = element("summary", "Configuration and seeds")
    return element("details", summary, element("dl", listed))


def _levels(name: str, levels: tuple[tuple[Label, Mapping[str, str]], ...]) -> str:
    """Levels of a factor; those that stand for other settings than their name with these."""
    said = []
    for label, settings in levels:
        others = {
            key: value for key, value in settings.items() if (key, value) != (name, str(label))
        }
        behind = ", ".join(f"{key} = {value}" for key, value in others.items())
        said.append(f"{label} ({behind})" if behind else str(label))
    return (", " if all("(" not in each for each in said) else "; ").join(said)
