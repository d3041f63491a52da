"""Answers on S3 stay exact if SIGKILL ends a driver at any moment, and a store has to be shared.

All of it runs at night. ``tests/soak/test_soak.py`` kills drivers, executors and workers of every
room; by day the promises of ``properties/test_promises.py`` are kept by queries that are killed in
their micro-batches.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from properties import profiles
from spark_impl.runtime.storage import Location, locate
from spark_impl.runtime.stores import require_view
from spark_impl.windows.system import read_trace
from straggler.judging.judge import broken_sentences
from straggler.rooms import find_room
from tests.harness import s3_server, unshared_stores
from tests.harness.driver_kills import kills, needs_proc, run_to_its_end
from tests.harness.drivers import BATCHES, PIPELINES, WINDOWS, place_of, prepare, windows_workload
from tests.harness.unshared_stores import OWN

pytestmark = [needs_proc, pytest.mark.long, pytest.mark.timeout(1_800)]


@pytest.fixture(scope="module")
def bucket() -> Iterator[Location]:
    """Yield a bucket of a server that speaks S3."""
    program = s3_server.find_program()
    if program is None:
        pytest.skip("there is no moto_server; to test S3: pip install 'moto[server]'")
    with s3_server.running(program) as found:
        yield found


@pytest.mark.parametrize("room", PIPELINES)
def test_answers_on_s3_are_exact_though_the_driver_is_killed(
    spark: SparkSession, tmp_path: Path, bucket: Location, seed: int, room: str
) -> None:
    workload = windows_workload(room, seed)
    prepare(tmp_path, workload, bucket / tmp_path.name)
    at_most = profiles.choose(1, nightly=3)
    seen = list(kills(tmp_path, WINDOWS, Random(f"{seed}/{room}"), at_most))
    run_to_its_end(tmp_path, WINDOWS)
    assert seen
    s3_server.tell_workers(spark)
    batches = {workload.name: BATCHES}
    traces = read_trace(PIPELINES[room], spark, place_of(tmp_path) / "store", batches)
    observed, judged = traces[workload.name], find_room(room)
    assert observed.digest() == judged.reference()(workload).digest(), seen
    evidence = judged.check(workload, observed)
    assert evidence.guards["late pairs"]
    assert not broken_sentences(evidence.verdicts)
    left = [path.name for path in (tmp_path / "scratch").iterdir()]
    assert not left, "the next start removes what a killed driver left"


# ----------------------------------------------------------------------- stores that are not shared


SENTENCE = "the driver and all workers have to reach one folder under this address"


@needs_proc
@pytest.mark.timeout(600)
def test_a_query_stops_in_its_first_micro_batch_and_says_why(tmp_path: Path, seed: int) -> None:
    (tmp_path / "slack").mkdir()
    prepare(tmp_path / "slack", windows_workload("slack", seed))
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
