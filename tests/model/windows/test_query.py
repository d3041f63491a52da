"""Aggregates: results by hand, and independence of the order of values."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import SlackConfig
from model.vocabulary.windows import AGGREGATES
from model.windows.query import aggregate_of, as_written, quantile


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("sum", 16.0),
        ("count", 5.0),
        ("avg", 3.2),
        ("min", 1.0),
        ("max", 7.0),
        ("median", 2.0),
        ("quantile", 5.0),
    ],
)
def test_aggregates_of_a_handful(aggregate: str, expected: float) -> None:
    config = SlackConfig(1, 1, aggregate=aggregate, q=0.8, control="fixed")
    assert aggregate_of(config)([5.0, 1.0, 2.0, 7.0, 1.0]) == expected


def test_a_rank_uses_the_decimal_that_was_written() -> None:
    # In float64 0.07 * 100 is 7.000000000000001, whose ceiling is 8.
    assert quantile(as_written(0.07))([float(n) for n in range(1, 101)]) == 7.0
    assert as_written(0.1) == Fraction(1, 10)


@given(
    st.sampled_from(AGGREGATES),
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20),
)
def test_no_aggregate_depends_on_the_order(aggregate: str, values: list[float]) -> None:
    of = aggregate_of(SlackConfig(1, 1, aggregate=aggregate, q=0.3, control="fixed"))
    assert of(values) == of(sorted(values))
