"""Answers stay exact if SIGKILL ends the driver at any moment, again and again (tier 4).

Nothing may be missing or counted twice, in room ``slack`` and in room ``watermark``. The queries
run in the background (``conftest.py``), while tests that do without Spark keep only one core busy.
"""

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from model.vocabulary import Trace, Workload
from properties.judging.judge import broken_sentences
from properties.rooms import find_room
from properties.slack.test_model import unbatched as unbatched_slack
from properties.watermark.test_model import unbatched as unbatched_watermark
from spark_impl.windows.system import read_trace
from tests.harness import profiles
from tests.harness.background_kills import Query
from tests.harness.driver_kills import Kill, needs_proc
from tests.harness.killed_queries import WINDOW_BATCHES, windows_workload
from tests.harness.windows_driver import PIPELINES, opened, prepare

UNBATCHED: Mapping[str, Callable[[Trace], list[object]]] = {
    "slack": unbatched_slack,
    "watermark": unbatched_watermark,
}
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
    for name, needed in NEEDED.items():
        for guard in needed:
            assert guards[name][guard], f"there were no {guard} in room {name}"
    kills_of = Counter(query.workload.room for query in killed_queries for _ in query.kills)
    share = profiles.effort().kills / len(PIPELINES)
    assert all(kills_of[name] >= share for name in PIPELINES), f"interrupted: {kills_of}"
    assert any(kill.is_in_batch for kill in seen), seen


def as_cut(folder: Path, workload: Workload) -> Workload:
    """Return the workload in the micro-batches that Spark made of its files.

    If a kill comes after the file source noted a file and before the query planned its batch, Spark
    takes that file together with the next one. The checkpoint has the last file of every batch.
    """
    ends = list(itertools.accumulate(len(batch) for batch in workload.batches()))
    planned = set()
    for plan in folder.glob("store/checkpoint/offsets/[0-9]*"):
        _version, _settings, files = plan.read_text(encoding="utf-8").splitlines()
        planned.add(json.loads(files)["logOffset"])
    # Requests to flush are files, too; they follow those of the history.
    last_files = sorted(number for number in planned if number < len(ends))
    assert last_files[-1] == len(ends) - 1, planned
    return workload.with_(cuts=tuple(ends[number] for number in last_files)[:-1])


def assert_equal_to_model(
    spark: SparkSession, folder: Path, workload: Workload, seen: Sequence[Kill] = ()
) -> Mapping[str, int]:
    """Compare the answers in a folder with the model; return the cases reached."""
    judged, unbatched = find_room(workload.room), UNBATCHED[workload.room]
    cut = as_cut(folder, workload)
    batches = {workload.name: len(list(cut.batches()))}
    found = read_trace(PIPELINES[workload.room], spark, folder / "store", batches)
    observed = found[workload.name]
    assert observed.digest() == judged.reference()(cut).digest(), seen
    assert unbatched(observed) == unbatched(judged.reference()(workload)), seen
    evidence = judged.check(cut, observed)
    broken = broken_sentences(evidence.verdicts)
    assert not broken, "\n".join(broken)
    return evidence.guards


def test_a_file_that_was_noted_and_not_planned_joins_the_next_batch(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    workload = windows_workload(0, seed)
    half = WINDOW_BATCHES // 2
    prepare(tmp_path, workload)
    files = sorted((tmp_path / "history").glob("*.parquet"))
    (tmp_path / "later").mkdir()
    for path in files[half:]:
        path.rename(tmp_path / "later" / path.name)
    opened(spark, tmp_path, workload).run_available()
    for log in ("offsets", "commits"):
        for name in (f"{half - 1}", f".{half - 1}.crc"):
            (tmp_path / "store" / "checkpoint" / log / name).unlink(missing_ok=True)
    for path in files[half:]:
        (tmp_path / "later" / path.name).rename(path)
    opened(spark, tmp_path, workload).flush()
    assert len(list(as_cut(tmp_path, workload).batches())) == WINDOW_BATCHES - 1
    assert assert_equal_to_model(spark, tmp_path, workload)["late pairs"]
