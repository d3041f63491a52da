"""Requirements of make on this machine, which are asked for before anything is installed."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.house.repository import ROOT

PREFLIGHT = ROOT / ".ci" / "preflight"
JAVA = """echo 'openjdk version "{}" 2025-01-21' >&2"""
"""A Java, which prints its version to stderr."""
OLD_PYTHON = 'case "$2" in *print*) echo 3.9;; *) exit 1;; esac'
PYTHON_WITHOUT_VENV = 'case "$2" in *print*) echo 3.11;; *ensurepip*) exit 1;; esac'


def command(folder: Path, name: str, script: str) -> Path:
    """Make ``folder/name`` a command that runs a few lines of shell."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def run(*arguments: str | Path, path: str | Path = "") -> subprocess.CompletedProcess[str]:
    """Run a command that sees nothing of our environment but what is given here."""
    return subprocess.run(
        [str(argument) for argument in arguments],
        env={"PATH": str(path)},
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def assert_one_sentence(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"[^\n]+\.\n", done.stderr), done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (JAVA.format("1.8.0_392"), ("1.8.0_392", "on the PATH")),
        ("echo 'Unable to locate a Java Runtime.' >&2; exit 1", ("there is none",)),
        ("", ("there is none", "JAVA_HOME")),
    ],
)
def test_java_that_will_not_do_is_refused(
    tmp_path: Path, script: str, words: tuple[str, ...]
) -> None:
    if script:
        command(tmp_path, "java", script)
    done = run("/bin/sh", PREFLIGHT, "java", path=tmp_path)
    assert_one_sentence(done, "Java 17 or newer", *words)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (OLD_PYTHON, ("Python 3.11 or newer", "3.9", "make PYTHON=")),
        (PYTHON_WITHOUT_VENV, ("virtual environments", "python3.11-venv")),
        ("exit 127", ("Python 3.11 or newer", "does not run")),
    ],
)
def test_python_that_will_not_do_is_refused(
    tmp_path: Path, script: str, words: tuple[str, ...]
) -> None:
    python = command(tmp_path, "python", script)
    assert_one_sentence(run("/bin/sh", PREFLIGHT, "python", python), str(python), *words)
