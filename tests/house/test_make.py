"""The make targets, the set-up they share and the CI entry, without installing anything."""

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
PYTHON_WHOSE_PIP_FAILS = """
case "$1 $2" in
    "-c "*print*) echo 3.11;;
    "-m venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python;;
    "-m pip") echo "no matching distribution"; exit 1;;
esac
"""
TOOLS_OF_HOSTS = ("id", "ip", "tc", "bridge", "unshare", "nsenter")


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


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    homes = {version: tmp_path / version for version in ("11.0.2", "17.0.15", "25-ea")}
    for version, home in homes.items():
        command(home / "bin", "java", JAVA.format(version))
    old = homes.pop("11.0.2")
    for home in homes.values():
        done = run("/bin/sh", PREFLIGHT, "java", path=old / "bin", JAVA_HOME=str(home))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        done = run("/bin/sh", PREFLIGHT, "java", path=home / "bin", JAVA_HOME=str(old))
        assert_one_sentence(done, "11.0.2", f"JAVA_HOME={old}")


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


@pytest.mark.parametrize(
    ("name", "script", "words"),
    [
        ("tc", "", ("needs tc,", "iproute2")),
        ("id", "echo 1000", ("needs root",)),
        ("unshare", "echo 'Not permitted' >&2; exit 1", ("Not permitted",)),
    ],
)
def test_hosts_that_cannot_be_had_are_refused(
    tmp_path: Path, name: str, script: str, words: tuple[str, ...]
) -> None:
    for each in TOOLS_OF_HOSTS:
        if each != name or script:
            command(tmp_path, each, script if each == name else "echo 0")
    assert_one_sentence(run("/bin/sh", PREFLIGHT, "hosts", path=tmp_path), *words)


# ----------------------------------------------------------------------------------------- targets


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Make a checkout with only the files that set-up reads."""
    folder = tmp_path / "clone"
    (folder / ".ci").mkdir(parents=True)
    ours = (".ci/browser", ".ci/preflight", ".ci/run")
    for name in ("Makefile", "pyproject.toml", "constraints.txt", *ours):
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


def test_make_shows_what_pip_said_when_it_failed(clone: Path, tmp_path: Path) -> None:
    command(tmp_path / "bin", "java", JAVA.format("17.0.15"))
    python = command(tmp_path / "bin", "python", PYTHON_WHOSE_PIP_FAILS)
    path = f"{python.parent}:{os.defpath}"
    for _attempt in range(2):  # a set-up that failed is tried again
        done = run(tool("make"), "setup", f"PYTHON={python}", path=path, cwd=clone)
        assert done.returncode == 2
        assert done.stdout == "setting up .venv ...\n"
        assert done.stderr.startswith("no matching distribution\n")


# ---------------------------------------------------------------------------------------------- CI


def test_ci_checks_with_recordings_and_goes_without_hosts(clone: Path, tmp_path: Path) -> None:
    recordings = tmp_path / "shared" / "data"
    recordings.mkdir(parents=True)
    command(tmp_path / "bin", "chromium", "")
    command(tmp_path / "bin", "make", 'echo "$@ with $STRAGGLER_DATA"')
    command(clone / ".ci", "preflight", "echo there is no root. >&2; exit 2")
    path = f"{tmp_path / 'bin'}:{os.defpath}"
    done = run(tool("bash"), ".ci/run", path=path, cwd=clone)
    said = f"check test with {recordings}\nmake cluster is skipped: there is no root.\n"
    assert (done.returncode, done.stdout) == (0, said)
    command(tmp_path / "bin", "make", "exit 3")
    assert run(tool("bash"), ".ci/run", path=path, cwd=clone).returncode == 3


def test_ci_goes_without_a_browser_that_cannot_be_installed(tmp_path: Path) -> None:
    done = run(tool("bash"), ROOT / ".ci" / "browser", path=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("no browser, and no way to install one")
