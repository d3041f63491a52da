"""The page of single runs as one HTML file, from the template ``run.html``."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from model.checking.claims import Outcome, Verdict
from sim.report.contents import NumbersTable
from sim.report.page import render

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
    return render("run.html", page=page, counts=shown, looks=LOOKS)
