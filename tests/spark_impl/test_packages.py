"""The archive has everything that workers import, and reaches every process of Spark."""

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from spark_impl.runtime import packages
from spark_impl.runtime.packages import archive
from tests.harness.isolated_python import isolate_python
from tests.harness.standalone import LOOPBACK, standalone_cluster

IMPORT_ALL = """
import importlib, sys, zipfile
sys.path.insert(0, "straggler.zip")
for name in zipfile.ZipFile("straggler.zip").namelist():
    importlib.import_module(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
import spark_impl
print(spark_impl.__file__)
"""
JOB = """
import pyarrow as pa
from pyspark.sql import SparkSession
from spark_impl.runtime.histories import append
from straggler import SlackConfig, SlackQuery, slack
with SparkSession.builder.getOrCreate() as spark:
    for first, times in ((0, [3, 12, 1]), (3, [23, 32, 11])):
        rows = [
            {"seq": seq, "source_id": seq, "key": "", "event_time_us": time, "value": 1.0,
             "arrival_us": seq} for seq, time in enumerate(times, first)
        ]
        append("history", pa.Table.from_pylist(rows))
    config = SlackConfig(size_us=10, slide_us=10, control="fixed", gamma_us=0)
    SlackQuery(spark, config, "history", "store").flush()
    answers = slack.results(spark, "store").collect()
    print("found", sorted((row.start_us, row.value, row.state) for row in answers))
"""


WHERE = """
import sys
import pyarrow as pa
from spark_impl.runtime.session import session

def where(batches):
    import spark_impl
    yield pa.RecordBatch.from_pylist([{"file": spark_impl.__file__}])

with session(sys.argv[1]) as spark:
    print("found", *{row.file for row in spark.range(1).mapInArrow(where, "file string").collect()})
"""
_WINDOWS = ((0, 2.0), (10, 2.0), (20, 1.0), (30, 1.0))
EXPECTED = f"found {[(start_us, value, 'exact') for start_us, value in _WINDOWS]}"
ROOT = Path(__file__).resolve().parents[2]


class Machine(NamedTuple):
    """An empty folder, and an interpreter that has none of our packages."""

    folder: Path
    environment: dict[str, str]

    def run(self, *command: str) -> str:
        """Run a command and return the last line that it prints."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()[-1]

    def submit(self, master: str) -> str:
        """Submit the job with the archive, and return the last line that it prints."""
        (self.folder / "job.py").write_text(JOB, encoding="utf-8")
        program = f"{self.environment['SPARK_HOME']}/bin/spark-submit"
        options = ("--master", master, "--conf", "spark.ui.enabled=false")
        return self.run(program, *options, "--py-files", "straggler.zip", "job.py")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine with the archive."""
    (tmp_path / "straggler.zip").write_bytes(archive())
    return Machine(tmp_path, isolate_python(tmp_path / "isolated"))


def test_the_same_sources_give_the_same_archive() -> None:
    assert archive() == archive()
    with zipfile.ZipFile(io.BytesIO(archive())) as found:
        assert {entry.date_time for entry in found.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        tops = {name.split("/")[0] for name in found.namelist()}
    assert tops == {"model", "spark_impl", "straggler"}


def test_packages_from_an_archive_are_shipped_as_that_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "straggler.zip").write_bytes(b"as it is")
    monkeypatch.setattr(packages, "ROOT", tmp_path / "straggler.zip")
    assert archive() == b"as it is"


def test_workers_find_our_packages_behind_those_of_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packages, "choose_interpreter", lambda _context: None)
    context: Any = SimpleNamespace(environment={"PYTHONPATH": "/mine"})
    for _ in range(2):
        packages.prepare_workers(context)
        assert context.environment["PYTHONPATH"] == f"/mine{os.pathsep}{packages.ROOT}"


def test_every_module_of_the_archive_can_be_imported_from_it(machine: Machine) -> None:
    said = machine.run(machine.environment["PYSPARK_PYTHON"], "-c", IMPORT_ALL)
    assert said == "straggler.zip/spark_impl/__init__.py"


@pytest.mark.long
def test_spark_submit_runs_a_query_from_the_archive(machine: Machine) -> None:
    assert machine.submit("local[2]") == EXPECTED


@pytest.mark.long
def test_a_cluster_runs_a_query_from_the_archive(machine: Machine) -> None:
    with standalone_cluster(machine.folder / "cluster", machine.environment) as master:
        assert machine.submit(master) == EXPECTED
        environment = {**os.environ, **LOOPBACK, "PYTHONPATH": str(ROOT)}
        own = Machine(machine.folder, environment)
        assert "/straggler.zip/" in own.run(sys.executable, "-c", WHERE, master)
