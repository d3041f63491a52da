"""Workers run the driver's Python with our packages."""

import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_impl.runtime import packages
from spark_impl.runtime.packages import archive, choose_interpreter
from tests.harness.standalone import REQUIRED, isolate_python, standalone_cluster

ROOT = Path(__file__).resolve().parents[2]


def last_line(folder: Path, environment: Mapping[str, str], *command: str) -> str:
    """Run a command and return the last line that it prints."""
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def context_of(master: str, interpreter: str = "python3", **settings: str) -> Any:
    """Return what is asked of a context."""
    conf = {name.replace("__", "."): value for name, value in settings.items()}
    return SimpleNamespace(
        master=master, pythonExec=interpreter, getConf=lambda: SimpleNamespace(get=conf.get)
    )


@pytest.mark.parametrize(
    ("master", "variable", "setting", "chosen"),
    [
        ("local[*,4]", None, None, sys.executable),
        ("local-cluster[2,1,1024]", None, None, sys.executable),
        ("local", None, "mine/python", "mine/python"),
        ("local", "python3", "mine/python", "python3"),
        ("spark://host:7077", None, None, "python3"),
    ],
)
def test_the_users_choice_comes_before_the_drivers_interpreter(
    monkeypatch: pytest.MonkeyPatch,
    master: str,
    variable: str | None,
    setting: str | None,
    chosen: str,
) -> None:
    """The interpreter of other machines is left to Spark."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if variable is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", variable)
    context = context_of(master, **({"spark__pyspark__python": setting} if setting else {}))
    choose_interpreter(context)
    assert context.pythonExec == chosen
    theirs = context_of(master, "/usr/bin/pypy3")
    choose_interpreter(theirs)
    assert theirs.pythonExec == "/usr/bin/pypy3"


# --------------------------------------------------------------------------------------- packages


IMPORT_ALL = """
import importlib, sys, zipfile
sys.path.insert(0, "straggler.zip")
for name in zipfile.ZipFile("straggler.zip").namelist():
    importlib.import_module(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
import spark_impl
print(spark_impl.__file__)
"""
SUBMITTED = """
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


_WINDOWS = ((0, 2.0), (10, 2.0), (20, 1.0), (30, 1.0))
EXPECTED = f"found {[(start_us, value, 'exact') for start_us, value in _WINDOWS]}"


@pytest.fixture
def isolated(tmp_path: Path) -> dict[str, str]:
    """Write the archive, and return the environment of an interpreter without our packages."""
    (tmp_path / "straggler.zip").write_bytes(archive())
    return isolate_python(tmp_path / "isolated")


def test_the_same_sources_give_the_same_archive() -> None:
    assert archive() == archive()
    with zipfile.ZipFile(io.BytesIO(archive())) as found:
        assert {entry.date_time for entry in found.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        tops = {name.split("/")[0] for name in found.namelist()}
    assert tops == {"model", "spark_impl", "straggler"}


def test_workers_find_our_packages_behind_those_of_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packages, "choose_interpreter", lambda _context: None)
    context: Any = SimpleNamespace(environment={"PYTHONPATH": "/mine"})
    for _ in range(2):
        packages.prepare_workers(context)
        assert context.environment["PYTHONPATH"] == f"/mine{os.pathsep}{packages.ROOT}"


def test_every_module_of_the_archive_can_be_imported_from_it(
    tmp_path: Path, isolated: dict[str, str]
) -> None:
    said = last_line(tmp_path, isolated, isolated["PYSPARK_PYTHON"], "-c", IMPORT_ALL)
    assert said == "straggler.zip/spark_impl/__init__.py"


@pytest.mark.long
def test_a_cluster_runs_a_query_from_the_archive(tmp_path: Path) -> None:
    (tmp_path / "straggler.zip").write_bytes(archive())
    isolated = isolate_python(tmp_path / "isolated", [*REQUIRED, "deltalake"])  # for the driver
    (tmp_path / "job.py").write_text(SUBMITTED, encoding="utf-8")
    submit = f"{isolated['SPARK_HOME']}/bin/spark-submit"
    options = ("--conf", "spark.ui.enabled=false", "--py-files", "straggler.zip")
    with standalone_cluster(tmp_path / "cluster", isolated) as master:
        said = last_line(tmp_path, isolated, submit, "--master", master, *options, "job.py")
        assert said == EXPECTED
