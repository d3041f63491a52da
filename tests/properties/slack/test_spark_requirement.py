"""The required coverage that Spark computes is that of the model, for windows of every size.

Drawn streams have small windows, which have to be complete; here windows have up to two thousand
tuples, of which many require only a part.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.slack.requirement import WindowFacts, requirement_of
from model.vocabulary import SlackConfig
from model.vocabulary.slack import METHODS, SAMPLINGS, SELF_SUFFICIENT_AGGREGATES
from spark_impl.slack import requirement

KINDS = [
    (aggregate, method, sampling)
    for method, aggregates in METHODS.items()
    for aggregate in aggregates
    for sampling in SAMPLINGS
    if aggregate in SELF_SUFFICIENT_AGGREGATES
]
CONTROLS = ("conformal", "pd")
LEAST = 3
"""Windows of each kind that have to require a part of themselves, and not everything."""


class Window(NamedTuple):
    """A configuration and a window that it judges."""

    config: SlackConfig
    values: list[float]
    cv_squared: float
    order: int


@st.composite
def windows(draw: st.DrawFn, aggregate: str, method: str, sampling: str) -> Window:
    """Draw settings for a kind of requirement, and a window of some or many tuples."""
    config = SlackConfig(
        20,
        10,
        aggregate=aggregate,
        method=method,
        sampling=sampling,
        control=draw(st.sampled_from(CONTROLS)),
        eps=draw(st.sampled_from((0.3, 0.1, 0.05))),
        delta=draw(st.sampled_from((0.2, 0.05))),
        q=draw(st.sampled_from((0.5, 0.9, 0.01))),
    )
    total = draw(st.sampled_from((200, 400)) | st.integers(1, 60))
    if not config.needs_values:
        total = draw(st.sampled_from((400, 2_000)) | st.integers(1, 300))
    base = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    values = [float(base[n % len(base)]) for n in range(total)]
    cv_squared = draw(st.sampled_from((0.0, 0.01, 0.25, 1.0)))
    return Window(config, values, cv_squared, draw(st.integers(0, 5)))


@pytest.fixture(scope="module")
def partial() -> Counter[tuple[str, ...]]:
    """Count the windows that require a part of themselves, by aggregate, method and sampling."""
    return Counter()


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
@given(data=st.data())
def test_spark_requires_what_the_model_requires(
    partial: Counter[tuple[str, ...]], kind: tuple[str, str, str], data: st.DataObject
) -> None:
    config, values, cv_squared, order = data.draw(windows(*kind))
    facts = WindowFacts(len(values), cv_squared, tuple(values), (0, order))
    found = requirement.required_tuples(
        config,
        np.array([len(values)]),
        np.array([cv_squared]),
        np.array(sorted(values, reverse=True)) if config.needs_values else None,
        0,
        order,
    )
    expected = requirement_of(config)(facts)
    assert found.tolist() == [expected]
    partial[kind] += 0 < expected < len(values)


def test_windows_of_every_kind_require_a_part(partial: Counter[tuple[str, ...]]) -> None:
    """A requirement that is always everything would hide which rule computes it."""
    missing = [kind for kind in KINDS if partial[kind] < LEAST]
    assert not missing, f"undetermined: {dict(partial)}"


@pytest.mark.parametrize(("right", "other"), [("_for_sum", "_for_avg"), ("_for_avg", "_for_sum")])
def test_a_rule_in_the_place_of_another_is_noticed(
    monkeypatch: pytest.MonkeyPatch, right: str, other: str
) -> None:
    monkeypatch.setattr(requirement, right, getattr(requirement, other))
    with pytest.raises((AssertionError, ExceptionGroup)):
        test_spark_requires_what_the_model_requires(
            Counter(), (right.removeprefix("_for_"), "normal", "exchangeable")
        )
