"""The timed run observes what the model says, and keeps the promises, whatever it costs."""

from hypothesis import given

from model.claims import Outcome
from model.slack.claims import judge, over_all
from model.vocabulary import SlackConfig
from model.vocabulary.slack import CONTROLS
from properties import packs
from properties.judge import broken_sentences
from properties.rooms import room
from properties.strategies import TimedCase, timed_cases
from sim.scenarios import umts
from sim.slack import Run, simulate

RUNS_FOR_GUARDS = 200


def run(case: TimedCase) -> Run:
    plan, seed, crew, interval_us = case.timing
    return simulate(plan, case.config, seed, workers=crew, trigger_interval_us=interval_us)


@given(case=timed_cases())
def test_a_timed_run_is_a_run_of_the_model_and_keeps_the_promises(case: TimedCase) -> None:
    slack = room("slack")
    timed = run(case)
    expected = slack.reference()(timed.workload)
    difference = slack.compare(timed.workload, expected, timed.trace, slack.words)
    assert not difference.mismatches, "\n".join(difference.sentences)
    broken = broken_sentences(judge(timed.workload, timed.trace).verdicts)
    assert not broken, "\n".join(broken)


def test_timed_runs_put_every_claim_to_the_test(seed: int) -> None:
    runs = [run(case) for case in packs.collect(timed_cases(), RUNS_FOR_GUARDS, seed)]
    evidence = [judge(timed.workload, timed.trace) for timed in runs]
    for guard in ("late pairs", "mixed tuples", "corrections of several windows", "misses"):
        assert sum(each.guards[guard] for each in evidence), f"there were no {guard}"
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
