"""Packs of workloads on Spark, each compared with docs/slack.md tuple by tuple."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from model.vocabulary import Fault, Workload
from model.vocabulary.settings import PlainData
from model.vocabulary.slack import WORDS, Judged
from model.vocabulary.windows import Correction, Correlation, Final, Late
from spark_impl.runtime.systems import CASE
from spark_impl.slack import make_system, run_workloads
from spark_impl.slack.query import SLACK
from spark_impl.windows import history
from spark_impl.windows.query import WindowedQuery
from spark_impl.windows.store import load_store
from spark_impl.windows.system import read_trace
from tests.spark_impl import brute
from tests.spark_impl.cases import random_config, random_workload

BY_VALUES = {
    "size_us": 12,
    "slide_us": 4,
    "tasks": 2,
    "gamma_us": 5,
    "learning_rate": 0.5,
    "method": "permutation",
    "eps": 0.4,
    "delta": 0.4,
}
"""A configuration that retains values until their windows are judged."""


def pack(
    seed: int,
    size: int,
    faults: tuple[Fault, ...] = (),
    config: dict[str, PlainData] | None = None,
) -> dict[str, Workload]:
    config = random_config(seed) if config is None else config
    cases = {f"case {i}": random_workload(1000 * seed + i, config) for i in range(size)}
    return {name: case.with_(faults=faults) for name, case in cases.items()}


@pytest.mark.parametrize(
    ("config", "faults"),
    [(None, ()), (BY_VALUES, (Fault("restart", 0), Fault("kill", 1)))],
)
def test_pack_equals_the_specification(
    spark: SparkSession,
    tmp_path: Path,
    config: dict[str, PlainData] | None,
    faults: tuple[Fault, ...],
) -> None:
    cases = pack(3, 50, faults, config)
    traces = run_workloads(spark, cases, tmp_path)
    for name, case in cases.items():
        expected = brute.run(case)
        for word in WORDS:
            assert traces[name].of(word) == expected.of(word), (name, word.__name__)
    for word in (Late, Correction, Correlation, Final):
        assert sum(len(trace.of(word)) for trace in traces.values()) > 20
    judged = [each for trace in traces.values() for each in trace.of(Judged)]
    assert any(0 < each.n_req < each.n_rcv + each.n_late for each in judged)


def test_corrections_on_the_workers_give_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = pack(3, 10)
    monkeypatch.setattr(history, "ROWS_ON_DRIVER", 0)
    traces = run_workloads(spark, cases, tmp_path)
    for name, case in cases.items():
        assert traces[name].digest() == brute.run(case).digest(), name


def test_a_flush_that_is_asked_for_twice_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    # A driver that is killed in a flush asks for it again: one more micro-batch says the same.
    cases = {name: case.with_(flush=True) for name, case in pack(3, 4).items()}
    run_workloads(spark, cases, tmp_path)
    store = tmp_path / "store"
    config = SLACK.read(cases["case 0"].config)
    WindowedQuery(spark, SLACK, config, tmp_path / "history", store, [CASE]).flush()
    batches = {name: len(list(case.batches())) for name, case in cases.items()}
    _, opened, view = load_store(store, SLACK)
    moved = set(opened.read_kind(view, "progress").column("batch").to_pylist())
    assert len(moved) == max(batches.values()) + 2
    for name, trace in read_trace(SLACK, spark, store, batches).items():
        assert trace.digest() == brute.run(cases[name]).digest(), name


def test_pack_needs_one_configuration(spark: SparkSession, tmp_path: Path) -> None:
    cases = {
        "one": random_workload(1, random_config(1)),
        "two": random_workload(1, random_config(2)),
    }
    with pytest.raises(ValueError, match="'one' and 'two' of a pack have different"):
        run_workloads(spark, cases, tmp_path)


def test_workload_without_arrivals(spark: SparkSession) -> None:
    empty = Workload("slack", (), random_config(1), name="empty")
    assert len(make_system()(empty)) == 0
