"""Pages of single runs as one HTML file each, from the template ``run.html``.

Rules of the page:

1. The page fetches nothing and runs nothing; a policy in its head makes browsers enforce that.
2. The page has no date and no machine name: the same results make the same page.
3. A verdict is a word, never a colour alone.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from model.checking.claims import Outcome, Verdict
from model.vocabulary.texts import escaped_lines

POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none';"
    " form-action 'none'"
)
SIGNS: Mapping[Outcome, tuple[str, str]] = {
    Outcome.HOLDS: ("✓", "met"),
    Outcome.BROKEN: ("✗", "unmet"),
    Outcome.UNDETERMINED: ("?", "unsure"),
}
"""The sign of an outcome and its class in the style sheet."""
Pairs = tuple[tuple[str, str], ...]
"""Names with their values, as text."""


class Look(NamedTuple):
    """The sign of an outcome, and its class in the style sheet."""

    sign: str
    colour: str


LOOKS = {
    Outcome.HOLDS: Look("✓", "good"),
    Outcome.BROKEN: Look("✗", "alert"),
    Outcome.UNDETERMINED: Look("?", "open"),
}


class NumbersTable(NamedTuple):
    """Numbers as text."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int
    """Number of columns, from the left, that name a row."""


class RunSection(NamedTuple):
    """One run: its verdict and settings, and what happened over its time."""

    name: str
    """Name of the section, unique in the page."""
    title: str
    about: str
    """The query, in a phrase."""
    outcome: Outcome
    sentences: tuple[str, ...]
    """Sentences on the run, the most important first."""
    key_figures: tuple[tuple[str, Pairs], ...]
    """Groups of figures, each with a heading."""
    settings: Pairs
    """Settings that were chosen."""
    verdicts: tuple[Verdict, ...]
    report: tuple[str, ...]
    """Lines on a counterexample; empty unless something is broken."""
    faults: tuple[str, ...]
    picture: str
    """Text of an SVG file; empty if there is none."""
    about_picture: str
    """Sentences below the picture, or the reason why there is none."""
    tables: tuple[tuple[str, NumbersTable], ...]
    """Tables that are folded, each with its name."""


class RunPage(NamedTuple):
    """A page of runs."""

    title: str
    lead: str
    command: str
    """The command that writes the page, ``sim`` or ``diff``."""
    again: str
    """The command line that writes it again."""
    sections: Sequence[RunSection]
    notes: tuple[str, ...] = ()
    """Sentences on what is missing."""


def run_page(page: RunPage) -> str:
    """Return the whole file."""
    counts = Counter(section.outcome for section in page.sections)
    shown = {outcome: counts[outcome] for outcome in LOOKS if counts[outcome]}
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        finalize=escape_shown,
    )
    environment.filters |= {"as_image": _as_image, "sentence": _sentence}
    style = Markup(_read("page.css"))
    template = environment.get_template("run.html")
    return template.render(
        page=page, counts=shown, looks=LOOKS, signs=SIGNS, policy=POLICY, style=style
    )


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def escape_shown(value: object) -> object:
    """Return a value as a page shows it; keys and messages of systems are texts of strangers."""
    is_theirs = isinstance(value, str) and not isinstance(value, Markup)
    return escaped_lines(str(value)) if is_theirs else value


def _as_image(svg: str) -> str:
    """Return a picture as the address of an image that holds it.

    Ids and styles of a picture end at its image: a page has many pictures.
    """
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
