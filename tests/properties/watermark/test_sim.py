"""A timed run observes what the model says, and keeps the promises."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from model.checking.claims import Outcome
from model.checking.diff import compare
from model.vocabulary import WatermarkConfig
from model.vocabulary.watermark import READINGS, WORDS
from model.watermark import run as model_run
from model.watermark.claims import judge, over_all
from model.watermark.evidence import IDENTITY
from properties.reached_cases import count_troubles
from properties.stream_packs import collect
from sim.watermark import TimedRun, simulate
from sim.windows.scenarios import phases
from straggler.judging.judge import broken_sentences
from straggler.judging.plan_counterexamples import SeededPlan
from straggler.strategies.streams import timings
from straggler.strategies.watermark import configs

RUNS_FOR_GUARDS = 360
SECOND_US = 1_000_000


class TimedCase(NamedTuple):
    """The input of a timed run."""

    config: WatermarkConfig
    timing: SeededPlan


@st.composite
def timed_cases(draw: st.DrawFn) -> TimedCase:
    config = draw(configs(upstreams=(0, 0, 1, 2)))
    return TimedCase(config, draw(timings(max(config.size_us, config.slide_us), config.tasks)))


def run(case: TimedCase) -> TimedRun:
    plan, seed = case.timing
    return simulate(plan, case.config, seed)


@given(case=timed_cases())
def test_a_timed_run_is_a_run_of_the_model_and_keeps_the_promises(case: TimedCase) -> None:
    timed = run(case)
    # Values are whole numbers: every sum is exact, and so is the comparison.
    expected = model_run(timed.workload)
    difference = compare(expected, timed.trace, WORDS, identity=IDENTITY)
    assert not difference.mismatches, "\n".join(difference.sentences)
    assert timed.trace.digest() == expected.digest()
    broken = broken_sentences(judge(timed.workload, timed.trace).verdicts)
    assert not broken, "\n".join(broken)


def test_timed_runs_put_every_claim_to_the_test(seed: int) -> None:
    runs = [run(case) for case in collect(timed_cases(), RUNS_FOR_GUARDS, seed)]
    evidence = [judge(timed.workload, timed.trace) for timed in runs]
    for guard in (
        "calm arrivals",
        "stormy arrivals",
        "early answers",
        "late pairs",
        "corrections",
        "insertions",
    ):
        assert sum(each.guards[guard] for each in evidence), f"there were no {guard}"
    met = count_troubles(runs)
    assert min(met.values()) > 3, met
    for verdict in over_all(evidence):
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.sentence, verdict.witness)


def test_every_reading_meets_the_same_arrivals() -> None:
    runs = {
        reading: simulate(
            phases(11),
            WatermarkConfig(10 * SECOND_US, 10 * SECOND_US, 8 * SECOND_US, reading=reading),
            11,
        )
        for reading in READINGS
    }
    assert len({timed.workload.arrivals for timed in runs.values()}) == 1
    late = {reading: timed.summary["late_pairs"] for reading, timed in runs.items()}
    waits = {reading: float(timed.summary["mean_wait_us"]) for reading, timed in runs.items()}
    # A storm displaces a tuple by up to M, so that a fixed watermark misses nothing.
    assert late["fixed"] == 0 < late["scaled"] < late["disorder"]  # type: ignore[operator]  # figures are numbers here
    assert waits["disorder"] < waits["scaled"] < waits["literal"] < waits["fixed"]
