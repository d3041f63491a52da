"""docs/join-guide.md shows what the model draws and computes, and what was measured."""

from pathlib import Path

from straggler.rooms.join.guide import measured, passing, stored, with_tables

RESULTS = Path(__file__).resolve().parents[3] / "benchmarks" / "results"
GUIDE = (Path(__file__).resolve().parents[3] / "docs" / "join-guide.md").read_text(encoding="utf-8")


def test_the_chart_is_a_behaviour_of_the_protocol() -> None:
    chart = "\n".join(passing())
    assert chart in GUIDE, chart


def test_both_tables_are_written_anew() -> None:
    other = GUIDE.replace("| 9 |", "| 8 |").replace("| 1.03 |", "| 1.04 |")
    assert len(set(other.splitlines()) - set(GUIDE.splitlines())) == 2
    assert with_tables(other, RESULTS) == GUIDE


def test_other_figures_are_other_lines() -> None:
    """Every line changes when the measured figures change."""
    now = stored(RESULTS)
    other = {name: 10 * each for name, each in now.items()}
    assert not set(measured(now)) & set(measured(other))
