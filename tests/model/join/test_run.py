"""The reference run keeps its promises on any interleaving, cut, chain and query."""

import pytest

from model.checking.claims import Judgement, Outcome
from model.join.claims import CASES, judge, over_all
from model.join.run import make_system, run
from model.vocabulary import JoinConfig
from model.vocabulary.join import Match
from tests.model.join.strategies import workload

SEEDS = range(300)


@pytest.fixture(scope="module")
def judgements() -> list[Judgement]:
    cases = [workload(seed, flush=seed % 10 != 0, limited=seed % 2 == 0) for seed in SEEDS]
    return [judge(case, run(case)) for case in cases]


def test_every_promise_holds_with_its_guard(judgements: list[Judgement]) -> None:
    for verdict in over_all(judgements):
        assert verdict.outcome is Outcome.HOLDS, (verdict.claim, verdict.sentence)


@pytest.mark.parametrize("guard", CASES)
def test_every_case_that_must_occur_does(judgements: list[Judgement], guard: str) -> None:
    assert sum(each.guards[guard] for each in judgements)


def test_the_same_seed_gives_the_same_trace_and_another_another() -> None:
    case = workload(3)
    assert make_system()(case).digest() == run(case).digest()
    assert run(case.with_(seed=99)).digest() != run(case).digest()


@pytest.mark.parametrize("seed", range(1, 9))
def test_chain_cut_and_interleaving_change_no_result(seed: int) -> None:
    case = workload(seed)
    results = {match[:3] for match in run(case).of(Match)}
    for workers in (1, 2, 5):
        config = JoinConfig.from_json({**case.config, "workers": workers, "block_size": 3})
        other = case.with_(config=config.to_json(), cuts=(5, 20), seed=seed + workers)
        assert {match[:3] for match in run(other).of(Match)} == results


@pytest.mark.parametrize("seed", range(1, 9))
def test_limited_to_epochs_a_chain_changes_no_result_while_the_cut_stays(seed: int) -> None:
    case = workload(seed, limited=True)
    results = {match[:3] for match in run(case).of(Match)}
    assert results <= {match[:3] for match in run(workload(seed)).of(Match)}
    for workers in (1, 2, 5):
        other = case.with_(config={**case.config, "workers": workers}, seed=seed + workers)
        assert {match[:3] for match in run(other).of(Match)} == results


def test_without_a_flush_pairs_may_be_owed_but_none_is_wrong() -> None:
    lacking = 0
    for seed in range(1, 40):
        case = workload(seed, flush=False)
        judgement = judge(case, run(case))
        assert all(verdict.outcome is Outcome.HOLDS for verdict in judgement.verdicts)
        lacking += len(run(case).of(Match)) < judgement.guards["results"]
    assert lacking


def test_nothing_arrives() -> None:
    case = workload(1).with_(arrivals=(), cuts=())
    assert all(verdict.outcome is Outcome.HOLDS for verdict in judge(case, run(case)).verdicts)
