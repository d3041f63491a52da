"""A driver killed with SIGKILL, again and again, at any moment: answers stay exact (tier 4).

What the killed process has not written is lost, what it has half written is there; the next one
finds only the store and Spark's checkpoint. Nothing may be missing or counted twice.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from model.vocabulary import SlackConfig, Workload
from properties import profiles
from properties.judge import broken_sentences
from properties.rooms import room
from properties.slack.driver import prepare
from properties.slack.test_model import unbatched
from sim.arrivals import simulate_arrivals
from sim.scenarios import umts
from spark_impl.slack import SlackQuery
from spark_impl.slack.system import CASE, read_trace

BATCHES = 10
AT_ONCE = 2
KILLS_A_QUERY = 5
MOMENTS = (("begin", 1.0), ("begin", 0.1), ("end", 0.1))
"""A kill comes within so many seconds after the driver said that a batch begins or ends: at any
time in it, near its beginning, between its end and Spark's note that it is done."""
PATIENCE_S = 120

CONFIGS = (
    SlackConfig(1_000_000, 200_000, tasks=2, max_slack_us=20_000, gamma_us=1_000_000),
    SlackConfig(900_000, 500_000, aggregate="median", control="fixed", keyed=False, tasks=2),
)

ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join(sys.path),
    # These processes do not live long enough for a second compiler or collectors side by side.
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


class Kill(NamedTuple):
    """When one driver process died."""

    after: str
    """The last line that it said."""
    is_in_batch: bool
    """It died within ``foreachBatch``."""


class Driver:
    """One driver process, in a session of its own so that all of it can be killed."""

    def __init__(self, folder: Path, module: str = "properties.slack.driver") -> None:
        scratch = folder / "scratch"
        scratch.mkdir(exist_ok=True)
        self.lines: list[str] = []
        with (folder / "stderr").open("a", encoding="utf-8") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, str(folder)],
                env={**os.environ, "TMPDIR": str(scratch), **ENVIRONMENT},
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )

    def __enter__(self) -> "Driver":
        return self

    def __exit__(self, *failure: object) -> None:
        """End every process of the session at once, workers of Python included."""
        for pid in _session(self.process.pid):
            with suppress(ProcessLookupError):  # it went with another one, just now
                os.kill(pid, signal.SIGKILL)
        remaining, _stderr = self.process.communicate(timeout=PATIENCE_S)
        self.lines += remaining.split("\n")[:-1]
        ends_s = time.monotonic() + PATIENCE_S
        while _session(self.process.pid) and time.monotonic() < ends_s:
            time.sleep(0.01)

    def read_until(self, *starts: str) -> str:
        """Read lines until one that begins so; the last line if there are no more."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            self.lines.append(line.strip())
            if line.startswith(starts):
                break
        return self.lines[-1] if self.lines else ""


def _session(leader: int) -> list[int]:
    """Processes of a session that are there, ended ones left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            if int(state[3]) == leader and state[0] != "Z":
                found.append(int(entry.name))
    # The leader dies first: it would notice that Java is gone, and leave in its own way.
    return sorted(found, key=lambda pid: pid != leader)


def workload_of(number: int, seed: int) -> Workload:
    events = simulate_arrivals(umts(seed + number, messages=60), seed).events
    cuts = tuple(len(events) * batch // BATCHES for batch in range(1, BATCHES))
    config = CONFIGS[number % len(CONFIGS)].to_json()
    return Workload("slack", events, config, cuts, seed=seed, name=f"query-{number}")


def kills(folder: Path, random: Random) -> Iterator[Kill]:
    """Start the driver and kill it, some times; only kills that interrupted it count.

    How far it comes before it is killed is a matter of the machine: it may be over too early.
    """
    for _ in range(KILLS_A_QUERY):
        with Driver(folder) as driver:
            moment, seconds = random.choice(MOMENTS)
            for _ in range(random.randint(1, 2)):
                line = driver.read_until(moment, "done")
            time.sleep(random.uniform(0, seconds))
        stderr = (folder / "stderr").read_text(encoding="utf-8")
        assert line.startswith((moment, "done")), (line, stderr)
        if "done" in driver.lines:
            return
        assert driver.process.returncode == -signal.SIGKILL, (driver.lines, stderr)
        last = driver.lines[-1]
        yield Kill(last, last.startswith("begin"))


def run_to_its_end(folder: Path) -> None:
    with Driver(folder) as driver:
        last = driver.read_until("done")
        assert last == "done", (folder / "stderr").read_text(encoding="utf-8")
        assert driver.process.wait(PATIENCE_S) == 0


def interrupted(folder: Path, workload: Workload) -> list[Kill]:
    """Run a query to its end, with interruptions."""
    folder.mkdir()
    prepare(folder, workload)
    seen = list(kills(folder, Random(f"{workload.seed}/{workload.name}")))
    run_to_its_end(folder)
    return seen


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
@pytest.mark.timeout(1_800)
def test_answers_are_exact_however_often_the_driver_is_killed(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    wanted = profiles.effort().kills
    seen: list[Kill] = []
    for first in range(0, wanted, AT_ONCE):
        workloads = [workload_of(first + number, seed) for number in range(AT_ONCE)]
        folders = [tmp_path / workload.name for workload in workloads]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            seen += itertools.chain(*pool.map(interrupted, folders, workloads))
        for folder, workload in zip(folders, workloads, strict=True):
            assert_equal_to_model(spark, folder, workload, seen)
        if len(seen) >= wanted:
            break
    assert len(seen) >= wanted, f"only {len(seen)} kills interrupted anything"
    assert any(kill.is_in_batch for kill in seen), seen


def as_cut(folder: Path, workload: Workload) -> Workload:
    """The workload in the micro-batches that Spark made of its files.

    Killed after the file source noted a file and before the query planned its batch, Spark takes
    that file together with the next one. Its checkpoint says how far every batch went.
    """
    ends = list(itertools.accumulate(len(batch) for batch in workload.batches()))
    last_files = set()
    for plan in folder.glob("store/checkpoint/offsets/[0-9]*"):
        _version, _settings, history, _requests = plan.read_text(encoding="utf-8").splitlines()
        last_files.add(json.loads(history)["logOffset"])
    assert max(last_files) == len(ends) - 1, last_files
    return workload.with_(cuts=tuple(ends[number] for number in sorted(last_files))[:-1])


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
