"""The tables of docs/slack-guide.md are what the commands beside them print."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from properties.cli.render import markdown
from properties.slack.examples import ASSUMPTIONS, HEADER, SETTINGS
from properties.slack.examples import table as flights_table
from properties.slack.promise_table import HEADER as PROMISE_HEADER
from properties.slack.promise_table import table as promises
from properties.slack.published_law import (
    LAW_HEADER,
    QUERY,
    WINDUP_HEADER,
    row,
    table,
    windup,
    windups,
)
from properties.slack.requirements import HEADER as REQUIRED_HEADER
from properties.slack.requirements import table as requirements
from tests.harness.profiles import EFFORTS, effort

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "slack-guide.md"


def missing(header: Mapping[str, str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines that the guide does not have."""
    known = set(GUIDE.read_text(encoding="utf-8").splitlines())
    return [line for line in markdown(header, rows).splitlines() if line not in known]


def test_the_guide_has_the_figures_of_the_published_law() -> None:
    assert not missing(LAW_HEADER, [row("exponential", replace(QUERY, control="pd"))])
    assert not missing(WINDUP_HEADER, [windup(15, "pd")])
    assert missing(WINDUP_HEADER, [windup(1, "pd")])


def test_the_guide_has_the_tuples_that_are_required() -> None:
    assert not missing(REQUIRED_HEADER, list(requirements()))
    assert missing(REQUIRED_HEADER, [("`count`", 100.0, 96.0, 95.1, 94.9)])


def rows_of_the_law() -> Iterator[tuple[Mapping[str, str], Sequence[object]]]:
    yield from ((LAW_HEADER, each) for each in table())
    yield from ((WINDUP_HEADER, each) for each in windups())


def rows_of_promises() -> Iterator[tuple[Mapping[str, str], Sequence[object]]]:
    yield from ((PROMISE_HEADER, each) for each in promises())


def rows_of_flights(
    cases: Mapping[str, dict[str, object]],
) -> Iterator[tuple[Mapping[str, str], Sequence[object]]]:
    yield from ((HEADER, each) for each in flights_table(cases))


@pytest.mark.parametrize(
    "rows",
    [
        rows_of_the_law,
        rows_of_promises,
        partial(rows_of_flights, SETTINGS),
        partial(rows_of_flights, ASSUMPTIONS),
    ],
    ids=["law", "promises", "settings", "assumptions"],
)
def test_the_guide_has_every_line(
    rows: Callable[[], Iterator[tuple[Mapping[str, str], Sequence[object]]]],
) -> None:
    if effort() != EFFORTS["nightly"]:
        pytest.skip("takes too long for any profile but nightly")
    absent = [line for header, each in rows() for line in missing(header, [each])]
    assert not absent, "\n".join(absent)
