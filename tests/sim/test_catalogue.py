"""The catalogue of experiments: every file runs, and the page names every published figure."""

import re
from pathlib import Path

import pytest

from sim.sweep.experiment import Experiment, Factor, Grid
from sim.sweep.measurable import measurable
from sim.sweep.reading import catalogue, find

PAGE = (Path(__file__).parents[2] / "docs" / "published.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ((?:Figure|Table|Section|Algorithm) [\d.]+) \| [^|]+ \| ([^|]+) \|$", re.M)
NUMBERED = re.compile(r"(Figure|Table|Algorithm)s? (\d+)(?: (?:and|to) (\d+))?")
NOT_MEASURED = "not measured: "
FIGURES = {
    "HPM": ("Figure", 6, "Table", 1),
    "S2J": ("Figure", 16, "Table", 0),
    "TAG": ("Figure", 9, "Table", 3),
    "Dynamic": ("Figure", 7, "Table", 5),
    "A framework": ("Figure", 5, "Table", 1),
}
"""Number of figures and tables of each source, by the first words of its title."""

LABEL_MAX = 46
NAMES = catalogue()
SMALLER = {
    "slack": {"messages": "1500"},
    "watermark": {"messages": "6000"},
    "join": {"seconds": "3"},
    "grouping": {"tuples": "1500", "window_tuples": "300", "batch_tuples": "300"},
    "script": {},
}
"""Settings that make a run very short, by room; some measurables do not have them."""
LONG = {"join-case-study": "needs 20 minutes for its workers to come and go"}


def sections() -> dict[str, dict[str, str]]:
    """Return the page's entry of each figure, by source."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.M)[1:]
    return {
        title: dict(ROW.findall(text))
        for title, text in zip(parts[::2], parts[1::2], strict=True)
        if title != "Sources"
    }


def named(text: str) -> set[str]:
    """Return the experiments that a text names."""
    return set(re.findall(r"`([a-z0-9-]+)`", text)) & set(NAMES)


@pytest.fixture(scope="module")
def experiments() -> dict[str, Experiment]:
    return {name: find(name) for name in NAMES}


def test_every_figure_of_every_source_is_listed() -> None:
    found = sections()
    assert len(found) == len(FIGURES)
    for begins, (figure, figures, table, tables) in FIGURES.items():
        (rows,) = [rows for title, rows in found.items() if title.startswith(begins)]
        wanted = [f"{figure} {n + 1}" for n in range(figures)]
        wanted += [f"{table} {n + 1}" for n in range(tables)]
        assert [each for each in wanted if each not in rows] == []


def test_every_figure_has_an_experiment_or_a_reason() -> None:
    for title, rows in sections().items():
        for where, here in rows.items():
            assert named(here) or here.startswith(NOT_MEASURED), (title, where)


def test_every_experiment_says_where_its_claim_was_published(
    experiments: dict[str, Experiment],
) -> None:
    found = sections()
    for name, experiment in experiments.items():
        assert experiment.source is not None, name
        assert experiment.claim, name
        assert experiment.published is not None, name
        assert experiment.plot is not None, name
        assert experiment.expectations, name
        # Longer labels do not fit above or below an axis.
        assert [label for label in experiment.labels.values() if len(label) > LABEL_MAX] == []
        # The page lists each assumption once, so "As above" would point at nothing.
        assert not [each for each in experiment.expectations if "As above" in each.assumptions], (
            name
        )
        rows = found[experiment.source.paper]
        assert name in named(" ".join(rows.values())), name


def test_the_page_names_every_figure_of_an_experiment(experiments: dict[str, Experiment]) -> None:
    found = sections()
    for name, experiment in experiments.items():
        assert experiment.source is not None
        rows = found[experiment.source.paper]
        for kind, first, last in NUMBERED.findall(experiment.source.where):
            for number in (first, last) if last else (first,):
                assert name in named(rows[f"{kind} {number}"]), (name, kind, number)


def tiny(experiment: Experiment) -> dict[str, str]:
    """Return the settings of the first combination of a quick sweep, as small as possible."""
    grid: Grid = experiment.grids["quick"]
    known = measurable(experiment.room, experiment.run).settings
    settings = dict(grid.base)
    for factor in grid.factors:
        settings |= first(factor)
    smaller = SMALLER[experiment.room]
    if experiment.run == "largest-rate":
        smaller = {"seconds": "1", "window_us": "200000"}
    if experiment.name == "slack-calm":
        smaller = {"messages": "30000"}  # four spells of 5 s and the one that is cut off
    return settings | {key: value for key, value in smaller.items() if key in known}


def first(factor: Factor) -> dict[str, str]:
    """Return the settings of the first level."""
    return dict(factor.levels[0].settings)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LONG])
def test_a_tiny_run_gives_every_measure(name: str) -> None:
    experiment = find(name)
    settings = tiny(experiment)
    figures = measurable(experiment.room, experiment.run).measure(settings, 0)
    for measure in experiment.measures:
        assert measure.figure in figures, (name, measure.figure)
        assert not measure.by or measure.by in figures, (name, measure.by)
