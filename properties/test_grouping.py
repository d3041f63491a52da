"""Room ``grouping``: model, simulation and Spark's operator agree, and its claims hold."""

from collections.abc import Sequence

from hypothesis import given

from model.grouping.claims import CLAIMS
from model.grouping.variants import CLOSE_CALLS, VARIANTS
from model.vocabulary import GroupingConfig, Workload
from model.vocabulary.grouping import POLICIES
from properties.agreement import Agreement, put_to_the_test, telling
from properties.promised import Reached, promised
from sim.grouping import simulate
from sim.grouping.room import TIMED_ROOM
from straggler.judging.plan_counterexamples import TimedCase
from straggler.strategies.grouping import cases, timed_cases
from straggler.strategies.hot_keys import one_key, skewed
from straggler.strategies.troubled import in_all_regions


@promised(*put_to_the_test(CLAIMS), examples=60)
@telling(each.example for each in VARIANTS.values())
@telling([*CLOSE_CALLS, skewed("tag", 0)])
@given(case=cases())
def test_spark_s_operator_does_what_the_model_does(reached: Reached, case: Workload) -> None:
    Agreement("grouping", reached).of_operator(case)


@promised(
    "tuples of heavy keys",
    "rebalances that changed the table",
    "full summaries",
    "windows with new times",
)
def test_every_policy_agrees_on_hot_keys_that_change(reached: Reached, seed: int) -> None:
    for policy in POLICIES:
        for case in (skewed(policy, seed), one_key(policy)):
            Agreement("grouping", reached).of_operator(case)


@promised("shed", "sent_again", "served_again", "several senders", examples=9)
@given(clusters=in_all_regions(timed_cases))
def test_a_timed_run_is_a_run_of_the_model(
    reached: Reached, clusters: Sequence[TimedCase[GroupingConfig]]
) -> None:
    for config, (plan, seed) in clusters:
        run = simulate(plan, config, seed)
        Agreement("grouping", reached).of_run(run)
        # Routes depend on arrivals alone: the cluster of a replay has other workers and tiers.
        assert TIMED_ROOM.replay(run.workload).trace.digest() == run.trace.digest()
