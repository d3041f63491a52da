"""A timed run observes what the model says, and keeps the promises."""

import json

from hypothesis import given

from model.checking.claims import Outcome
from model.slack.claims import judge, over_all
from model.vocabulary import SlackConfig
from model.vocabulary.slack import CONTROLS
from properties import profiles
from properties.reached_cases import count_troubles
from properties.stream_packs import collect
from sim.kernel.plain import from_plain, to_plain
from sim.scenarios import umts
from sim.slack import TimedRun, simulate
from straggler.judging.judge import broken_sentences
from straggler.rooms import find_room
from straggler.strategies.streams import TimedCase, timed_cases

RUNS_FOR_GUARDS = profiles.choose(100, nightly=200)


def run(case: TimedCase) -> TimedRun:
    plan, seed = case.timing
    return simulate(plan, case.config, seed)


@given(case=timed_cases())
def test_a_timed_run_is_a_run_of_the_model_and_keeps_the_promises(case: TimedCase) -> None:
    slack = find_room("slack")
    timed = run(case)
    expected = slack.reference()(timed.workload)
    difference = slack.compare(timed.workload, expected, timed.trace, slack.step_types)
    assert not difference.mismatches, "\n".join(difference.sentences)
    # Values are whole numbers: every sum is exact, and so is the trace.
    assert timed.trace.digest() == expected.digest()
    broken = broken_sentences(judge(timed.workload, timed.trace).verdicts)
    assert not broken, "\n".join(broken)


@given(case=timed_cases())
def test_a_plan_comes_back_from_its_file(case: TimedCase) -> None:
    plan = case.timing.plan
    again = from_plain(json.loads(json.dumps(to_plain(plan), allow_nan=False)))
    assert again == plan
    assert repr(again) == repr(plan)


def test_timed_runs_put_every_claim_to_the_test(seed: int) -> None:
    runs = [run(case) for case in collect(timed_cases(), RUNS_FOR_GUARDS, seed)]
    evidence = [judge(timed.workload, timed.trace) for timed in runs]
    for guard in ("late pairs", "mixed tuples", "corrections of several windows", "misses"):
        assert sum(each.guards[guard] for each in evidence), f"there were no {guard}"
    met = count_troubles(runs)
    assert min(met.values()) > 3, met
    for verdict in over_all(evidence):
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.sentence, verdict.witness)


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
