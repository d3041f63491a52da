"""Starting Spark, and leaving nothing behind."""

import os
import re
from pathlib import Path

import pytest

from spark_impl.runtime import session
from spark_impl.runtime.session import (
    EnvironmentProblem,
    _java_messages,
    require_java,
)


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
        with _java_messages(tmp_path / "messages.log"):
            os.write(2, log.encode("utf-8"))
            raise RuntimeError("Java gateway process exited")

    expected = f"^Spark does not start: {re.escape(sentence)}"
    with pytest.raises(EnvironmentProblem, match=expected):
        start()
