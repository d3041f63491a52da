"""Figures in docs/grouping.md that are not computed from a formula are those of the reference."""

from pathlib import Path

from model.grouping import make_system
from properties.grouping.draws import Draws

PAGE = (Path(__file__).parents[2] / "docs" / "grouping.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
SEEDS = range(12)


def largest_rho(window_tuples: int) -> float:
    """Under so many seeds, with 16 instances, half of them ten times slower."""
    draws = Draws(16, slow=8, window_tuples=window_tuples)
    return max(draws.rho(make_system(), seed) for seed in SEEDS)


def test_short_windows_have_as_much_rho_as_the_page_says() -> None:
    short, longer, long = map(largest_rho, (256, 1_024, 2_048))
    assert short > longer > long
    sentence = (
        f"under {len(SEEDS)} hash seeds windows of 256 tuples had rho up to {short:.3f},"
        f" of 1,024 up to {longer:.3f}, of 2,048 up to {long:.3f}"
    )
    assert sentence in TEXT
