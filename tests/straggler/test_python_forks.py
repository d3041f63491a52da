"""Python processes that are forked for Spark do what started ones would do."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from properties.forks import first_in_forks, forking

ECHO = """
import os, sys
print(sys.argv[1:], os.environ["ASKED"], os.getcwd(), sys.stdin.read(), "pandas" in sys.modules)
sys.exit(3)
"""
WAITING = """
import os, sys, time
child = os.fork()
if child == 0:
    time.sleep(600)  # keeps its files open
print(os.getpid(), child, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def launcher() -> Iterator[Path]:
    with forking() as found:
        yield found


def start(launcher: Path, folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [launcher, *arguments],
        env={**os.environ, "PYTHONPATH": str(folder), "ASKED": "1"},
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_fork_is_the_module_that_was_asked_for(launcher: Path, tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO, encoding="utf-8")
    process = start(launcher, tmp_path, "-m", "echo", "a", "b")
    assert process.communicate("c")[0] == f"['a', 'b'] 1 {tmp_path} c True\n"
    assert process.returncode == 3


def test_a_fork_first_calls_the_function_in_its_environment(launcher: Path, tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO, encoding="utf-8")
    with first_in_forks(os.environ, partial(print, "first")):
        process = start(launcher, tmp_path, "-m", "echo")
    assert process.communicate("c")[0] == f"first\n[] 1 {tmp_path} c True\n"
    assert start(launcher, tmp_path, "-m", "echo").communicate("c")[0].startswith("[]")


def test_an_error_is_shown_and_told(launcher: Path, tmp_path: Path) -> None:
    process = start(launcher, tmp_path, "-m", "no_such_module")
    assert "No module named no_such_module" in process.communicate()[1]
    assert process.returncode == 1


def test_other_commands_are_python_itself(launcher: Path, tmp_path: Path) -> None:
    command = "import sys; print('pandas' in sys.modules)"
    assert start(launcher, tmp_path, "-c", command).communicate() == ("False\n", "")


def test_python_is_started_where_no_server_is_left(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO, encoding="utf-8")
    with forking() as launcher:
        text = launcher.read_text(encoding="utf-8")
    left = tmp_path / "python"
    left.write_text(text, encoding="utf-8")
    left.chmod(0o755)
    assert start(left, tmp_path, "-m", "echo").communicate("c")[0] == f"[] 1 {tmp_path} c False\n"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are found in /proc")
def test_whoever_ends_the_launcher_ends_its_fork(launcher: Path, tmp_path: Path) -> None:
    (tmp_path / "waiting.py").write_text(WAITING, encoding="utf-8")
    with start(launcher, tmp_path, "-m", "waiting") as process:
        assert process.stdout is not None
        fork, child = map(int, process.stdout.readline().split())
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 1  # although a child of the fork lives on
    os.kill(child, signal.SIGKILL)
    assert process.pid not in (fork, child)
    ends_s = time.monotonic() + 60
    while Path(f"/proc/{fork}").exists() and time.monotonic() < ends_s:
        time.sleep(0.01)
    assert not Path(f"/proc/{fork}").exists()
