"""docs/watermark-guide.md shows the rows that the experiments give for the setting they share."""

from pathlib import Path

from straggler.cli.render import markdown
from straggler.rooms.watermark.guide import RULES_HEADER, Setting, measured, row, rule_rows

GUIDE = (Path(__file__).resolve().parents[3] / "docs" / "watermark-guide.md").read_text(
    encoding="utf-8"
)
SHARED = (("8", 2), ("1", 1), ("50", 1), ("100,000", 1))
"""First cell of each row of this setting, and the number of tables that have the row."""


def test_the_rules_have_the_figures_of_the_guide() -> None:
    assert markdown(RULES_HEADER, list(rule_rows(Setting()))) in GUIDE


def test_the_tables_have_the_row_that_they_share() -> None:
    for value, times in SHARED:
        line = "| " + " | ".join(row(value, Setting())) + " |"
        assert GUIDE.count(line + "\n") == times, line


def test_the_verdict_of_the_guide_is_that_of_the_figures() -> None:
    found = {rule: measured(Setting(), rule) for rule in ("fixed", "literal", "disorder", "scaled")}
    waits = [found[rule].mean_wait_us for rule in ("disorder", "scaled", "literal", "fixed")]
    assert waits == sorted(waits)
    assert found["fixed"].coverage == 1.0 > found["scaled"].coverage > found["disorder"].coverage
