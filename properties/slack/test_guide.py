"""The tables of docs/slack-guide.md are what the commands beside them print."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from properties.profiles import EFFORTS, effort
from properties.slack.examples import ASSUMPTIONS, HEADER, SETTINGS
from properties.slack.examples import table as flights_table
from properties.slack.published_law import (
    LAW_HEADER,
    QUERY,
    WINDUP_HEADER,
    markdown,
    row,
    table,
    windup,
    windups,
)

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "slack-guide.md"


def missing(header: Mapping[str, str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines that the guide does not have."""
    known = set(GUIDE.read_text(encoding="utf-8").splitlines())
    return [line for line in markdown(header, rows).splitlines() if line not in known]


def test_the_guide_has_the_figures_of_the_published_law() -> None:
    assert not missing(LAW_HEADER, [row("exponential", replace(QUERY, control="pd"))])
    assert not missing(WINDUP_HEADER, [windup(15, "pd")])
    assert missing(WINDUP_HEADER, [windup(1, "pd")])


def rows_of_the_law() -> Iterator[tuple[Mapping[str, str], Sequence[object]]]:
    yield from ((LAW_HEADER, each) for each in table())
    yield from ((WINDUP_HEADER, each) for each in windups())


def rows_of_flights(
    cases: Mapping[str, dict[str, object]],
) -> Iterator[tuple[Mapping[str, str], Sequence[object]]]:
    yield from ((HEADER, each) for each in flights_table(cases))


@pytest.mark.parametrize(
    "rows",
    [rows_of_the_law, partial(rows_of_flights, SETTINGS), partial(rows_of_flights, ASSUMPTIONS)],
    ids=["law", "settings", "assumptions"],
)
def test_the_guide_has_every_line(
    rows: Callable[[], Iterator[tuple[Mapping[str, str], Sequence[object]]]],
) -> None:
    if effort() != EFFORTS["nightly"]:
        pytest.skip("takes too long for any profile but nightly")
    absent = [line for header, each in rows() for line in missing(header, [each])]
    assert not absent, "\n".join(absent)
