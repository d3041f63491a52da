"""Chains on Spark that follow their load, through kills; and queries that come while they run."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import JoinConfig
from model.vocabulary.join import (
    REASON_SHED,
    And,
    Decision,
    Match,
)
from model.vocabulary.join_load import LoadRules
from spark_impl.join import (
    ChainJoin,
    pending,
    rejected,
    snapshots,
    withdraw,
)
from spark_impl.join.chain import Chain
from spark_impl.join.control import share_of
from spark_impl.join.system import read_trace, rows_of
from spark_impl.runtime.accounts import ledger
from spark_impl.runtime.failures import QueryProblem
from spark_impl.runtime.limits import Limits
from spark_impl.runtime.session import EnvironmentProblem
from spark_impl.runtime.storage import InputProblem
from tests.spark_impl.join_cases import (
    case_with,
)


def test_real_measurements_reach_the_controller(spark: SparkSession, tmp_path: Path) -> None:
    """The rules take any work for too much, and add all workers at once."""
    eager = LoadRules(
        least=1, most=3, tau0=1e-9, tau1=1e-8, tau2=1e-8, out_after_us=0, shed="linear"
    )
    case = case_with(workers=1, batches=2)
    chain = Chain(spark, JoinConfig.from_json(case.config), tmp_path, load=eager)
    for events in case.batches():
        chain.advance(rows_of(spark, events))
    first, second = snapshots(tmp_path)
    assert (first.config.workers, second.config.workers) == (1, 3)
    assert 0 < share_of(second.config) < 1
    assert second.load is not None
    assert second.load.measured.elapsed_us > max(second.load.measured.busy_us) > 0

    def sleeps(r: Any, s: Any) -> Any:
        time.sleep(0.05)
        return r.value == s.value

    config = replace(JoinConfig.from_json(case.config), queries=(("slow", And()),))
    slow = Chain(spark, config, tmp_path / "slow", {"slow": sleeps}, load=eager)
    (done,) = slow.advance(rows_of(spark, case.arrivals))
    assert done.busy_us >= 50_000
    with pytest.raises(EnvironmentProblem, match="a chain of 9 workers needs 9 task slots"):
        Chain(
            spark,
            JoinConfig.from_json(case.config),
            tmp_path / "wide",
            load=replace(eager, most=9),
        )


def test_a_limit_of_shed_rows_stops_a_chain(spark: SparkSession, tmp_path: Path) -> None:
    """The rows that stop it are those that it lists when it may go on."""
    case = case_with(workers=2, batches=1)
    plain = JoinConfig.from_json(case.config)
    chain = Chain(spark, replace(plain, decisions=(Decision(0, 2, 3, 0.5),)), tmp_path)
    rows, chain.limits = rows_of(spark, case.arrivals), Limits(shed=0.1)
    with pytest.raises(InputProblem, match=r"micro-batch 0: \d+ of its \d+ rows are shed, and max"):
        chain.advance(rows)
    chain.limits = Limits(shed=0.9, late=0.9)
    chain.advance(rows)
    listed = rejected(spark, tmp_path).where(F.col("reason") == REASON_SHED).toArrow()
    found = ledger(tmp_path)
    assert found.shed == listed.num_rows > 0
    stopped = pq.ParquetFile(tmp_path / "_stopped" / "00000000.parquet").read()
    assert {*stopped.column("seq").to_pylist()} == {*listed.column("seq").to_pylist()}
    assert pending(spark, tmp_path).count() == found.pending > 0


def test_rules_take_range_and_block_size_from_the_chain() -> None:
    join = ChainJoin((2, 5), 10, And(), block_size=20, load=LoadRules(least=7, most=7))
    assert join._load == LoadRules(least=2, most=5, block_size=20)
    assert join._config.workers == 2
    fixed = ChainJoin(3, 10, And(), load=LoadRules())
    assert fixed._load == LoadRules(least=3, most=3, block_size=64)


@pytest.mark.fails_tasks
def test_a_query_that_fails_can_be_withdrawn(spark: SparkSession, tmp_path: Path) -> None:
    """The epoch that failed runs again without it; so does a chain that is opened again."""
    case = case_with(workers=1, batches=2)

    def fails(r: Any, s: Any) -> Any:
        raise ArithmeticError("no answer")

    config, store = JoinConfig.from_json(case.config), tmp_path / "store"
    (only,) = (name for name, _ in config.queries)
    Chain(spark, config, store).note()
    with pytest.raises(InputProblem, match=f"{only!r} has not begun, and a chain needs a query"):
        withdraw(store, only)
    both = replace(config, queries=(*config.queries, ("bad", And())))
    chain = Chain(spark, both, store, {"bad": fails})
    first, second = (rows_of(spark, events) for events in case.batches())
    with pytest.raises(QueryProblem, match="no answer"):
        chain.advance(first)
    assert withdraw(store, "bad") == 0
    chain.advance(first)
    chain.advance(second)
    assert {match.query for match in read_trace(store).of(Match)} == {only}
