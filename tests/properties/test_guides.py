"""Guides of rooms show what models draw and compute, and the stored figures of benchmarks."""

from pathlib import Path

import pytest

from sim.grouping.experiments import plot_sweep
from straggler.cli.render import markdown
from straggler.rooms.grouping import guide as grouping
from straggler.rooms.join import guide as join
from straggler.rooms.watermark.guide import RULES_HEADER, Setting, row, rule_rows

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
SHARED = (("8", 2), ("1", 1), ("50", 1), ("100,000", 1))
"""First cell of each row of a setting of room ``watermark``, and the tables that have the row."""


def guide_of(room: str) -> str:
    return (DOCS / f"{room}-guide.md").read_text(encoding="utf-8")


def test_the_chart_and_the_tables_of_join_are_written_anew() -> None:
    guide = guide_of("join")
    assert "\n".join(join.passing()) in guide, "the chart is no behaviour of the protocol"
    other = guide.replace("| 9 |", "| 8 |").replace("| 1.03 |", "| 1.04 |")
    assert len(set(other.splitlines()) - set(guide.splitlines())) == 2
    assert join.with_tables(other, RESULTS) == guide


def test_the_tables_of_grouping_are_those_of_the_benchmark() -> None:
    figures = grouping.stored(RESULTS)
    for lines in grouping.tables(figures):
        assert "\n".join(["", *lines, ""]) in guide_of("grouping")
    page = (DOCS / "grouping.md").read_text(encoding="utf-8")
    assert "\n".join(["", *grouping.policies(figures), ""]) in page


def test_the_figures_of_grouping_are_drawn_from_what_was_stored(tmp_path: Path) -> None:
    for name, sweep in grouping.PLOTS.items():
        plot_sweep(sweep(grouping.stored(RESULTS)), tmp_path / name)
        assert points(tmp_path / name) == points(DOCS / "figures" / name), name
        assert f"figures/{name}" in guide_of("grouping")


def points(path: Path) -> list[str]:
    """Return the paths of a drawing without their numbers, which depend on matplotlib's version."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("L ")]


@pytest.mark.long
def test_the_tables_of_watermark_have_the_figures_of_their_rules() -> None:
    guide = guide_of("watermark")
    assert markdown(RULES_HEADER, list(rule_rows(Setting()))) in guide
    for value, times in SHARED:
        line = "| " + " | ".join(row(value, Setting())) + " |"
        assert guide.count(line + "\n") == times, line
