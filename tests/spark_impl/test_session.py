"""Starting Spark, and leaving nothing behind."""

import fcntl
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from model.vocabulary import SlackConfig
from spark_impl.runtime import session
from spark_impl.runtime.session import EnvironmentProblem, _java_messages, require_java
from spark_impl.slack import SlackQuery, results
from tests.spark_impl.test_query import history

ROOT = Path(__file__).resolve().parents[2]
CONFIG = SlackConfig(size_us=10, slide_us=5, control="fixed", gamma_us=0)
# The parent of the tests may ignore interrupts, as nohup does; the script must not inherit that.
SCRIPT = """
import signal
from spark_impl.runtime.session import session
from spark_impl.slack import SlackQuery
from tests.spark_impl.test_session import CONFIG
signal.signal(signal.SIGINT, signal.default_int_handler)
with session() as spark:
    SlackQuery(spark, CONFIG, "history", "store").flush()
"""


def fake_java(folder: Path, answer: str) -> None:
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ('openjdk version "11.0.2" 2019-01-15', r"^Java 17 or newer is needed and .* is Java 11$"),
        ('java version "1.8.0_291"', r"is Java 8$"),
        ("hello", "does not say which Java it is"),
    ],
)
def test_java_too_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, sentence: str
) -> None:
    fake_java(tmp_path, answer)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match=sentence):
        require_java()


def test_java_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, 'openjdk version "21" 2023-09-19')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    require_java()


def test_java_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="there is no java in JAVA_HOME"):
        require_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="there is no java on the PATH"):
        require_java()


TRACE = """\
26/11/22 04:28:52 ERROR SparkContext: Error initializing SparkContext.
org.apache.spark.SparkException: Exception thrown in awaitResult:\x20
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)
"""


@pytest.mark.parametrize(
    ("given", "long_running", "is_ours"),
    [
        ("", False, True),
        ("-Xmx1g -Dgc=UseG1GC", False, True),
        ("-Xmx1g -XX:+UseG1GC", False, False),
        ("", True, False),
    ],
)
def test_java_is_told_of_one_collector(
    given: str, long_running: bool, is_ours: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", given)
    settings = session._settings("local[2]", tmp_path, long_running=long_running)
    assert ("-XX:+UseSerialGC" in settings["spark.driver.extraJavaOptions"]) == is_ours


@pytest.mark.parametrize(("name", "is_used"), [("classes.jsa", True), ("missing.jsa", False)])
@pytest.mark.parametrize(("master", "is_near"), [("local[2]", True), ("spark://a:1", False)])
def test_java_is_told_of_classes_that_are_there(
    name: str,
    is_used: bool,
    master: str,
    is_near: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "classes.jsa").touch()
    monkeypatch.setattr(session, "CLASS_ARCHIVE", tmp_path / name)
    settings = session._settings(master, tmp_path, long_running=False)
    for who in ("driver", "executor"):
        given = settings[f"spark.{who}.extraJavaOptions"]
        assert ("-XX:SharedArchiveFile=" in given) == (is_used and is_near)


@pytest.mark.skipif(not session.CLASS_ARCHIVE.is_file(), reason="make writes the archive")
@pytest.mark.parametrize(
    ("master", "wait"), [("spark://host:7077", "0s"), ("yarn", "0s"), ("local[2]", None)]
)
def test_tasks_on_a_cluster_wait_for_no_preferred_host(
    master: str, wait: str | None, tmp_path: Path
) -> None:
    settings = session._settings(master, tmp_path, long_running=False)
    assert settings.get("spark.locality.wait") == wait


def test_java_ignores_classes_of_another_spark_silently(tmp_path: Path) -> None:
    settings = session._settings("local[2]", tmp_path, long_running=True)
    options = shlex.split(settings["spark.executor.extraJavaOptions"])
    silent, told = (
        subprocess.run(["java", *given, "--version"], capture_output=True, text=True, check=True)
        for given in (options, options[:1])
    )
    assert "warning" not in silent.stdout + silent.stderr
    assert "warning" in told.stdout + told.stderr  # without Spark on its path


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        (TRACE, "Exception thrown in awaitResult:"),
        (
            TRACE + "Caused by: java.io.IOException: Failed to connect to /127.0.0.1:1\n\tat x\n"
            "Caused by: java.net.ConnectException: Connection refused\n\t... 1 more\n",
            "ConnectException: Connection refused",
        ),
        (
            'Exception in thread "main" org.apache.spark.SparkException: Where is it?\n',
            "Where is it?",
        ),
        ("a line\nError: Could not create the Java Virtual Machine.\n", "Error: Could not create"),
    ],
)
def test_the_error_of_java_is_its_last_cause(tmp_path: Path, log: str, sentence: str) -> None:
    def start() -> None:
        with (tmp_path / "messages.log").open("ab") as file, _java_messages(file):
            os.write(2, log.encode("utf-8"))
            raise RuntimeError("Java gateway process exited")

    expected = f"^Spark does not start: {re.escape(sentence)}"
    with pytest.raises(EnvironmentProblem, match=expected):
        start()


def interrupt(folder: Path, how: signal.Signals) -> tuple[int, str]:
    """Run SCRIPT in a folder and interrupt it in the middle of its second micro-batch."""
    history(folder / "history", *([(10 * b + i, 1.0) for i in (3, 12, 1)] for b in range(4)))
    (folder / "tmp").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp")}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while process.poll() is None and not (folder / "store/progress/batch=1").exists():
            time.sleep(0.005)
        process.send_signal(how)
        _, errors = process.communicate(timeout=120)
    return process.returncode, errors


def test_interrupt_stops_cleanly_and_leaves_nothing(tmp_path: Path) -> None:
    code, errors = interrupt(tmp_path, signal.SIGINT)
    assert code != 0
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert "java" not in errors
    assert sorted(path.name for path in tmp_path.iterdir()) == ["history", "store", "tmp"]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_stopping_spark_does_not_warn_of_a_broken_connection() -> None:
    class Broken:
        def stop(self) -> None:
            warnings.warn("Unable to cleanly shutdown Spark JVM process.", RuntimeWarning, 1)

    session._stop(cast(SparkSession, Broken()))


def assert_next_start_tidies_up(folder: Path) -> None:
    (left,) = folder.iterdir()
    with (left / session.MESSAGES).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # Java has ended and writes there no more
    session.remove_forsaken(folder)
    assert list(folder.iterdir()) == []


@pytest.mark.long
def test_killed_driver_loses_nothing(spark: SparkSession, tmp_path: Path) -> None:
    code, _ = interrupt(tmp_path, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert_next_start_tidies_up(tmp_path / "tmp")
    query = SlackQuery(spark, CONFIG, tmp_path / "history", tmp_path / "store")
    assert query.store.committed() < 3
    query.flush()
    times = [10 * b + i for b in range(4) for i in (3, 12, 1)]
    windows = {start for ts in times for start in (ts // 5 * 5, ts // 5 * 5 - 5)}
    expected = {w: sum(w <= ts < w + 10 for ts in times) for w in windows}
    rows = results(spark, tmp_path / "store").collect()
    assert {row.start_us: row.value for row in rows} == expected
    assert {row.state for row in rows} == {"exact"}
