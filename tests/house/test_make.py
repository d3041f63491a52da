"""The make targets, the set-up they share and the CI entry, without installing anything."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.house.repository import ROOT

PREFLIGHT = ROOT / ".ci" / "preflight"

OLD_PYTHON = 'case "$2" in *print*) echo 3.9;; *) exit 1;; esac'
PYTHON_WITHOUT_VENV = 'case "$2" in *print*) echo 3.11;; *ensurepip*) exit 1;; esac'
PYTHON_WHOSE_PIP_FAILS = """
case "$1 $2" in
    "-c "*print*) echo 3.11;;
    "-m venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python;;
    "-m pip") echo "no matching distribution"; exit 1;;
esac
"""


def command(folder: Path, name: str, script: str) -> Path:
    """Make ``folder/name`` a command that runs a few lines of shell."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def java(folder: Path, version: str) -> Path:
    """Make ``folder/java`` print that version to stderr, as every Java does."""
    return command(folder, "java", f"""echo 'openjdk version "{version}" 2025-01-21' >&2""")


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


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_java_that_is_new_enough_is_accepted_silently(tmp_path: Path, version: str) -> None:
    java(tmp_path, version)
    done = run("/bin/sh", PREFLIGHT, "java", path=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2"])
def test_old_java_is_refused_by_its_version(tmp_path: Path, version: str) -> None:
    java(tmp_path, version)
    done = run("/bin/sh", PREFLIGHT, "java", path=tmp_path)
    assert_one_sentence(done, "Java 17 or newer", version, "on the PATH")


def test_no_java_is_refused(tmp_path: Path) -> None:
    done = run("/bin/sh", PREFLIGHT, "java", path=tmp_path)
    assert_one_sentence(done, "Java 17 or newer", "there is none", "JAVA_HOME")


def test_java_that_only_says_where_to_get_one_is_refused(tmp_path: Path) -> None:
    command(tmp_path, "java", "echo 'Unable to locate a Java Runtime.' >&2; exit 1")
    done = run("/bin/sh", PREFLIGHT, "java", path=tmp_path)
    assert_one_sentence(done, "there is none")


def test_options_that_java_announces_are_not_its_version(tmp_path: Path) -> None:
    introduction = 'Picked up JAVA_TOOL_OPTIONS: -Da="8"\nopenjdk version "17.0.15" 2025-04-15'
    command(tmp_path, "java", f"cat >&2 <<'END'\n{introduction}\nEND")
    assert run("/bin/sh", PREFLIGHT, "java", path=f"{tmp_path}:/usr/bin:/bin").returncode == 0


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    java(tmp_path / "old" / "bin", "11.0.2")
    java(tmp_path / "new" / "bin", "17.0.15")
    old, new = tmp_path / "old", tmp_path / "new"
    done = run("/bin/sh", PREFLIGHT, "java", path=old / "bin", JAVA_HOME=str(new))
    assert done.returncode == 0
    done = run("/bin/sh", PREFLIGHT, "java", path=new / "bin", JAVA_HOME=str(old))
    assert_one_sentence(done, "11.0.2", f"JAVA_HOME={old}")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (OLD_PYTHON, ("Python 3.11 or newer", "3.9", "make PYTHON=")),
        (PYTHON_WITHOUT_VENV, ("virtual environments", "python3.11-venv")),
    ],
)
def test_python_that_will_not_do_is_refused(
    tmp_path: Path, script: str, words: tuple[str, ...]
) -> None:
    python = command(tmp_path, "python", script)
    assert_one_sentence(run("/bin/sh", PREFLIGHT, "python", python), str(python), *words)


