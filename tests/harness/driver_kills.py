"""Driver processes that are killed with SIGKILL, repeatedly and at any moment (tier 4).

The next process finds only the files in its folder. A driver is a program, the name of a module
with perhaps a word behind it. It takes a folder, resumes from it and prints its progress:
``begin 3`` and ``end 3`` around micro-batch 3, and ``done`` at the end.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

MOMENTS = (("begin", 1.0), ("begin", 0.1), ("end", 0.1))
"""Line that starts the wait for a kill, and the longest wait (s). The kill strikes at any time in a
batch, near its beginning, or between its end and Spark's commit."""
PATIENCE_S = 120

ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join(sys.path),
    # These processes are too short-lived for a second compiler or parallel collectors.
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="processes are found in /proc"
)


class Driver:
    """A driver process in a session of its own, so that all its children can be killed."""

    def __init__(self, folder: Path, program: str) -> None:
        scratch = folder / "scratch"
        scratch.mkdir(exist_ok=True)
        self.lines: list[str] = []
        self._stderr = folder / "stderr"
        with self._stderr.open("w", encoding="utf-8") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *program.split(), str(folder)],
                env={**os.environ, "TMPDIR": str(scratch), **ENVIRONMENT},
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )

    def __enter__(self) -> "Driver":
        return self

    def __exit__(self, *failure: object) -> None:
        """Kill every process of the session at once, Python workers included."""
        for pid in session_processes(self.process.pid):
            with suppress(ProcessLookupError):  # the process ended when another one was killed
                os.kill(pid, signal.SIGKILL)
        remaining, _stderr = self.process.communicate(timeout=PATIENCE_S)
        self.lines += remaining.split("\n")[:-1]
        ends_s = time.monotonic() + PATIENCE_S
        while session_processes(self.process.pid) and time.monotonic() < ends_s:
            time.sleep(0.01)

    def read_until(self, *starts: str) -> str:
        """Read lines until one begins with one of ``starts`` or output ends; return the last."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            self.lines.append(line.strip())
            if line.startswith(starts):
                break
        return self.lines[-1] if self.lines else ""

    def said(self) -> str:
        """Return what the process said of errors."""
        return self._stderr.read_text(encoding="utf-8", errors="replace")


def session_processes(leader: int) -> list[int]:
    """Return the living processes of a session, the leader first."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            if int(state[3]) == leader and state[0] != "Z":
                found.append(int(entry.name))
    # Kill the leader first: it would notice the end of Java and exit by itself.
    return sorted(found, key=lambda pid: pid != leader)


def kills(folder: Path, program: str, random: Random, at_most: int) -> Iterator[str]:
    """Start and kill the driver at most ``at_most`` times; yield the last line before each kill.

    The speed of the machine decides how far the driver gets; it may finish too early.
    """
    for _ in range(at_most):
        with Driver(folder, program) as driver:
            moment, seconds = random.choice(MOMENTS)
            for _ in range(random.randint(1, 2)):
                line = driver.read_until(moment, "done")
            time.sleep(random.uniform(0, seconds))
        if "done" in driver.lines:
            return
        assert line.startswith(moment), (line, driver.said())
        assert driver.process.returncode == -signal.SIGKILL, (driver.lines, driver.said())
        yield driver.lines[-1]


def run_to_its_end(folder: Path, program: str) -> Driver:
    """Start the driver and let it finish; return it with its lines."""
    with Driver(folder, program) as driver:
        if driver.read_until("done") == "done":
            assert driver.process.wait(PATIENCE_S) == 0
    assert driver.lines[-1:] == ["done"], driver.said()
    return driver
