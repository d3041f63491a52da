"""Answers stay exact if SIGKILL ends a driver at any moment, or a task, or an executor (tier 4).

Nothing may be missing or counted twice. All of it runs at night: by day the promises of
``properties/test_promises.py`` are kept by queries that are killed in their micro-batches.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from model.checking import diff
from model.checking.claims import Outcome
from model.join import run as run_join
from model.join.claims import judge as judge_join
from model.join.replay import validate_recording
from model.script import run as run_script
from model.vocabulary import ScriptConfig, Workload
from model.vocabulary.join import Forward, Match, Quiet, Receive
from model.vocabulary.script.config import WORDS, Rejected
from properties import profiles
from properties.oracles.join import Recomputation
from spark_impl.join import results as pairs_in
from spark_impl.join import snapshots
from spark_impl.join.system import read_trace as read_join
from spark_impl.runtime.storage import Location, locate
from spark_impl.runtime.stores import require_view
from spark_impl.script import compile_plan
from spark_impl.script.system import read_traces
from spark_impl.slack.query import SLACK
from spark_impl.windows.store import load_store
from spark_impl.windows.system import read_trace
from straggler.judging.judge import broken_sentences
from straggler.rooms import find_room
from straggler.rooms.script.room import IDENTITY
from tests.harness import executor_deaths, s3_server, unshared_stores
from tests.harness.driver_kills import assert_ended, kills, needs_proc, run_to_its_end
from tests.harness.drivers import PIPELINES, place_of, prepare, read_sink
from tests.harness.executor_deaths import FATAL_BATCH
from tests.harness.killed_queries import (
    CHAINS,
    SCRIPTS,
    WINDOWS,
    kill_and_finish,
    windows_workload,
)
from tests.harness.long_chains import long_case
from tests.harness.unshared_stores import OWN

OFTEN = 5
KILLED = ((0, 1), (1, OFTEN), (2, OFTEN))
"""Numbers of queries, and how often each is killed at most."""
pytestmark = [needs_proc, pytest.mark.long, pytest.mark.timeout(1_800)]


@pytest.fixture(scope="module")
def bucket() -> Iterator[Location]:
    """Yield a bucket of a server that speaks S3."""
    program = s3_server.find_program()
    if program is None:
        pytest.skip("there is no moto_server; to test S3: pip install 'moto[server]'")
    with s3_server.running(program) as found:
        yield found


def assert_equal_to_model(
    spark: SparkSession, folder: Path, workload: Workload, seen: Sequence[str] = ()
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


@pytest.mark.parametrize(("number", "at_most"), KILLED)
def test_windows_are_exact_however_often_the_driver_is_killed(
    spark: SparkSession, tmp_path: Path, seed: int, number: int, at_most: int
) -> None:
    """Query 1 is of room ``watermark``, the others are of room ``slack``."""
    workload, seen = kill_and_finish(WINDOWS, tmp_path, number, seed, at_most)
    assert seen, "nothing was interrupted"
    assert assert_equal_to_model(spark, tmp_path, workload, seen)["late pairs"]
    left = [path.name for path in (tmp_path / "scratch").iterdir()]
    assert not left, "the next start removes what a killed driver left"


@pytest.mark.parametrize(("number", "at_most"), KILLED)
def test_every_pair_comes_once_however_often_the_driver_is_killed(
    spark: SparkSession, tmp_path: Path, seed: int, number: int, at_most: int
) -> None:
    """Every start gives the chain another number of workers; the pairs are those of a loop."""
    workload, seen = kill_and_finish(CHAINS, tmp_path, number, seed, at_most)
    assert seen, "nothing was interrupted"
    expected = sorted(Recomputation(workload.to_json()).pairs.elements())
    assert expected, "there was nothing to find"
    rows = pairs_in(spark, tmp_path / "store").collect()
    assert sorted((row.query, row.r_id, row.s_id) for row in rows) == expected, seen
    assert read_sink(tmp_path) == expected, seen


def test_scripts_are_exact_however_often_the_driver_is_killed(tmp_path: Path, seed: int) -> None:
    workload, seen = kill_and_finish(SCRIPTS, tmp_path, 0, seed, OFTEN)
    assert seen, "nothing was interrupted"
    config = ScriptConfig.from_json(workload.config)
    plan = compile_plan(config)
    assert any(plan.share(each).sent for each in range(plan.workers)), (
        "workers have no results for each other"
    )
    trace = read_traces(config, tmp_path / "store", [workload.name])[workload.name]
    found = diff.compare(run_script(workload), trace, WORDS, identity=IDENTITY)
    assert not found.sentences, seen
    assert run_script(workload).of(Rejected), "nothing was late"
    sent = list((tmp_path / "store" / "control").glob("*-messages-*.parquet"))
    assert len(sent) <= 1, "messages that were delivered are left"


@pytest.mark.parametrize("number", [0, 1])
def test_answers_on_s3_are_exact_though_the_driver_is_killed(
    spark: SparkSession, tmp_path: Path, bucket: Location, seed: int, number: int
) -> None:
    workload = WINDOWS.workload_of(number, seed)
    workload = workload.with_(cuts=workload.cuts[::3])
    prepare(tmp_path, workload, bucket / tmp_path.name)
    at_most = profiles.choose(1, nightly=3)
    seen = list(kills(tmp_path, WINDOWS.driver, Random(f"{seed}/{number}"), at_most))
    run_to_its_end(tmp_path, WINDOWS.driver)
    assert seen
    s3_server.tell_workers(spark)
    assert assert_equal_to_model(spark, tmp_path, workload, seen)["late pairs"]


# --------------------------------------------------------------------- tasks and executors


def prepared(folder: Path, seed: int) -> Workload:
    """Write the files of a query with three micro-batches, and return its workload."""
    workload = windows_workload(0, seed)
    size = len(workload.arrivals)
    workload = workload.with_(cuts=(size // 3, 2 * size // 3))
    prepare(folder, workload)
    return workload


def assert_repeated(
    spark: SparkSession, folder: Path, workload: Workload, lines: Sequence[str]
) -> None:
    batches = [line for line in lines if line.startswith("begin ")]
    assert batches
    assert len(batches) == len(set(batches)), "Spark repeated a task, not a batch"
    _config, store = load_store(folder / "store", SLACK)
    assert store.read_kind("result", FATAL_BATCH).num_rows
    assert assert_equal_to_model(spark, folder, workload)["late pairs"]


def test_windows_are_exact_though_executors_die_in_a_batch_and_in_a_correction(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    workload = prepared(tmp_path, seed)
    driver = run_to_its_end(tmp_path, executor_deaths.WINDOWS)
    assert_ended(tmp_path / "killed", executor_deaths.IN_WINDOWS)
    assert_repeated(spark, tmp_path, workload, driver.lines)


def test_a_chain_of_executors_that_die_keeps_every_promise(tmp_path: Path, seed: int) -> None:
    workload = long_case(executor_deaths.WORKERS, seed, executor_deaths.EPOCHS)
    workload.write(tmp_path / "workload.json")
    run_to_its_end(tmp_path, executor_deaths.CHAIN)
    assert_ended(tmp_path / "killed", executor_deaths.IN_CHAIN)
    trace = read_join(tmp_path / "store")
    found, expected = (sorted(each.of(Match)) for each in (trace, run_join(workload)))
    assert [step[:3] for step in found] == [step[:3] for step in expected]
    broken = broken_sentences(judge_join(workload, trace).verdicts)
    assert not broken, "\n".join(broken)
    recording = validate_recording(workload, trace)
    assert recording.outcome is Outcome.HOLDS, (recording.sentence, recording.witness)
    assert {step.worker for step in trace.of(Quiet)} == set(range(executor_deaths.WORKERS))
    assert trace.of(Forward)
    assert any(step.copies for step in trace.of(Receive)), "no copy was joined"
    assert len(snapshots(tmp_path / "store")) == executor_deaths.EPOCHS + 1


# ----------------------------------------------------------------------- stores that are not shared


SENTENCE = "the driver and all workers have to reach one folder under this address"


@needs_proc
@pytest.mark.timeout(600)
def test_a_query_stops_in_its_first_micro_batch_and_says_why(tmp_path: Path, seed: int) -> None:
    (tmp_path / "slack").mkdir()
    prepare(tmp_path / "slack", windows_workload(0, seed))
    run_to_its_end(tmp_path, unshared_stores.__name__)
    results = json.loads((tmp_path / "results.json").read_bytes())
    stopped, complete = results["windows"]
    rows = r"has 0 of the [1-9]\d* rows that workers wrote to 'result' in micro-batch 0"
    assert re.fullmatch(f"{OWN}/windows {rows}: {SENTENCE}", stopped), stopped
    assert complete == -1
    lacks = r"lacks kind=sender/00000000-\w+\.parquet, which was written"
    assert re.fullmatch(f"{OWN}/routers {lacks}: {SENTENCE}", results["routers"]), results
    assert require_view(locate(tmp_path / "routers")).last == -1
    (file,) = results["modules"]
    assert "/straggler.zip/" in file, "executors import our packages from the archive"
