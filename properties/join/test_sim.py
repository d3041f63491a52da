"""The timed chain keeps the promises of docs/join.md, whatever its timing costs."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from model.claims import Outcome
from model.join.claims import CASES, judge, over_all
from model.join.load import Limits
from model.vocabulary import JoinConfig, Workload
from properties import packs
from properties.join.strategies import SCALE_US, UNIT_US, cases
from properties.judge import broken_sentences
from properties.strategies import upto
from sim.join import Run, simulate_stream, stream_of
from sim.join.crew import TIERS, Control, Costs, Crew
from sim.kernel.faults import Clog, Fail, Pause, Schedule, Slow

RUNS_FOR_GUARDS = 100

# ------------------------------------------------------------------------------------- any timing

LIMITS = Limits(0.25, 0.8, 0.8, out_after_us=2 * UNIT_US, in_after_us=4 * UNIT_US)
LOADS = st.builds(
    Control,
    capacity=st.sampled_from([3, 8, 1_000]),
    limits=st.just(LIMITS),
    blocks=st.sampled_from(["fixed", "adaptive"]),
    shed=st.sampled_from(["no", "no", "linear", "quadratic"]),
    base=st.sampled_from([0.0, 0.3]),
    scale=st.booleans(),
    every_us=st.just(UNIT_US // 2),
)
CREWS = st.builds(
    Crew,
    speeds=st.sampled_from([(1.0,), (1.0, 0.2), (0.1, 1.0, 3.0)]),
    tiers=st.lists(st.sampled_from(list(TIERS)), min_size=1, max_size=3).map(tuple),
    costs=st.builds(Costs, message_us=st.sampled_from([0.0, 5.0, 300.0])),
    intake_us=st.sampled_from([1, 700]),
    intake_tuples=st.sampled_from([1, 3, 256]),
    hint_us=st.just(UNIT_US),
    pace_us=st.sampled_from([None, 0, 8 * UNIT_US]),
    commit_us=st.sampled_from([0, 500]),
)


class TimedCase(NamedTuple):
    """A workload, and what the chain that gets it runs on."""

    workload: Workload
    crew: Crew
    control: Control
    faults: Schedule


@st.composite
def timed_cases(draw: st.DrawFn) -> TimedCase:
    """Chains on every network, among them unequal workers and some that fail."""
    workload = draw(cases())
    m = JoinConfig.from_json(workload.config).workers
    at_us, for_us = upto(16 * SCALE_US), upto(SCALE_US, above=1)
    worker = st.sampled_from([f"worker-{n}" for n in range(m)])
    kinds: list[st.SearchStrategy[Fail | Pause | Slow | Clog]] = [
        st.builds(Fail, worker, at_us, for_us),
        st.builds(Pause, worker, at_us, for_us),
        st.builds(Slow, worker, at_us, for_us, st.just(8.0)),
    ]
    if m > 1:
        links = [f"{side}-{n}" for side in ("right", "left") for n in range(m - 1)]
        kinds.append(st.builds(Clog, st.sampled_from(links), at_us, for_us))
    faults = draw(st.lists(st.one_of(kinds), max_size=3))
    return TimedCase(workload, draw(CREWS), draw(LOADS), tuple(faults))


def run(case: TimedCase) -> Run:
    workload = case.workload
    return simulate_stream(
        stream_of(workload),
        JoinConfig.from_json(workload.config),
        workload.seed,
        crew=case.crew,
        control=case.control,
        faults=case.faults,
        record=True,
    )


@given(case=timed_cases())
def test_every_pair_comes_out_once_whatever_the_timing(case: TimedCase) -> None:
    timed = run(case)
    broken = broken_sentences(judge(timed.workload, timed.trace).verdicts)
    assert not broken, "\n".join(broken)


def test_timed_runs_put_every_claim_to_the_test(seed: int) -> None:
    drawn = packs.collect(timed_cases(), RUNS_FOR_GUARDS, seed)
    runs = [run(case) for case in drawn]
    evidence = [judge(timed.workload, timed.trace) for timed in runs]
    for verdict in over_all(evidence):
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.sentence, verdict.witness)
    for guard in CASES:
        assert sum(each.guards[guard] for each in evidence), f"there were no {guard}"
    for figure in ("shed", "failures", "arrivals_taken_again", "intake_pauses", "blocks"):
        assert sum(int(timed.summary.get(figure, 0)) for timed in runs), f"there were no {figure}"
    crossed = {
        tier
        for case, timed in zip(drawn, runs, strict=True)
        if "blocks" in timed.summary
        for tier in case.crew.tiers[: int(timed.summary["workers"]) - 1]
    }
    assert crossed == set(TIERS), "a tier was never crossed"
    resized = {str(timed.summary["resized"]) for timed in runs}
    assert any("1 to 2" in each for each in resized), "no worker came"
    assert any("2 to 1" in each for each in resized), "no worker went"
