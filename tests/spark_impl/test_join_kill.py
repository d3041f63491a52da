"""Drivers killed with SIGKILL, again and again: every pair exactly once (tier 4).

The pairs are those of a nested loop, which shares nothing with model or Spark. The chains run in
the background (``conftest.py``), beside other tests.
"""

import pytest
from pyspark.sql import SparkSession

from properties import profiles
from properties.oracles.join import Recomputation
from spark_impl.join import results as found_in
from spark_impl.join import snapshots
from tests.harness.background_kills import Query
from tests.harness.driver_kills import needs_proc
from tests.harness.join_driver import read_sink


@needs_proc
@pytest.mark.timeout(1_800)
def test_every_pair_comes_once_however_often_the_driver_is_killed(
    spark: SparkSession, killed_chains: list[Query]
) -> None:
    seen = [kill for query in killed_chains for kill in query.kills]
    changes = 0
    for folder, workload, _ in killed_chains:
        expected = sorted(Recomputation(workload.to_json()).pairs.elements())
        rows = found_in(spark, folder / "store").collect()
        assert sorted((row.query, row.r_id, row.s_id) for row in rows) == expected, seen
        assert read_sink(folder) == expected, seen
        assert expected, "there was nothing to find"
        changes += len({each.workers for each in snapshots(folder / "store")}) - 1
    wanted = profiles.effort().kills // 2
    assert len(seen) >= wanted, f"only {len(seen)} kills interrupted anything"
    assert any(kill.is_in_batch for kill in seen), seen
    assert changes, "no chain went on with another number of workers"
