"""docs/join-guide.md shows what the model draws and computes, and what was measured."""

from pathlib import Path

import pytest

from properties.join.guide import (
    SIZES_HEADER,
    measured,
    passing,
    sizes,
    stored,
    table,
)

CORES, FACTOR = 2, 1.8
GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "join-guide.md").read_text(encoding="utf-8")


def test_the_chart_is_a_behaviour_of_the_protocol() -> None:
    assert "\n".join(passing()) in GUIDE


def test_the_example_is_what_the_formulae_say() -> None:
    assert "\n".join(table(SIZES_HEADER, sizes())) in GUIDE


def test_figures_are_like_those_of_the_benchmark() -> None:
    results = stored()
    # Another run gives other figures, but not quite other ones.
    if results.cores != CORES:
        pytest.skip(f"the figures of the guide are from {CORES} cores, these from {results.cores}")
    told = {row[0]: row[1] for row in rows_of(GUIDE)}
    for name, figure in measured(results.figures):
        now, then = (float(text.replace(",", "")) for text in (figure, told[name]))
        assert then / FACTOR <= now <= then * FACTOR, (name, figure, told[name])


def rows_of(page: str) -> list[list[str]]:
    """Cells of all tables of two columns."""
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    return [row for row in rows if len(row) == 2]
