"""The tables of docs/slack-guide.md are what the commands beside them print."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from straggler.cli.render import markdown
from straggler.rooms.slack.guide import REQUIRED_HEADER, TABLES, required_rows
from straggler.rooms.slack.published_law import LAW_HEADER, QUERY, WINDUP_HEADER, row, windup

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "slack-guide.md"


def missing(header: Mapping[str, str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return the lines that are missing in the guide."""
    known = set(GUIDE.read_text(encoding="utf-8").splitlines())
    return [line for line in markdown(header, rows).splitlines() if line not in known]


def test_the_guide_has_the_figures_of_the_published_law() -> None:
    assert not missing(LAW_HEADER, [row("exponential", replace(QUERY, control="pd"))])
    assert not missing(WINDUP_HEADER, [windup(15, "pd")])
    assert missing(WINDUP_HEADER, [windup(1, "pd")])


def test_the_guide_has_the_tuples_that_are_required() -> None:
    assert not missing(REQUIRED_HEADER, list(required_rows()))
    assert missing(REQUIRED_HEADER, [("`count`", 100.0, 96.0, 95.1, 94.9)])


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in TABLES if name != "required"])
def test_the_guide_has_every_line(name: str) -> None:
    header, rows = TABLES[name]
    absent = [line for each in rows() for line in missing(header, [each])]
    assert not absent, "\n".join(absent)
