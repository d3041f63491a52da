"""docs/join-guide.md shows what the model draws and computes, and what was measured."""

from pathlib import Path

from properties.join.guide import (
    FIGURES_HEADER,
    SIZES_HEADER,
    measured,
    passing,
    sizes,
    stored,
    table,
)

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "join-guide.md").read_text(encoding="utf-8")


def test_the_chart_is_a_behaviour_of_the_protocol() -> None:
    assert "\n".join(passing()) in GUIDE


def test_the_example_is_what_the_formulae_say() -> None:
    assert "\n".join(table(SIZES_HEADER, sizes())) in GUIDE


def test_the_figures_are_those_of_the_benchmark() -> None:
    lines = "\n".join(["", *table(FIGURES_HEADER, measured(stored(RESULTS))), ""])
    assert lines in GUIDE, "properties.join.guide prints the lines that belong there"


def test_other_figures_are_other_lines() -> None:
    """Every line changes when the measured figures change."""
    now = stored(RESULTS)
    other = {name: 10 * each for name, each in now.items()}
    assert not set(measured(now)) & set(measured(other))
