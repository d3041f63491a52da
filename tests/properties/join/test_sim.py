"""The timed chain keeps the promises of docs/join.md, whatever its timing costs."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given

from model.checking.claims import Outcome
from model.join.claims import CASES, judge, over_all
from model.join.run import run as model_run
from model.vocabulary import Trace
from model.vocabulary.join import Match, Rejected
from properties import profiles
from properties.operators.join import SparkMachine
from properties.stream_packs import collect
from sim.join import ChainRun, simulate
from sim.join.machine import MachineOf
from sim.join.model_chain import ModelChain
from sim.kernel.link import Tier, Tiers
from sim.kernel.plain import from_plain, to_plain
from straggler.judging.judge import broken_sentences
from straggler.strategies.join import TimedCase, clusters_of_chains, recordings_on_chains

RUNS_FOR_GUARDS = profiles.choose(100, nightly=300)


def run(case: TimedCase, machine: MachineOf = ModelChain) -> ChainRun:
    return simulate(case.plan, case.config, case.seed, machine=machine)


def results(trace: Trace) -> Counter[tuple[str, int, int]]:
    """Count the matches, without their epochs."""
    return Counter(match[:3] for match in trace.of(Match))


def assert_is_right(timed: ChainRun) -> None:
    """Assert that the claims hold and that the model gives the same result."""
    broken = broken_sentences(judge(timed.workload, timed.trace).verdicts)
    assert not broken, "\n".join(broken)
    model = model_run(timed.workload.with_(flush=True))
    assert model.of(Rejected) == timed.trace.of(Rejected)
    if timed.workload.flush:
        assert results(model) == results(timed.trace)
    else:
        assert not results(timed.trace) - results(model)


@given(case=recordings_on_chains())
def test_every_pair_comes_out_once_whatever_the_timing(case: TimedCase) -> None:
    assert_is_right(run(case))


@given(case=clusters_of_chains())
def test_every_pair_comes_out_once_in_any_cluster(case: TimedCase) -> None:
    assert_is_right(run(case))


@given(case=recordings_on_chains())
def test_spark_s_workers_find_every_pair_once_whatever_the_timing(case: TimedCase) -> None:
    assert_is_right(run(case, SparkMachine))


@given(case=clusters_of_chains())
def test_spark_s_workers_find_every_pair_once_in_any_cluster(case: TimedCase) -> None:
    assert_is_right(run(case, SparkMachine))


def crossed(case: TimedCase) -> Iterator[Tier | None]:
    """Yield the tiers between neighbours; ``None`` for neighbours on one machine."""
    plan, workers = case.plan, case.config.workers
    places = [plan.cluster.worker(number).place for number in range(workers)]
    return (plan.way(one, other) for one, other in pairwise(places))


def test_timed_runs_put_every_claim_to_the_test(seed: int) -> None:
    drawn = [
        *collect(recordings_on_chains(), RUNS_FOR_GUARDS, seed),
        *collect(clusters_of_chains(), RUNS_FOR_GUARDS, seed),
    ]
    assert all(from_plain(to_plain(case.plan)) == case.plan for case in drawn)
    runs = [run(case) for case in drawn]
    evidence = [judge(timed.workload, timed.trace) for timed in runs]
    for verdict in over_all(evidence):
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.sentence, verdict.witness)
    for guard in CASES:
        assert sum(each.guards[guard] for each in evidence), f"there were no {guard}"
    for figure in (
        "shed",
        "shed_at_log",
        "failures",
        "arrivals_taken_again",
        "intake_pauses",
        "blocks",
        "sent_again",
        "came_again",
    ):
        assert sum(int(timed.summary.get(figure, 0)) for timed in runs), f"there were no {figure}"
    kinds = Counter(fault.kind for case in drawn for fault in case.plan.faults)
    assert set(kinds) == {"pause", "slow", "fail", "congest", "lose", "replay", "duplicate"}
    tiers = {
        tier
        for case, timed in zip(drawn, runs, strict=True)
        if "blocks" in timed.summary
        for tier in crossed(case)
    }
    assert tiers == {None, *Tiers()}, "a tier was never crossed"
    resized = [each for timed in runs for each in str(timed.summary["resized"]).split(", ")]
    changes = [[int(number) for number in each.split(" to ")] for each in resized if each != "no"]
    assert any(before < after for before, after in changes), "no worker came"
    assert any(before > after for before, after in changes), "no worker went"
