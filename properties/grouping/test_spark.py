"""Promise 6 of docs/grouping.md: routes, heavy keys and answers on Spark are those of the model.

Most cases run through the pipeline's routers and instances in process, some in Spark itself. What
``--system`` names takes the place of what runs in process.
"""

from collections import Counter
from random import Random

import pytest
from hypothesis import example, given
from pyspark.sql import SparkSession

from model.grouping import run
from model.grouping.claims import CASES, judge
from model.grouping.variants import VARIANTS
from model.vocabulary import Event, Fault, GroupingConfig, System, Trace, Workload
from model.vocabulary.grouping import POLICIES, WORDS
from properties import packs, profiles
from properties.grouping.agreement import compare
from properties.grouping.strategies import cases
from properties.judge import broken_sentences
from spark_impl.grouping import make_system, run_in_process

DRAWN = 200
"""Cases that are looked at together."""
TUPLES = 800
WINDOW = 200
INSTANCES = 7
STATEFUL = ("tag", "cg", "dag", "dkg", "round-robin")
"""Policies whose senders carry something of their own from one micro-batch to the next."""


@pytest.fixture(scope="module")
def pipeline(foreign_system: System | None) -> System:
    return foreign_system or run_in_process


def assert_agrees(case: Workload, observed: Trace) -> None:
    """What was observed is what the model does."""
    wrong = compare(case, run(case), observed, WORDS).sentences
    assert not wrong, "\n".join(wrong)


# ------------------------------------------------------------------------------------ in process


# That a key is forgotten and then is heavy is too rare to be drawn, and so is one counter too few.
@example(case=VARIANTS["floors_forgotten"].example)
@example(case=VARIANTS["too_few_counters"].example)
@given(case=cases())
def test_the_pipeline_does_what_the_model_does(pipeline: System, case: Workload) -> None:
    assert_agrees(case, pipeline(case))


def test_what_matters_was_among_the_cases(pipeline: System, seed: int) -> None:
    drawn = packs.collect(cases(), DRAWN, seed)
    guards = Counter[str]()
    for case in drawn:
        observed = pipeline(case)
        assert_agrees(case, observed)
        evidence = judge(case, observed)
        assert not broken_sentences(evidence.verdicts)
        guards.update(evidence.guards)
    for guard in CASES:
        assert guards[guard], f"there were no {guard}"


def skewed(policy: str, seed: int) -> Workload:
    """Four windows whose hot keys change, through three senders and with times that change."""
    draws = Random(seed)
    shares = [1 / (rank + 1) for rank in range(60)]
    arrivals = []
    for seq in range(TUPLES):
        key = draws.choices(range(60), shares)[0] + 5 * (seq // (2 * WINDOW))
        value = float("nan") if seq % 50 == 49 else float(draws.randrange(64))
        arrivals.append(Event(seq, seq, f"k{key}", 100, value, 100))
    config = GroupingConfig(
        INSTANCES,
        policy,
        ((0, (1, 1, 2, 2, 5, 9, 9)), (4, (9, 9, 5, 2, 2, 1, 1))),
        latency_us=(7, 0, 3, 3, 0, 7, 9),
        senders=3,
        window_tuples=WINDOW,
        theta=0.1,
        tiers=(3, 0, 1, 2, 0, 1, 3),
        hash_seed=seed,
    )
    cuts = tuple(range(WINDOW // 2, TUPLES, WINDOW // 2))
    return Workload("grouping", tuple(arrivals), config.to_json(), cuts, name=policy)


def one_key(policy: str) -> Workload:
    """So many tuples of a key that every virtual worker it may go to is full."""
    case = skewed(policy, 0)
    same = tuple([event._replace(key="k") for event in case.arrivals])
    return case.with_(arrivals=same)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_does_it_with_hot_keys_that_change(
    pipeline: System, seed: int, policy: str
) -> None:
    case = skewed(policy, seed)
    observed = pipeline(case)
    assert_agrees(case, observed)
    guards = judge(case, observed).guards
    for guard in ("tuples of heavy keys", "rebalances that changed the table", "full summaries"):
        assert guards[guard], f"there were no {guard}"
    assert guards["windows with new times"] == 1
    assert_agrees(one_key(policy), pipeline(one_key(policy)))


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_a_mistake_is_caught_by_comparison(pipeline: System, name: str) -> None:
    variant = VARIANTS[name]
    case = variant.example
    right, wrong = pipeline(case), variant.make_system()(case)
    assert_agrees(case, right)
    assert compare(case, right, wrong, WORDS).mismatches


# -------------------------------------------------------------------------------------- in Spark


@pytest.mark.parametrize("policy", STATEFUL if profiles.effort().chains > 4 else STATEFUL[:2])
def test_spark_does_what_the_model_does(spark: SparkSession, seed: int, policy: str) -> None:
    whole = skewed(policy, seed)
    cuts = (WINDOW // 2, WINDOW, 2 * WINDOW)
    case = whole.with_(
        arrivals=whole.arrivals[: 2 * WINDOW + 40],
        config={**whole.config, "times_us": [[0, [1, 1, 2, 2, 5, 9, 9]], [2, [9] * 3 + [1] * 4]]},
        cuts=cuts,
        faults=(Fault("restart", 0), Fault("kill", 2)),
    )
    observed = make_system()(case)
    assert_agrees(case, observed)
    guards = judge(case, observed).guards
    for guard in ("tuples of heavy keys", "rebalances that changed the table", "rejected arrivals"):
        assert guards[guard], f"there were no {guard}"
