"""Answers stay exact if SIGKILL ends the driver at any moment, again and again (tier 4).

Nothing may be missing or counted twice, in room ``slack`` and in room ``watermark``. The queries
run in the background (``conftest.py``), while tests that do without Spark keep only one core busy.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from model.vocabulary import Workload
from properties import profiles
from spark_impl.runtime.storage import Location
from spark_impl.windows.system import read_trace
from straggler.judging.judge import broken_sentences
from straggler.rooms import find_room
from tests.harness import s3_server
from tests.harness.background_kills import Query
from tests.harness.driver_kills import Kill, kills, needs_proc, run_to_its_end
from tests.harness.killed_queries import WINDOWS
from tests.harness.windows_driver import PIPELINES, place_of, prepare

NEEDED = {
    "slack": ("late pairs", "corrections of several windows"),
    "watermark": ("late pairs", "corrections", "early answers"),
}


@needs_proc
@pytest.mark.timeout(1_800)
def test_answers_are_exact_however_often_the_driver_is_killed(
    spark: SparkSession, killed_queries: list[Query]
) -> None:
    seen = [kill for query in killed_queries for kill in query.kills]
    guards: dict[str, Counter[str]] = defaultdict(Counter)
    for query in killed_queries:
        found = assert_equal_to_model(spark, query.folder, query.workload, query.kills)
        guards[query.workload.room].update(found)
        left = [path.name for path in (query.folder / "scratch").iterdir()]
        assert not left, "the next start removes what a killed driver left"
    for name, needed in NEEDED.items():
        for guard in needed:
            assert guards[name][guard], f"there were no {guard} in room {name}"
    kills_of = Counter(query.workload.room for query in killed_queries for _ in query.kills)
    share = profiles.effort().kills / len(PIPELINES)
    assert all(kills_of[name] >= share for name in PIPELINES), f"interrupted: {kills_of}"
    assert any(kill.is_in_batch for kill in seen), seen


@needs_proc
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.long)])
def test_answers_on_s3_are_exact_though_the_driver_is_killed(
    spark: SparkSession, tmp_path: Path, bucket: Location, seed: int, number: int
) -> None:
    workload = WINDOWS.workload_of(number, seed)
    workload = workload.with_(cuts=workload.cuts[::3])
    prepare(tmp_path, workload, bucket / tmp_path.name)
    random = Random(f"{seed}/{number}")
    at_most = max(1, profiles.effort().kills // 4)
    seen = list(kills(tmp_path, WINDOWS.driver, random, at_most))
    run_to_its_end(tmp_path, WINDOWS.driver)
    assert seen
    s3_server.tell_workers(spark)
    assert assert_equal_to_model(spark, tmp_path, workload, seen)["late pairs"]


def assert_equal_to_model(
    spark: SparkSession, folder: Path, workload: Workload, seen: Sequence[Kill] = ()
) -> Mapping[str, int]:
    """Compare the answers in a folder with the model; return the cases reached."""
    judged = find_room(workload.room)
    batches = {workload.name: len(list(workload.batches()))}
    found = read_trace(PIPELINES[workload.room], spark, place_of(folder) / "store", batches)
    observed = found[workload.name]
    assert observed.digest() == judged.reference()(workload).digest(), seen
    evidence = judged.check(workload, observed)
    broken = broken_sentences(evidence.verdicts)
    assert not broken, "\n".join(broken)
    return evidence.guards
