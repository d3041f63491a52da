"""Room ``slack``: model, simulation and Spark's operator agree, and its claims hold."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given

from model.slack.claims import CLAIMS
from model.slack.variants import VARIANTS
from model.vocabulary import SlackConfig, Workload
from model.windows.variants import example
from properties.agreement import Agreement, put_to_the_test, telling
from properties.promised import Reached, promised
from properties.reached_cases import TROUBLES
from sim.slack import simulate
from straggler.judging.plan_counterexamples import TimedCase
from straggler.strategies.streams import cases, configs, timed_cases, workloads
from straggler.strategies.troubled import in_all_regions

FROM_VALUES = configs(["sum", "avg"], ["conformal"]).filter(lambda config: config.needs_values)
"""Queries that guess judgements ahead, and whose requirements depend on values."""

TOLD_APART = ("judged windows with a negative value", "correlated windows")

PATIENT = configs(controls=["fixed"]).map(
    lambda config: replace(config, fixed_slack_us=1_000 * config.size_us, max_slack_us=None)
)
"""Queries that wait for everything."""


ENOUGH = example(
    "slack",
    SlackConfig(10, 10, control="fixed", fixed_slack_us=100).to_json(),
    (0, 12, 5, 40, 31, 200, 400),
    (1.0, -2.0, 4.0, -8.0, 16.0, 32.0, 64.0),
    (3, 5),
)
"""A slack that covers every delay; values are negative in some windows."""


@promised(*put_to_the_test(CLAIMS), *TOLD_APART, examples=70)
@telling(each.example for each in VARIANTS.values())
@telling([ENOUGH])
@given(case=cases() | (FROM_VALUES | PATIENT).flatmap(workloads))
def test_spark_s_operator_does_what_the_model_does(reached: Reached, case: Workload) -> None:
    Agreement("slack", reached).of_operator(case)


@promised("late pairs", "misses", *TROUBLES, "rows redelivered", examples=9)
@given(clusters=in_all_regions(timed_cases))
def test_a_timed_run_is_a_run_of_the_model(
    reached: Reached, clusters: Sequence[TimedCase[SlackConfig]]
) -> None:
    for config, (plan, seed) in clusters:
        Agreement("slack", reached).of_run(simulate(plan, config, seed))