def test_python_that_does_not_exist_is_refused() -> None:
    done = run("/bin/sh", PREFLIGHT, "python", "python3.99")
    assert_one_sentence(done, "Python 3.11 or newer", "python3.99 does not run")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Make a checkout with only the files that set-up reads."""
    folder = tmp_path / "clone"
    (folder / ".ci").mkdir(parents=True)
    ours = (".ci/browser", ".ci/preflight", ".ci/run")
    for name in ("Makefile", "pyproject.toml", "constraints.txt", *ours):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.mark.parametrize("target", ["diff", "test", "bench"])
def test_make_without_java_installs_nothing(clone: Path, tmp_path: Path, target: str) -> None:
    done = run(tool("make"), target, path=tmp_path / "empty", cwd=clone)
    assert done.returncode == 2
    sentence, from_make = done.stderr.splitlines()
    assert "Java 17 or newer" in sentence
    assert from_make.startswith("make: ***")
    assert not (clone / ".venv").exists()


def test_make_with_an_old_python_installs_nothing(clone: Path, tmp_path: Path) -> None:
    java(tmp_path / "bin", "17.0.15")
    old = command(tmp_path / "bin", "oldpython", OLD_PYTHON)
    path = f"{old.parent}:{os.defpath}"
    done = run(tool("make"), "setup", f"PYTHON={old}", path=path, cwd=clone)
    assert done.returncode == 2
    assert "3.9" in done.stderr.splitlines()[0]
    assert not (clone / ".venv").exists()


def test_make_shows_what_pip_said_when_it_failed(clone: Path, tmp_path: Path) -> None:
    java(tmp_path / "bin", "17.0.15")
    python = command(tmp_path / "bin", "python", PYTHON_WHOSE_PIP_FAILS)
    path = f"{python.parent}:{os.defpath}"
    for _attempt in range(2):  # a set-up that failed is tried again
        done = run(tool("make"), "setup", f"PYTHON={python}", path=path, cwd=clone)
        assert done.returncode == 2
        assert done.stdout == "setting up .venv ...\n"
        assert done.stderr.startswith("no matching distribution\n")


@pytest.mark.parametrize(("given", "options"), [((), " --quick"), (("ALL=1",), "")])
def test_make_diff_compares_all_rooms(given: tuple[str, ...], options: str) -> None:
    done = run(tool("make"), "-n", "diff", *given, "READY=", "BIN=bin", path=os.defpath)
    assert done.stdout.splitlines()[-1].rstrip() == f"bin/straggler diff all{options}"


def test_make_alone_explains_every_target() -> None:
    done = run(tool("make"), path=os.defpath)
    explained = set(re.findall(r"^make ([\w-]+)\t+.", done.stdout, flags=re.MULTILINE))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = set(" ".join(re.findall(r"^\.PHONY: (.*)$", makefile, flags=re.MULTILINE)).split())
    steps = {"java", "hosts", "room"}  # of other targets, not to be asked for
    assert explained == phony - steps


@pytest.mark.parametrize(
    ("given", "expected"), [({}, "recordings"), ({"STRAGGLER_DATA": "elsewhere"}, "elsewhere")]
)
def test_ci_finds_recordings_next_to_the_checkout(
    clone: Path, tmp_path: Path, given: dict[str, str], expected: str
) -> None:
    recordings = tmp_path / "shared" / "data"
    recordings.mkdir(parents=True)
    command(tmp_path / "bin", "chromium", "")
    command(tmp_path / "bin", "make", 'echo "$@ with $STRAGGLER_DATA"; exit 3')
    path = f"{tmp_path / 'bin'}:{os.defpath}"
    done = run(tool("bash"), ".ci/run", path=path, cwd=clone, **given)
    wanted = expected.replace("recordings", str(recordings))
    assert (done.returncode, done.stdout) == (3, f"check test with {wanted}\n")


TOOLS_OF_HOSTS = ("id", "ip", "tc", "bridge", "unshare", "nsenter")


@pytest.mark.parametrize("absent", TOOLS_OF_HOSTS)
def test_hosts_without_a_tool_are_refused(tmp_path: Path, absent: str) -> None:
    for name in TOOLS_OF_HOSTS:
        if name != absent:
            command(tmp_path, name, "echo 0")
    done = run("/bin/sh", PREFLIGHT, "hosts", path=tmp_path)
    assert_one_sentence(done, f"needs {absent},", "iproute2")


@pytest.mark.parametrize(
    ("name", "script", "word"),
    [
        ("id", "echo 1000", "needs root"),
        ("unshare", "echo 'Operation not permitted' >&2; exit 1", "Operation not permitted"),
    ],
)
def test_hosts_that_the_machine_refuses_are_refused(
    tmp_path: Path, name: str, script: str, word: str
) -> None:
    for each in TOOLS_OF_HOSTS:
        command(tmp_path, each, script if each == name else "echo 0")
    assert_one_sentence(run("/bin/sh", PREFLIGHT, "hosts", path=tmp_path), word)


def test_make_without_hosts_installs_nothing(clone: Path, tmp_path: Path) -> None:
    command(clone / ".ci", "preflight", "echo there is no root. >&2; exit 2")
    done = run(tool("make"), "cluster", path=tmp_path / "empty", cwd=clone)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "there is no root."
    assert not (clone / ".venv").exists()


def test_ci_goes_without_recordings(clone: Path, tmp_path: Path) -> None:
    command(tmp_path / "bin", "chromium", "")
    command(tmp_path / "bin", "make", 'echo "${STRAGGLER_DATA-unset}"')
    command(clone / ".ci", "preflight", "")
    done = run(tool("bash"), clone / ".ci/run", path=f"{tmp_path / 'bin'}:{os.defpath}")
    assert (done.returncode, done.stdout) == (0, "unset\nunset\n")


def test_ci_goes_without_hosts_where_it_cannot_have_them(clone: Path, tmp_path: Path) -> None:
    command(tmp_path / "bin", "chromium", "")
    command(tmp_path / "bin", "make", 'echo "$@"')
    command(clone / ".ci", "preflight", "echo there is no root. >&2; exit 2")
    done = run(tool("bash"), clone / ".ci/run", path=f"{tmp_path / 'bin'}:{os.defpath}")
    said = "check test\nmake cluster is skipped: there is no root.\n"
    assert (done.returncode, done.stdout) == (0, said)


def test_ci_needs_no_second_browser(tmp_path: Path) -> None:
    command(tmp_path, "chromium", "")
    command(tmp_path, "apt-get", "exit 1")
    done = run(tool("bash"), ROOT / ".ci" / "browser", path=f"{tmp_path}:{os.defpath}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_ci_goes_without_a_browser_that_cannot_be_installed(tmp_path: Path) -> None:
    done = run(tool("bash"), ROOT / ".ci" / "browser", path=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("no browser, and no way to install one")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs")
def test_ci_says_why_a_browser_could_not_be_installed(tmp_path: Path) -> None:
    for name in ("mktemp", "tail", "timeout", "rm"):
        (tmp_path / name).symlink_to(tool(name))
    command(tmp_path, "apt-get", "echo no such package; exit 1")
    done = run(tool("bash"), ROOT / ".ci" / "browser", path=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    expected = ["installing chromium ...", "no such package", "chromium could not be installed"]
    assert done.stdout.splitlines() == expected


@pytest.mark.parametrize("room", ["", "ROOM=jion"])
def test_quick_refuses_an_unknown_room_before_anything_is_set_up(clone: Path, room: str) -> None:
    done = run(tool("make"), *filter(None, ["quick", room]), cwd=clone, path=os.defpath)
    assert done.returncode == 2
    assert done.stderr.startswith("make quick needs a room, like this: make quick ROOM=join\n")
    assert not (clone / ".venv").exists()
