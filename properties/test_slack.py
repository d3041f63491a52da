"""Room ``slack``: model, simulation and Spark's operator agree, and its claims hold."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from model.slack.claims import CLAIMS
from model.slack.requirement import WindowFacts, requirement_of
from model.slack.variants import VARIANTS
from model.vocabulary import SlackConfig, Workload
from model.vocabulary.slack import METHODS, SELF_SUFFICIENT_AGGREGATES
from model.windows.claims import LACKING
from properties.agreement import Agreement, put_to_the_test, telling
from properties.promised import Reached, promised
from properties.reached_cases import TROUBLES
from sim.slack import simulate
from spark_impl.slack import requirement
from spark_impl.windows import panes
from straggler.strategies.streams import cases, configs, timed_cases, with_start, workloads
from straggler.strategies.telling_windows import OF_SLACK
from straggler.strategies.timed_cases import TimedCase
from straggler.strategies.troubled import in_all_regions

FROM_VALUES = configs(["sum", "avg"], ["conformal"]).filter(lambda config: config.needs_values)
"""Queries that guess judgements ahead, and whose requirements depend on values."""
PATIENT = configs(controls=["fixed"]).map(
    lambda config: replace(config, fixed_slack_us=1_000 * config.size_us, max_slack_us=None)
)
"""Queries that wait for everything."""


@promised(*put_to_the_test(CLAIMS), LACKING, "judged windows with a negative value", examples=70)
@telling(each.example for each in VARIANTS.values())
@telling(OF_SLACK)
@given(case=cases() | (FROM_VALUES | PATIENT).flatmap(with_start).flatmap(workloads))
def test_spark_s_operator_does_what_the_model_does(reached: Reached, case: Workload) -> None:
    with patch.object(panes, "PAIRS_AT_ONCE", (3, panes.PAIRS_AT_ONCE)[case.seed % 2]):
        Agreement("slack", reached).of_operator(case)


@promised("late pairs", "misses", *TROUBLES, "rows redelivered", examples=9)
@given(clusters=in_all_regions(timed_cases))
def test_a_timed_run_is_a_run_of_the_model(
    reached: Reached, clusters: Sequence[TimedCase[SlackConfig]]
) -> None:
    for config, (plan, seed) in clusters:
        Agreement("slack", reached).of_run(simulate(plan, config, seed))


KINDS = [
    (aggregate, method)
    for method, aggregates in METHODS.items()
    for aggregate in aggregates
    if aggregate in SELF_SUFFICIENT_AGGREGATES
]
SETTINGS = st.fixed_dictionaries(
    {
        "control": st.sampled_from(("conformal", "pd")),
        "eps": st.sampled_from((0.3, 0.1, 0.05)),
        "delta": st.sampled_from((0.2, 0.05)),
        "q": st.sampled_from((0.5, 0.9, 0.01)),
    }
)
REPEATED = st.lists(st.integers(1, 9) | st.sampled_from((-2, 1)), min_size=1, max_size=5)
"""Values that come again and again in a window."""
SIZES = st.sampled_from((200, 400, 2_000)) | st.integers(1, 300)
VARIATIONS = st.sampled_from((0.0, 0.01, 0.25, 1.0))
NO_MEAN = {"control": "pd", "eps": 0.1, "delta": 0.05, "q": 0.5}, 200, (-2, 2), inf
MANY = {"control": "pd", "eps": 0.02, "delta": 0.05, "q": 0.9}, 6_000, (1, 2), 0.25
OUTLIER = {**NO_MEAN[0], "eps": 0.3}, 400, (*[0, 1, 0.5] * 133, 10), 0.25


@promised(*map("-".join, KINDS), examples=12)
@example(draws=[NO_MEAN] * len(KINDS))
@example(draws=[OUTLIER] * len(KINDS))
@example(draws=[MANY] * len(KINDS))
@given(draws=st.tuples(*[st.tuples(SETTINGS, SIZES, REPEATED, VARIATIONS) for _ in KINDS]))
def test_spark_requires_what_the_model_requires(reached: Reached, draws: Sequence[Any]) -> None:
    """A requirement that is always everything would hide which rule computes it."""
    for (aggregate, method), drawn in zip(KINDS, draws, strict=True):
        settings, total, repeated, cv_squared = drawn
        config = SlackConfig(20, 10, aggregate=aggregate, method=method, **settings)
        values = np.resize(np.array(repeated, np.float64), total)
        largest_first = np.sort(values)[::-1] if config.needs_values else None
        found = requirement.required_tuples(
            config, np.array([total]), np.array([cv_squared]), largest_first, bool(values.min() < 0)
        )
        facts = WindowFacts(total, cv_squared, values.tolist(), bool(values.min() < 0))
        expected = requirement_of(config)(facts)
        assert found.tolist() == [expected], config
        reached.add({"-".join((aggregate, method)): 0 < expected < total})
