"""A driver killed with SIGKILL, again and again, at any moment: answers stay exact (tier 4).

Nothing may be missing or counted twice. The queries run in the background (``conftest.py``), while
tests that do without Spark keep only one core busy.
"""

import itertools
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from model.vocabulary import SlackConfig, Workload
from properties import profiles
from properties.judge import broken_sentences
from properties.killing import Kill, needs_proc
from properties.ordeal import Query
from properties.rooms import room
from properties.slack.driver import prepare
from properties.slack.subject import BATCHES, workload_of
from properties.slack.test_model import unbatched
from spark_impl.slack import SlackQuery
from spark_impl.slack.system import read_trace
from spark_impl.windows.packs import CASE


@needs_proc
@pytest.mark.timeout(1_800)
def test_answers_are_exact_however_often_the_driver_is_killed(
    spark: SparkSession, killed_queries: list[Query]
) -> None:
    seen = [kill for query in killed_queries for kill in query.kills]
    for query in killed_queries:
        assert_equal_to_model(spark, query.folder, query.workload, seen)
    assert len(seen) >= profiles.effort().kills, f"only {len(seen)} kills interrupted anything"
    assert any(kill.is_in_batch for kill in seen), seen


def as_cut(folder: Path, workload: Workload) -> Workload:
    """The workload in the micro-batches that Spark made of its files.

    Killed after the file source noted a file and before the query planned its batch, Spark takes
    that file together with the next one. Its checkpoint says how far every batch went.
    """
    ends = list(itertools.accumulate(len(batch) for batch in workload.batches()))
    planned = set()
    for plan in folder.glob("store/checkpoint/offsets/[0-9]*"):
        _version, _settings, files = plan.read_text(encoding="utf-8").splitlines()
        planned.add(json.loads(files)["logOffset"])
    # Requests to flush are files, too, behind those of the history.
    last_files = sorted(number for number in planned if number < len(ends))
    assert last_files[-1] == len(ends) - 1, planned
    return workload.with_(cuts=tuple(ends[number] for number in last_files)[:-1])


def assert_equal_to_model(
    spark: SparkSession, folder: Path, workload: Workload, seen: list[Kill]
) -> None:
    slack = room("slack")
    cut = as_cut(folder, workload)
    batches = len(list(cut.batches()))
    observed = read_trace(spark, folder / "store", {workload.name: batches})[workload.name]
    assert observed.digest() == slack.reference()(cut).digest(), seen
    assert unbatched(observed) == unbatched(slack.reference()(workload)), seen
    evidence = slack.check(cut, observed)
    broken = broken_sentences(evidence.verdicts)
    assert not broken, "\n".join(broken)
    assert evidence.guards["late pairs"]
    assert evidence.guards["corrections of several windows"]


def test_a_file_that_was_noted_and_not_planned_joins_the_next_batch(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    workload = workload_of(0, seed)
    config = SlackConfig.from_json(workload.config)
    half = BATCHES // 2
    prepare(tmp_path, workload)
    files = sorted((tmp_path / "history").glob("*.parquet"))
    (tmp_path / "later").mkdir()
    for path in files[half:]:
        path.rename(tmp_path / "later" / path.name)
    SlackQuery(spark, config, tmp_path / "history", tmp_path / "store", [CASE]).run_available()
    for log in ("offsets", "commits"):
        for name in (f"{half - 1}", f".{half - 1}.crc"):
            (tmp_path / "store" / "checkpoint" / log / name).unlink(missing_ok=True)
    for path in files[half:]:
        (tmp_path / "later" / path.name).rename(path)
    SlackQuery(spark, config, tmp_path / "history", tmp_path / "store", [CASE]).flush()
    assert len(list(as_cut(tmp_path, workload).batches())) == BATCHES - 1
    assert_equal_to_model(spark, tmp_path, workload, [])
