"""docs/grouping-guide.md, and the end of docs/grouping.md, show the stored figures."""

from pathlib import Path

from sim.grouping.experiments import plot_sweep
from straggler.rooms.grouping.guide import PLOTS, RESULT, policies, stored, tables

DOCS = Path(__file__).resolve().parents[3] / "docs"
RESULTS = Path(__file__).resolve().parents[3] / "benchmarks" / "results"
GUIDE = (DOCS / "grouping-guide.md").read_text(encoding="utf-8")
PAGE = (DOCS / "grouping.md").read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_benchmark() -> None:
    for lines in tables(stored(RESULTS)):
        shown = "\n".join(["", *lines, ""])
        assert shown in GUIDE, "straggler.rooms.grouping.guide prints what belongs there"
    assert "\n".join(["", *policies(stored(RESULTS)), ""]) in PAGE


def test_other_figures_are_other_lines() -> None:
    """Each line changes when the measured figures change, so that no figure is a constant."""
    now = stored(RESULTS)
    other = {name: 10 * each if isinstance(each, float) else "?" for name, each in now.items()}
    for lines, changed in zip(tables(now), tables(other), strict=True):
        assert all(a != b for a, b in list(zip(lines, changed, strict=True))[2:])


def test_the_figures_are_drawn_from_what_was_stored(tmp_path: Path) -> None:
    for name, sweep in PLOTS.items():
        drawn = sweep(stored(RESULTS))
        assert f"figures/{name}" in GUIDE
        assert f"figures/{name}" in PAGE
        text = (DOCS / "figures" / name).read_text(encoding="utf-8")
        for label in (drawn.title, drawn.xlabel, drawn.ylabel, *drawn.lines):
            assert f">{label}<" in text, label
        plot_sweep(drawn, tmp_path / name)
        assert points(tmp_path / name) == points(DOCS / "figures" / name), (
            f"straggler.rooms.grouping.guide draws {name} from {RESULT}"
        )


def points(path: Path) -> list[str]:
    """Return the paths of a drawing without their numbers, which depend on matplotlib's version."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("L ")]
