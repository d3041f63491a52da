"""Promise 6 of docs/grouping.md: routes, heavy keys and answers of the pipeline are the model's.

Its routers and instances run in process here, without Spark; what ``--system`` names takes their
place.
"""

from collections import Counter

import pytest
from hypothesis import example, given

from model.grouping.claims import CASES, judge
from model.grouping.variants import VARIANTS
from model.vocabulary import System, Workload
from model.vocabulary.grouping import POLICIES, WORDS
from properties import profiles
from properties.hot_keys import one_key, skewed
from properties.stream_packs import collect
from spark_impl.grouping import run_in_process
from straggler.judging.judge import broken_sentences
from straggler.rooms.grouping.room import compare
from straggler.strategies.grouping import cases
from tests.straggler.agreement import grouping_differences as differences

DRAWN = profiles.choose(100, nightly=200)
"""Number of cases that together have to contain every interesting one."""


@pytest.fixture(scope="module")
def pipeline(foreign_system: System | None) -> System:
    return foreign_system or run_in_process


# Too rare to be drawn: a key that is forgotten and then is heavy, and one counter too few.
@example(case=VARIANTS["floors_forgotten"].example)
@example(case=VARIANTS["too_few_counters"].example)
@given(case=cases())
def test_the_pipeline_does_what_the_model_does(pipeline: System, case: Workload) -> None:
    assert not differences(case, pipeline(case))


def test_the_drawn_cases_include_every_interesting_one(pipeline: System, seed: int) -> None:
    drawn = collect(cases(), DRAWN, seed)
    guards = Counter[str]()
    for case in drawn:
        observed = pipeline(case)
        assert not differences(case, observed)
        evidence = judge(case, observed)
        assert not broken_sentences(evidence.verdicts)
        guards.update(evidence.guards)
    for guard in CASES:
        assert guards[guard], f"there were no {guard}"


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_agrees_on_hot_keys_that_change(
    pipeline: System, seed: int, policy: str
) -> None:
    case = skewed(policy, seed)
    observed = pipeline(case)
    assert not differences(case, observed)
    guards = judge(case, observed).guards
    for guard in ("tuples of heavy keys", "rebalances that changed the table", "full summaries"):
        assert guards[guard], f"there were no {guard}"
    assert guards["windows with new times"] == 1
    assert not differences(one_key(policy), pipeline(one_key(policy)))


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_a_mistake_is_caught_by_comparison(pipeline: System, name: str) -> None:
    variant = VARIANTS[name]
    case = variant.example
    right, wrong = pipeline(case), variant.make_system()(case)
    assert not differences(case, right)
    assert compare(case, right, wrong, WORDS).mismatches
