"""Chains on Spark that follow load curves: every pair of admitted tuples comes out exactly once.

Workers come and go, arrivals are shed and come again, and epochs lose their commits, as if the
driver had died just before. An oracle that shares no code with either side says what the results
are.
"""

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from model.checking.claims import Outcome
from model.join.claims import DECIDED_CASES, judge, over_all
from model.join.decision_claims import RESIZED, SHED, changes
from model.join.replay import CLAIM as CONFORMS
from model.join.state_claims import LOST, TWICE
from model.vocabulary import JoinConfig
from model.vocabulary.join import Match, Rejected
from properties import profiles
from properties.chain_workloads import CURVES_A_CHAIN, loaded_chains
from properties.oracles.join import Recomputation
from spark_impl.join import run_workloads


def test_every_pair_of_admitted_tuples_comes_out_once_under_every_load(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    curves = profiles.effort().curves
    cases = {f"chain {n}": case for n, case in enumerate(loaded_chains(curves, seed))}
    killed: list[int] = []
    traces = run_workloads(spark, cases, tmp_path, killed.append)
    evidence = []
    for name, case in cases.items():
        trace, expected = traces[name], Recomputation(case.to_json())
        assert Counter(each[:3] for each in trace.of(Match)) == expected.pairs, name
        assert Counter(trace.of(Rejected)) == Counter(expected.rejected), name
        evidence.append(judge(case, trace))
    judged = {verdict.claim: verdict for verdict in over_all(evidence)}
    for verdict in judged.values():
        assert verdict.outcome is not Outcome.BROKEN, (verdict.sentence, verdict.witness)
    for claim in (TWICE, LOST, SHED, RESIZED, CONFORMS):
        assert judged[claim].outcome is Outcome.HOLDS, judged[claim]
    assert len(killed) == sum(len(case.faults) for case in cases.values()) > 0
    resized = [
        epoch in {changed for changed, _, _ in changes(case, JoinConfig.from_json(case.config))}
        for case in cases.values()
        for _, epoch, _ in case.faults
    ]
    assert any(resized), "no driver was killed in an epoch that began with other workers"
    if curves >= CURVES_A_CHAIN:
        assert not all(resized), "no driver was killed in another epoch"
        for guard in (*DECIDED_CASES, "tuples held when workers came or went"):
            assert sum(each.guards[guard] for each in evidence), f"there were no {guard}"


def test_load_curves_ask_for_every_kind_of_decision(seed: int) -> None:
    curves = 4 * CURVES_A_CHAIN
    chains = [JoinConfig.from_json(case.config) for case in loaded_chains(curves, seed)]
    decisions = [each for config in chains for each in config.decisions]
    assert len({each.workers for each in decisions}) >= 4
    assert len({each.share for each in decisions}) > 5
    assert len({each.block_size for each in decisions}) > 2
