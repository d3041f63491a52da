"""Answers on S3 stay exact if SIGKILL ends a driver at any moment.

It runs at night. ``tests/soak/test_soak.py`` kills drivers, executors and workers of every
room; by day the promises of ``properties/test_promises.py`` are kept by queries that are killed in
their micro-batches.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from properties import profiles
from spark_impl.runtime.storage import Location
from spark_impl.windows.system import read_trace
from straggler.judging.judge import broken_sentences
from straggler.rooms import find_room
from tests.harness import drivers, s3_server
from tests.harness.drivers import BATCHES, PIPELINES, place_of, prepare, windows_workload
from tests.soak.driver import DriverProcess, Ended, needs_proc

MOMENTS = (("begin", 1.0), ("begin", 0.1), ("end", 0.1))
"""Line that starts the wait for a kill, and the longest wait (s). The kill strikes at any time in a
batch, near its beginning, or between its end and Spark's commit."""
PATIENCE_S = 180
pytestmark = [needs_proc, pytest.mark.long, pytest.mark.timeout(1_800)]


@pytest.fixture(scope="module")
def bucket() -> Iterator[Location]:
    """Yield a bucket of a server that speaks S3."""
    program = s3_server.find_program()
    if program is None:
        pytest.skip("there is no moto_server; to test S3: pip install 'moto[server]'")
    with s3_server.running(program) as found:
        yield found


def run_until(folder: Path, *starts: str, then_s: float = 0) -> list[str]:
    """Run a driver until it has printed lines with these beginnings, kill it; return its lines.

    The speed of the machine decides how far the driver gets; it may end before.
    """
    driver = DriverProcess(str(folder), folder / "scratch", drivers.__name__)
    with suppress(Ended):
        for start in starts:
            driver.wait_for(start, patience_s=PATIENCE_S)
        time.sleep(then_s)
    driver.end()
    return driver.lines


@pytest.mark.parametrize("room", PIPELINES)
def test_answers_on_s3_are_exact_though_the_driver_is_killed(
    spark: SparkSession, tmp_path: Path, bucket: Location, seed: int, room: str
) -> None:
    workload = windows_workload(room, seed)
    prepare(tmp_path, workload, bucket / tmp_path.name)
    draw, seen = Random(f"{seed}/{room}"), list[list[str]]()
    for _ in range(profiles.choose(1, nightly=3)):
        moment, most_s = draw.choice(MOMENTS)
        lines = [moment] * draw.randint(1, 2)
        seen.append(run_until(tmp_path, *lines, then_s=draw.uniform(0, most_s)))
    assert "done" not in seen[0], "nothing was interrupted"
    assert "done" in run_until(tmp_path, "ended")
    s3_server.tell_workers(spark)
    batches = {workload.name: BATCHES}
    traces = read_trace(PIPELINES[room], spark, place_of(tmp_path) / "store", batches)
    observed, judged = traces[workload.name], find_room(room)
    assert observed.digest() == judged.reference()(workload).digest(), seen
    evidence = judged.check(workload, observed)
    assert evidence.guards["late pairs"]
    assert not broken_sentences(evidence.verdicts)
    left = [path.name for path in (tmp_path / "scratch").iterdir()]
    assert left == ["stderr"], "the next start removes what a killed driver left"
