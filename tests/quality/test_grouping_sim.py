"""Planted bugs in the senders of a timed run: its trace gives them away.

The stream has full summaries, hot keys that come and go, unequal instances on several tiers and
measured times; it is long enough for every mistake to be made in it.
"""

import pytest

from model.claims import Outcome
from model.grouping.claims import judge
from model.grouping.rules import RULES
from model.grouping.table import Rules
from model.grouping.variants import AGREEMENT, VARIANTS
from sim.grouping import Run
from sim.grouping.settings import given
from sim.kernel.log import simulate_arrivals

SETTINGS = {
    "scenario": "drift",
    "tuples": "3000",
    "keys": "400",
    "zipf": "0.8",
    "instances": "8",
    "window_tuples": "750",
    "batch_tuples": "50",
    "tiers": "elsewhere,process,rack",
}


def run(policy: str, rules: Rules) -> Run:
    asked = given(SETTINGS)
    return asked.run(simulate_arrivals(asked.plan, 3), policy, backlog=False, rules=rules)


def broken(timed: Run) -> set[str]:
    verdicts = judge(timed.workload, timed.trace).verdicts
    return {verdict.claim for verdict in verdicts if verdict.outcome is Outcome.BROKEN}


@pytest.mark.parametrize("name", [name for name in VARIANTS if VARIANTS[name].promise != AGREEMENT])
def test_a_planted_bug_is_found_in_a_timed_run(name: str) -> None:
    variant = VARIANTS[name]
    policy = variant.example.config.get("policy", "tag")
    assert not broken(run(policy, RULES))
    assert broken(run(policy, variant.rules))
