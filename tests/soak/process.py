"""A driver process of a soak: commands in, lines out, and everything that belongs to it."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from spark_impl.runtime.session import _remove_worker_files
from tests.harness.driver_kills import ENVIRONMENT, session_processes

PATIENCE_S = 90.0
"""Longest wait for an answer; then the driver counts as stalled."""
PYTHON, JAVA, EXECUTOR, DAEMON, WORKER = "python", "java", "executor", "daemon", "worker"


class Stalled(Exception):  # noqa: N818 (an outcome, not a bug)
    """A driver has not answered in time."""


class Ended(Exception):  # noqa: N818 (an outcome, not a bug)
    """A driver process has ended."""


class DriverProcess:
    """A driver in a session of its own, so that all its processes can be found."""

    def __init__(self, master: str, folder: Path, module: str = "tests.soak.driver") -> None:
        self.master = master
        self.lines: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "stderr").open("a", encoding="utf-8") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, master],
                env={**os.environ, "TMPDIR": str(folder), **ENVIRONMENT},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,  # Ctrl-C is for the soak, which ends this process
            )
        self._said: queue.Queue[str] = queue.Queue()
        self._application = ""
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def has_executors(self) -> bool:
        """Whether executors are processes of their own."""
        return self.master.startswith("local-cluster")

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with suppress(ValueError):
            for line in self.process.stdout:
                self._said.put(line.strip())
        self._said.put("ended")

    def wait_until_ready(self) -> None:
        """Wait until Spark has started."""
        if not self._application:
            self._application = self.wait_for("ready", patience_s=180).split()[1]

    def send(self, do: str, **given: Any) -> None:
        """Send a command. Raise :class:`Ended` if nobody reads it."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **given}) + "\n")
            self.process.stdin.flush()
        except OSError:
            raise Ended from None

    def wait_for(self, *starts: str, patience_s: float = PATIENCE_S) -> str:
        """Return the next line that begins with one of ``starts``.

        Raise :class:`Ended` or :class:`Stalled` if there is none.
        """
        ends_s = time.monotonic() + patience_s
        while True:
            try:
                line = self._said.get(timeout=max(0.0, ends_s - time.monotonic()))
            except queue.Empty:
                raise Stalled from None
            self.lines.append(line)
            if line == "ended":
                self._said.put(line)
                raise Ended
            if line.startswith(starts):
                return line

    def processes(self) -> dict[str, list[int]]:
        """Return the living processes of the driver, by what they are."""
        found: dict[str, list[int]] = {
            each: [] for each in (PYTHON, JAVA, EXECUTOR, DAEMON, WORKER)
        }
        for pid in session_processes(self.process.pid):
            with suppress(OSError):
                found[self._kind_of(pid)].append(pid)
        return found

    def _kind_of(self, pid: int) -> str:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if pid == self.process.pid:
            return PYTHON
        if command[0].endswith(b"java"):
            is_executor = any(b"CoarseGrainedExecutorBackend" in each for each in command)
            return EXECUTOR if is_executor else JAVA
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        parent = Path(f"/proc/{stat[1]}/cmdline").read_bytes()
        is_daemon = any(b"daemon" in each for each in command) and b"java" in parent.split(b"\0")[0]
        return DAEMON if is_daemon else WORKER

    def kill(self, *pids: int) -> None:
        """Kill processes with SIGKILL."""
        for pid in pids:
            with suppress(ProcessLookupError):  # it has ended by itself
                os.kill(pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill everything that is left, and remove what Spark keeps outside of the folder."""
        ends_s = time.monotonic() + 30
        while (left := session_processes(self.process.pid)) and time.monotonic() < ends_s:
            self.kill(*left)
            time.sleep(0.02)
        self.process.wait(30)
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                assert pipe is not None
                pipe.close()
        if self.has_executors and self._application:
            _remove_worker_files(self._application)
