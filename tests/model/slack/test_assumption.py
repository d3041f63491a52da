"""Delay against value: scores against a comparison of all pairs, the status against its formula."""

from math import sqrt
from random import Random
from statistics import mean, variance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.slack.assumption import (
    CONTRADICTED,
    NOT_CONTRADICTED,
    UNTESTED,
    Assumption,
    is_recorded,
    scores_of,
    status_of,
)
from model.vocabulary import SlackConfig
from model.vocabulary.slack import MAX_CORRELATED
from model.vocabulary.windows import Correlation
from tests.model.slack.strategies import stream_of

T_19 = 3.8834
"""The 0.9995 quantile of Student's t with 19 degrees of freedom, from a printed table."""


def window(number: int, cross: int, spread: int = 100, revision: int = 1) -> Correlation:
    return Correlation(0, number * 10, "a", 0, revision, 9, cross, spread, spread)


def test_scores_of_a_window_by_hand() -> None:
    # Delays 0, 3, 1, 0 and values 1, 4, 2, 2.
    scores = scores_of(stream_of((15, 1.0), (12, 4.0), (14, 2.0), (16, 2.0)))
    # x = -2, 3, 1, -2 and y = -3, 3, 0, 0.
    assert scores == (4, 15, 18, 18)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=12))
def test_scores_count_pairs(rows: list[tuple[int, int]]) -> None:
    events = stream_of(*((time_us, float(value)) for time_us, value in rows))
    delays = [max(0, *(t for t, _ in rows[:n]), rows[n][0]) - rows[n][0] for n in range(len(rows))]
    values = [value for _, value in rows]

    def score(numbers: list[int], own: int) -> int:
        return sum(other < own for other in numbers) - sum(other > own for other in numbers)

    x = [score(delays, delay) for delay in delays]
    y = [score(values, value) for value in values]
    assert scores_of(events) == (
        len(rows),
        sum(a * b for a, b in zip(x, y, strict=True)),
        sum(a * a for a in x),
        sum(b * b for b in y),
    )


def test_disjoint_windows_are_recorded_unless_they_are_huge() -> None:
    config = SlackConfig(10, 4)
    starts_us = [start_us for start_us in range(-24, 40, 4) if is_recorded(config, start_us, 1)]
    assert starts_us == [-24, -12, 0, 12, 24, 36]
    assert is_recorded(config, 0, MAX_CORRELATED)
    assert not is_recorded(config, 0, MAX_CORRELATED + 1)
    assert is_recorded(SlackConfig(3, 7), 7, 1)


def test_nothing_is_said_about_few_windows() -> None:
    assert status_of([]) == Assumption(UNTESTED, None, None, None, 0)
    assert status_of([window(0, 50)]) == Assumption(UNTESTED, 0.5, None, None, 1)
    found = status_of(window(number, 50 + number) for number in range(19))
    assert (found.status, found.windows) == (UNTESTED, 19)
    assert found.low is not None
    assert found.low > 0


def test_the_interval_is_that_of_the_mean_over_windows() -> None:
    crosses = [Random(1).randrange(-9, 30) for _ in range(20)]
    found = status_of(window(number, cross) for number, cross in enumerate(crosses))
    assert found.rho == pytest.approx(mean(crosses) / 100)
    reach = T_19 * sqrt(20 * variance(crosses)) / (20 * 100)
    assert (found.low, found.high) == pytest.approx(
        (mean(crosses) / 100 - reach, mean(crosses) / 100 + reach), rel=1e-4
    )


def test_only_windows_that_agree_contradict_the_assumption() -> None:
    assert status_of(window(n, 40 + n % 3) for n in range(20)).status == CONTRADICTED
    assert status_of(window(n, -40 - n % 3) for n in range(20)).status == CONTRADICTED
    assert status_of(window(n, 40 * (-1) ** n) for n in range(20)).status == NOT_CONTRADICTED
    assert status_of(window(n, 0) for n in range(20)).status == NOT_CONTRADICTED


def test_only_the_latest_revision_counts_and_ties_throughout_do_not() -> None:
    steps = [window(n, 50) for n in range(20)]
    again = [window(n, -50, revision=2) for n in range(20)]
    assert status_of([*again, *steps]).rho == -0.5
    assert status_of([*steps, window(99, 0, spread=0)]).windows == 20
