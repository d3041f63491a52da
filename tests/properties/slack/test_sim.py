"""A timed run observes what the model says, and keeps the promises."""

import json

from hypothesis import given

from model.slack.claims import judge
from model.vocabulary import SlackConfig
from model.vocabulary.slack import CONTROLS
from sim.kernel.plain import from_plain, to_plain
from sim.scenarios import umts
from sim.slack import TimedRun, simulate
from straggler.judging.judge import broken_sentences
from straggler.strategies.streams import TimedCase, timed_cases


def run(case: TimedCase) -> TimedRun:
    plan, seed = case.timing
    return simulate(plan, case.config, seed)


@given(case=timed_cases())
def test_a_plan_comes_back_from_its_file(case: TimedCase) -> None:
    plan = case.timing.plan
    again = from_plain(json.loads(json.dumps(to_plain(plan), allow_nan=False)))
    assert again == plan
    assert repr(again) == repr(plan)


def test_every_control_meets_the_same_arrivals() -> None:
    configs = [
        SlackConfig(5_000_000, 1_000_000, tasks=2, control=control, fixed_slack_us=200_000)
        for control in CONTROLS
    ]
    plan = umts(11, messages=300)
    runs = [simulate(plan, config, seed=11) for config in configs]
    assert len({timed.workload.arrivals for timed in runs}) == 1
    evidence = [judge(timed.workload, timed.trace) for timed in runs]
    assert all(each.guards["late pairs"] for each in evidence)
    assert not [sentence for each in evidence for sentence in broken_sentences(each.verdicts)]
