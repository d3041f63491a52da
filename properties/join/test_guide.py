"""docs/join-guide.md shows what the model draws and computes, and what was measured."""

from pathlib import Path

import pytest

from properties.join.guide import (
    FIGURES_HEADER,
    SIZES_HEADER,
    measured,
    passing,
    sizes,
    stored,
    table,
)

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "join-guide.md").read_text(encoding="utf-8")


def test_the_chart_is_a_behaviour_of_the_protocol() -> None:
    assert "\n".join(passing()) in GUIDE


def test_the_example_is_what_the_formulae_say() -> None:
    assert "\n".join(table(SIZES_HEADER, sizes())) in GUIDE


def test_figures_are_those_of_the_benchmark() -> None:
    figures = stored()
    if figures is None or table(FIGURES_HEADER, iter(()))[0] not in GUIDE:
        pytest.skip("the guide has no figures, or they have not been measured")
    assert "\n".join(table(FIGURES_HEADER, measured(figures))) in GUIDE
