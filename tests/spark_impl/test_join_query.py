"""The chain on Spark: real barrier stages, real connections."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import Fault, JoinConfig, Workload
from model.vocabulary.join import (
    And,
    Quiet,
    Rejected,
)
from spark_impl.join import ChainJoin, results, run_workloads
from spark_impl.join.system import rows_of
from spark_impl.session import EnvironmentProblem
from tests.spark_impl.join_cases import Pair, admitted, nested_loop, pairs, random_case


def case_with(workers: int, batches: int = 2, seed: int = 7, tuples: int = 140) -> Workload:
    case = random_case(seed, tuples, tuples)
    config = {**case.config, "workers": workers, "block_size": 3, "lateness_us": 8}
    cuts = tuple(tuples * n // batches for n in range(1, batches))
    made = case.with_(config=config, cuts=cuts, name=f"seed {seed}")
    assert nested_loop(made), "a case without a match shows nothing"
    return made


def test_workloads_are_joined_exactly_once(spark: SparkSession, tmp_path: Path) -> None:
    cases = {f"of {workers}": case_with(workers) for workers in (1, 3)}
    cases["of 3"] = cases["of 3"].with_(faults=(Fault("kill", 1),))
    traces = run_workloads(spark, cases, tmp_path)
    for name, case in cases.items():
        trace = traces[name]
        assert pairs(trace) == nested_loop(case)
        assert set(trace.of(Rejected)) == admitted(case)[1]
        workers = JoinConfig.from_json(case.config).workers
        assert {step.worker for step in trace.of(Quiet)} == set(range(workers))


def found_in(spark: SparkSession, store: Path) -> Counter[Pair]:
    return Counter((row.query, row.r_id, row.s_id) for row in results(spark, store).collect())


def test_more_workers_than_slots_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    join = ChainJoin(5, 10, And())
    sentence = r"^a chain of 5 workers needs 5 task slots at the same time and local.* has 4$"
    with pytest.raises(EnvironmentProblem, match=sentence):
        join.join(inputs(spark, case_with(2), "R"), inputs(spark, case_with(2), "S"), tmp_path)


def inputs(spark: SparkSession, case: Workload, stream: str) -> DataFrame:
    events = tuple(event for event in case.arrivals if event.stream == stream)
    return rows_of(spark, events).drop("stream")


def test_bounded_inputs(spark: SparkSession, tmp_path: Path) -> None:
    case = case_with(workers=2)
    config = {**case.config, "lateness_us": None}
    expected = nested_loop(case.with_(config=config))
    join = ChainJoin(
        2, int(config["window_us"]), dict(JoinConfig.from_json(config).queries), block_size=3
    )
    r, s = inputs(spark, case, "R"), inputs(spark, case, "S")
    rows = join.join(r, s).collect()
    assert Counter((row.query, row.r_id, row.s_id) for row in rows) == expected
    assert sum(expected.values()) > 0
    kept = join.join(r, s, tmp_path / "store").count()
    assert kept == len(rows) == results(spark, tmp_path / "store").count()
