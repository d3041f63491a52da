"""Figures in docs/grouping.md that are not computed from a formula are those of the reference."""

from pathlib import Path

from model.grouping import make_system
from straggler.rooms.grouping.draws import Draws

PAGE = (Path(__file__).parents[2] / "docs" / "grouping.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
SEEDS = range(12)


def largest_rho(window_tuples: int) -> float:
    """Return the largest rho of all seeds with 16 instances, half of them ten times slower."""
    draws = Draws(16, slow=8, window_tuples=window_tuples)
    return max(draws.rho(make_system(), seed) for seed in SEEDS)


def test_short_windows_have_as_much_rho_as_the_page_says() -> None:
    short, longer, long = map(largest_rho, (256, 1_024, 2_048))
    assert short > longer > long
    for window, rho in ((256, short), (1_024, longer), (2_048, long)):
        assert f"| {window:,} | {rho:.3f} |" in PAGE
    assert f"under {len(SEEDS)} hash seeds" in TEXT
