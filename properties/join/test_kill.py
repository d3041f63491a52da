"""Drivers killed with SIGKILL, again and again: every pair exactly once (tier 4)."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from model.join import run
from model.vocabulary import Workload
from properties import profiles
from properties.join.driver import handed, prepare
from properties.join.long_streams import long_case
from properties.join.test_model import results
from properties.killing import Kill, kills, needs_proc, run_to_its_end
from spark_impl.join import results as found_in
from spark_impl.join import snapshots

AT_ONCE = 2
BATCHES = 5
STARTS_A_CHAIN = 3
"""That end in a kill."""
DRIVER = "properties.join.driver"


def workload_of(number: int, seed: int) -> Workload:
    """Without queries of some epochs: what an epoch is depends on when the driver is killed."""
    case = long_case(3, seed + number, BATCHES)
    return case.with_(config={**case.config, "epochs": []}, name=f"chain-{number}")


def interrupted(folder: Path, workload: Workload) -> list[Kill]:
    """Run a chain to its end, with interruptions."""
    folder.mkdir()
    prepare(folder, workload)
    random = Random(f"{workload.seed}/{workload.name}")
    seen = list(kills(folder, DRIVER, random, at_most=STARTS_A_CHAIN))
    run_to_its_end(folder, DRIVER)
    return seen


@needs_proc
@pytest.mark.timeout(1_800)
def test_every_pair_comes_once_however_often_the_driver_is_killed(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    wanted = profiles.effort().kills // 2
    seen: list[Kill] = []
    changes = 0
    for first in itertools.count(step=AT_ONCE):
        workloads = [workload_of(first + number, seed) for number in range(AT_ONCE)]
        folders = [tmp_path / workload.name for workload in workloads]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            seen += itertools.chain(*pool.map(interrupted, folders, workloads))
        for folder, workload in zip(folders, workloads, strict=True):
            expected = results(run(workload))
            rows = found_in(spark, folder / "store").collect()
            assert sorted((row.query, row.r_id, row.s_id) for row in rows) == expected, seen
            assert handed(folder) == expected, seen
            assert expected, "there was nothing to find"
            changes += len({each.workers for each in snapshots(folder / "store")}) - 1
        if len(seen) >= wanted or first > 2 * wanted:
            break
    assert len(seen) >= wanted, f"only {len(seen)} kills interrupted anything"
    assert any(kill.is_in_batch for kill in seen), seen
    assert changes, "no chain went on with another number of workers"
