"""Workers run the driver's Python, or one sentence names both interpreters."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.errors import PySparkException

from spark_impl.runtime.failures import sentence_of
from spark_impl.runtime.interpreters import choose_interpreter

ROOT = Path(__file__).resolve().parents[2]
JOB = """
import pathlib, sys
from pyspark.sql import SparkSession
from straggler import ChainJoin, Grouping, over
from model.vocabulary.join import Equi
from spark_impl.runtime.queries import QueryProblem
pathlib.Path("in").mkdir()
rows = "".join(f"2024-05-01T00:00:{second:02d}Z,a,{second}\\n" for second in range(1, 13))
pathlib.Path("in/a.csv").write_text(rows)
options = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
with SparkSession.builder.master("local[2]").config(map=options).getOrCreate() as spark:
    lines = spark.readStream.schema("at string, k string, v string").csv("in")
    stored = over(lines, event_time="at", key="k").window("10 seconds").sum("v").store_in("out")
    try:
        stored.run_available()
    except QueryProblem as problem:
        print("refused:", problem)
        sys.exit()
    sums = [row.value for row in stored.results().collect()]
    grouped = Grouping(2, "tag").assign(spark.createDataFrame([("a", 1)], "k string, n int"), "k")
    side = "seq long, source_id long, key string, event_time_us long, value double"
    r, s = (spark.createDataFrame([(0, at, "a", 5, 1.0)], side) for at in (1, 2))
    pairs = ChainJoin(2, 10, Equi("key")).join(r, s).collect()
    print("answers:", sums, grouped.count(), len(pairs))
"""
"""A job in a session of its own, of the kind that docs/production.md shows."""
ANSWERS = "answers: [45.0] 1 1"
TOOLS = ("bash", "sh", "env", "dirname", "ps", "cat", "rm", "mkdir", "chmod", "ls", "id", "uname")
"""Programs that Spark starts, besides Java."""


def path_without_python(folder: Path) -> Path:
    """Return a folder for ``PATH`` that has everything that Spark starts, except an interpreter."""
    folder.mkdir()
    for name in (*TOOLS, "java"):
        program = shutil.which(name)
        assert program is not None, name
        (folder / name).symlink_to(os.path.realpath(program))
    return folder


def foreign_python(file: Path) -> Path:
    """Write an interpreter without a single package."""
    file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n', encoding="utf-8")
    file.chmod(0o755)
    return file


def run_job(folder: Path, path: Path, **variables: str) -> str:
    """Run the job by the path of this interpreter; return its last line."""
    theirs = ("PYSPARK_", "PYTHON", "SPARK_", "PATH")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(theirs)}
    ours = {"PATH": str(path), "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", JOB],
        cwd=folder,
        env={**kept, **ours, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.long
@pytest.mark.parametrize("is_there", [False, True])
def test_a_local_session_of_the_user_runs_the_interpreter_of_the_driver(
    tmp_path: Path, is_there: bool
) -> None:
    path = path_without_python(tmp_path / "bin")
    if is_there:
        foreign_python(path / "python3")
    assert run_job(tmp_path, path) == ANSWERS


@pytest.mark.long
def test_an_interpreter_that_the_user_chose_is_kept_and_named_if_it_lacks_a_package(
    tmp_path: Path,
) -> None:
    chosen = foreign_python(tmp_path / "mine")
    said = run_job(tmp_path, path_without_python(tmp_path / "bin"), PYSPARK_PYTHON=str(chosen))
    version = "{}.{}.{}".format(*sys.version_info)
    begins = (
        f"refused: the driver runs {sys.executable} (Python {version}), its workers run {chosen}"
        f" (Python {version} in "
    )
    assert said.startswith(begins)
    assert "): No module named '" in said
    assert said.endswith(
        "; set PYSPARK_PYTHON to an interpreter of version {}.{} that has the packages of Straggler"
        " on every machine".format(*sys.version_info)
    )


def context_of(master: str, interpreter: str = "python3", **settings: str) -> Any:
    """Return what is asked of a context."""
    conf = {name.replace("__", "."): value for name, value in settings.items()}
    return SimpleNamespace(
        master=master, pythonExec=interpreter, getConf=lambda: SimpleNamespace(get=conf.get)
    )


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*,4]", "local-cluster[2,1,1024]"])
@pytest.mark.parametrize("setting", [None, "mine/python"])
@pytest.mark.parametrize("variable", [None, "python3"])
def test_the_users_choice_comes_before_the_drivers_interpreter(
    monkeypatch: pytest.MonkeyPatch, master: str, setting: str | None, variable: str | None
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if variable is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", variable)
    context = context_of(master, **({"spark__pyspark__python": setting} if setting else {}))
    choose_interpreter(context)
    assert context.pythonExec == (variable or setting or sys.executable)
    chosen = context_of(master, "/usr/bin/pypy3")
    choose_interpreter(chosen)
    assert chosen.pythonExec == "/usr/bin/pypy3"


def test_the_interpreter_of_other_machines_is_left_to_spark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    context = context_of("spark://host:7077")
    choose_interpreter(context)
    assert context.pythonExec == "python3"


OTHER = "Python in worker has different version: 3.1 than that in driver: 3.11, PySpark cannot"
MINOR = "Python {}.{}".format(*sys.version_info)


@pytest.mark.parametrize(
    ("text", "interpreter", "said"),
    [
        (OTHER, "python3", "python3 (Python 3.1): both have to be of one minor version"),
        ("ModuleNotFoundError: No module named 'numpy'", "python3", f"python3 ({MINOR}): No modul"),
        (
            'java.io.IOException: Cannot run program "/x/py": error=2, No such file or directory',
            "/x/py",
            "/x/py (which cannot be started): No such file or directory",
        ),
        ("ModuleNotFoundError: No module named 'spark_impl.slack'", "python3", None),
        ("ModuleNotFoundError: No module named 'no_such_module'", "python3", None),
        ('IOException: Cannot run program "hadoop": error=2, No such', "python3", None),
        ("ValueError: the value is 7", "python3", None),
    ],
)
def test_errors_about_interpreters_of_other_machines_name_both(
    monkeypatch: pytest.MonkeyPatch, text: str, interpreter: str, said: str | None
) -> None:
    context = context_of("spark://host:7077", interpreter)
    monkeypatch.setattr(SparkContext, "_active_spark_context", context)
    sentence = sentence_of(PySparkException(text))
    names_both = f"the driver runs {sys.executable} (Python " in sentence
    assert names_both == (said is not None)
    assert (said or "") in sentence
