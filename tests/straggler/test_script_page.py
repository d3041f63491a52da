"""Figures in docs/script.md are those of the simulation."""

from pathlib import Path

from sim.script import from_settings
from straggler.rooms.script.room import SIDES, alternatives

PAGE = (Path(__file__).parents[2] / "docs" / "script.md").read_text(encoding="utf-8")
SEED = 1


def test_placements_have_the_figures_that_the_page_says() -> None:
    assert f"| {' | '.join(SIDES)} |" in PAGE
    found = alternatives(from_settings({}, SEED), {}, SEED)
    assert found is not None
    for placement, *figures in found.rows:
        assert f"| `{placement}` | {' | '.join(figures)} |" in PAGE
