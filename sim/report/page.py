"""Pages as one HTML file each; the page of results, from the template ``page.html``.

Rules of the page:

1. The page fetches nothing and runs nothing; a policy in its head makes browsers enforce that.
2. The page has no date and no machine name: the same results make the same page.
3. A verdict is a word, never a colour alone.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from model.checking.claims import Outcome
from model.vocabulary.texts import escaped_lines
from sim.report.contents import Chart, Entry, Report, Status
from sim.report.plot import svg
from sim.report.words import version
from sim.sweep.experiment import Label
from sim.sweep.reading import catalogue

POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none';"
    " form-action 'none'"
)
_SIGNS: Mapping[Outcome, tuple[str, str]] = {
    Outcome.HOLDS: ("✓", "met"),
    Outcome.BROKEN: ("✗", "unmet"),
    Outcome.UNDETERMINED: ("?", "unsure"),
}
"""The sign of an outcome and its class in the style sheet."""


def page(report: Report) -> str:
    """Return the whole file."""
    counts = Counter(entry.status for entry in report)
    missing = set(catalogue()).difference(entry.name for entry in report)
    return render(
        "page.html",
        report=report,
        rooms={
            room: [entry for entry in report if entry.room == room]
            for room in dict.fromkeys(entry.room for entry in report)
        },
        runs=sum(entry.runs for entry in report),
        failed=sum(len(entry.failures) for entry in report),
        efforts=list(dict.fromkeys(entry.effort for entry in report)),
        missing=len(missing) if len(missing) < len(catalogue()) else 0,
        counts={status: counts[status] for status in Status if counts[status]},
        broken=[entry for entry in report if entry.outcome is Outcome.BROKEN],
    )


def render(name: str, **values: object) -> str:
    """Return a page from the template of that name, with the style and the policy of all pages."""
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    environment.filters |= {
        "as_image": _as_image,
        "caption": caption,
        "configuration": _configuration,
        "counted": _counted,
        "sentence": _sentence,
        "svg": _drawn,
    }
    style = Markup(_read("page.css"))
    return environment.get_template(name).render(**values, signs=_SIGNS, policy=POLICY, style=style)


def _shown(value: object) -> object:
    """Return a value as a page shows it; keys and messages of systems are texts of strangers."""
    is_theirs = isinstance(value, str) and not isinstance(value, Markup)
    return escaped_lines(str(value)) if is_theirs else value


def _as_image(svg: str) -> str:
    """Return a picture as the address of an image that holds it.

    Ids and styles of a picture end at its image: a page has many pictures.
    """
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def caption(entry: Entry) -> str:
    """Describe what all plots of an experiment have in common."""
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
        more = _counted(entry.undrawn, "more combination")
        said.append(f"There is no plot of {more}; all are among the numbers below.")
    return " ".join(said)


def _drawn(chart: Chart, entry: Entry, number: int) -> Markup:
    names = ", ".join(line.label for line in chart.lines)
    description = f"{entry.title}: {chart.y.label} over {chart.x.label}, for {names}. {chart.title}"
    return svg(chart, f"{entry.name}-{number}", description.strip())


def _counted(number: int, noun: str) -> str:
    """Return ``1 run``, ``2 runs``, ..."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _configuration(entry: Entry) -> Iterator[tuple[str, str]]:
    yield from {
        **{name: _levels(name, levels) for name, levels in entry.factors.items()},
        **entry.base,
        "seeds": ", ".join(map(str, entry.seeds)),
        "runs": f"{entry.runs:,} ({entry.effort})",
        "code version": version(entry.code),
    }.items()


def _levels(name: str, levels: tuple[tuple[Label, Mapping[str, str]], ...]) -> str:
    """List the levels of a factor, each with its settings unless its name says them."""
    said = []
    for label, settings in levels:
        others = {
            key: value for key, value in settings.items() if (key, value) != (name, str(label))
        }
        behind = ", ".join(f"{key} = {value}" for key, value in others.items())
        said.append(f"{label} ({behind})" if behind else str(label))
    return (", " if all("(" not in each for each in said) else "; ").join(said)
