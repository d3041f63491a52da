"""A driver process of a soak: ``python -m tests.soak.driver MASTER``, commands in and lines out.

A command is a line of JSON, ``{"do": "start", "room": "join", "folder": ..., "workers": 2}``; a
room runs as its users run it, with ``start(...)`` and a sink that replaces what it wrote before.

* ``start`` opens the queries of a room on a folder and starts them, ``stop`` stops them;
* ``settle`` waits until everything in the sources has been processed and committed, then writes
  what users read, ``results``, the sink and the ledger, into ``observed.json``;
* ``flush`` ends the stream, and then writes the same.

Each is answered by a line: its name, or ``failed`` with a sentence. Queries announce micro-batches
in between, and wait at the gate of the folder (:mod:`tests.harness.announcements`).
"""

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

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_impl.runtime.accounts import ledger
from spark_impl.runtime.failures import sentence_of
from spark_impl.runtime.session import _remove_worker_files, session
from spark_impl.runtime.storage import InputProblem
from tests.harness.announcements import place_gate, say
from tests.soak.rooms import Opened, open_room

INTERVAL = "50 milliseconds"
PATIENCE_S = 90.0
"""Longest wait for an answer; then the driver counts as stalled."""
ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join(sys.path),
    # These processes are too short-lived for a second compiler or parallel collectors.
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="processes are found in /proc"
)
PYTHON, JAVA, EXECUTOR, DAEMON, WORKER = "python", "java", "executor", "daemon", "worker"


class Desk:
    """Carries out commands on the queries of one room at a time."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._folder = Path()
        self._opened: Opened | None = None
        self._running: list[StreamingQuery] = []

    def carry_out(self, given: dict[str, Any]) -> str:
        """Carry out a command; return the line that answers it."""
        does = {"start": self._start, "settle": self._settle, "flush": self._flush}
        try:
            if given["do"] == "stop":
                self._stop()
            else:
                does[given["do"]](given)
        except Exception as error:
            self._stop()
            is_ours = isinstance(error, InputProblem | RuntimeError | ValueError | OSError)
            said = str(error) if is_ours else sentence_of(error)
            return f"failed {type(error).__name__}: " + " ".join(said.split())
        return str(given["do"])

    def _start(self, given: dict[str, Any]) -> None:
        for start in self._open(given).start:
            self._running.append(start(INTERVAL))

    def _open(self, given: dict[str, Any]) -> Opened:
        self._folder = Path(given["folder"])
        place_gate(self._folder / "gate")
        self._opened = open_room(self._spark, given)
        return self._opened

    def _settle(self, given: dict[str, Any]) -> None:
        for query in self._running:
            query.processAllAvailable()
        self._observe()

    def _flush(self, given: dict[str, Any]) -> None:
        self._stop()
        self._open(given).flush()
        self._observe()

    def _observe(self) -> None:
        assert self._opened is not None
        scratch, found = self._folder / "observed.scratch", ledger(self._folder / "disk" / "store")
        observed = {**self._opened.observe(), "ledger": [found.accounted, found.read]}
        scratch.write_text(json.dumps(observed), encoding="utf-8")
        scratch.replace(self._folder / "observed.json")

    def _stop(self) -> None:
        for query in self._running:
            with suppress(Exception):  # it has failed, or Java is gone
                query.stop()
        self._running = []


class Stalled(Exception):  # noqa: N818 (an outcome, not a bug)
    """A driver has not answered in time."""


class Ended(Exception):  # noqa: N818 (an outcome, not a bug)
    """A driver process has ended."""


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
        """Return whether executors are processes of their own."""
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
        kinds = (PYTHON, JAVA, EXECUTOR, DAEMON, WORKER)
        found: dict[str, list[int]] = {each: [] for each in kinds}
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

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes of the driver."""
        for pid in session_processes(self.process.pid):
            with suppress(ProcessLookupError):  # it has ended by itself
                os.kill(pid, number)

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


def main(master: str) -> None:
    """Carry out the commands on standard input until it ends."""
    with session(master) as spark:
        desk = Desk(spark)
        say(f"ready {spark.sparkContext.applicationId}")
        for line in sys.stdin:
            say(desk.carry_out(json.loads(line)))


if __name__ == "__main__":
    main(sys.argv[1])
