"""The chain on Spark: real barrier stages, real connections."""

import re
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import Fault, JoinConfig, Workload
from model.vocabulary.join import (
    And,
    Quiet,
    Rejected,
)
from spark_impl.join import ChainJoin, ChainProblem, results, run_workloads
from spark_impl.join.query import check_reach
from spark_impl.join.system import rows_of
from spark_impl.runtime.session import EnvironmentProblem
from spark_impl.runtime.storage import InputProblem
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
    join = ChainJoin(9, 10, And())
    sentence = r"^a chain of 9 workers needs 9 task slots at the same time and local.* has 8$"
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
    as_time = r.withColumn("event_time_us", F.timestamp_micros("event_time_us"))
    rows = join.join(as_time, s).collect()
    assert Counter((row.query, row.r_id, row.s_id) for row in rows) == expected
    assert sum(expected.values()) > 0
    kept = join.join(r, s, tmp_path / "store").count()
    assert kept == len(rows) == results(spark, tmp_path / "store").count()
    next(tmp_path.glob("store/kind=matches/*-1.parquet")).unlink()
    with pytest.raises(InputProblem, match=r"has lost \S+-1\.parquet with \d+ rows of kind"):
        results(spark, tmp_path / "store")


@pytest.mark.parametrize(
    ("column", "kind", "taken"),
    [
        ("source_id", "double", "tinyint, smallint, int, bigint"),
        ("key", "int", "string"),
        ("event_time_us", "timestamp_ntz", "tinyint, smallint, int, bigint, timestamp"),
        ("value", "decimal(10,2)", "tinyint, smallint, int, float, double"),
    ],
)
def test_a_column_that_would_have_to_be_changed_is_refused(
    spark: SparkSession, column: str, kind: str, taken: str
) -> None:
    case = case_with(workers=1)
    r, s = inputs(spark, case, "R"), inputs(spark, case, "S")
    s = s.withColumn(column, F.lit(None).cast(kind))
    sentence = f"the column {column!r} of the input S is {kind}; it can be {taken}"
    with pytest.raises(InputProblem, match=f"^{re.escape(sentence)}$"):
        ChainJoin(1, 10, And()).join(r, s)


@pytest.mark.fails_tasks
def test_an_error_that_would_recur_comes_without_advice(spark: SparkSession) -> None:
    case = case_with(workers=1)
    r, s = inputs(spark, case, "R"), inputs(spark, case, "S")
    nothing = r.withColumn("key", F.lit(None).cast("string"))
    with pytest.raises(ChainProblem, match=r"^the column 'key' has \d+ rows without a value$"):
        ChainJoin(1, 10, And()).join(nothing, s)


def test_without_a_store_all_workers_are_on_one_machine() -> None:
    for master in ("local", "local[4,4]", "local-cluster[3,1,1024]"):
        check_reach(master)
    with pytest.raises(
        InputProblem, match=r"^without a store .* machines of spark://somewhere:1: "
    ):
        check_reach("spark://somewhere:1")
