"""The make targets, and the set-up they share, without installing anything."""

import os
import re
import shutil
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


def run(
    *arguments: str | Path, path: str | Path = "", cwd: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command that sees nothing of our environment but what is given here."""
    return subprocess.run(
        [str(argument) for argument in arguments],
        env={"PATH": str(path), **environment},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def assert_one_sentence(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"[^\n]+\.\n", done.stderr), done.stderr
    for word in words:
        assert word in done.stderr


# --------------------------------------------------------------------------------------- preflight


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


# ----------------------------------------------------------------------------------------- targets


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Make a checkout with only the files that set-up reads."""
    folder = tmp_path / "clone"
    (folder / ".ci").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt", ".ci/preflight"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        (("diff",), "Java 17 or newer"),
        (("quick",), "make quick needs a room, like this: make quick ROOM=join"),
        (("quick", "ROOM=jion"), "make quick needs a room, like this: make quick ROOM=join"),
    ],
)
def test_make_refuses_before_anything_is_set_up(
    clone: Path, tmp_path: Path, target: tuple[str, ...], sentence: str
) -> None:
    path = os.defpath if "quick" in target else str(tmp_path / "empty")
    done = run(tool("make"), *target, path=path, cwd=clone)
    assert done.returncode == 2
    assert sentence in done.stderr.splitlines()[0]
    assert done.stderr.splitlines()[1].startswith("make: ***")
    assert not (clone / ".venv").exists()
