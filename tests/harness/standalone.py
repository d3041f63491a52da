"""A standalone cluster of Spark on this machine: a master and workers, each its own process.

Everything listens on the loopback interface and writes into one folder, which is removed. All
processes end with the block, however it ends.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

WORKERS = 2
PATIENCE_S = 60
MEMORY = "2g"
LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1"}
"""Environment with which drivers listen on the loopback interface as well."""
READY = {
    "master.Master": re.compile(r"Starting Spark master at (spark://\S+)"),
    "worker.Worker": re.compile(r"Successfully registered with master (\S+)"),
}
"""Line in the log of a process that is ready, with its address."""


@contextmanager
def standalone_cluster(folder: Path, environment: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield the address of a master that has two workers with one core each.

    ``folder`` takes all of their files. Executors inherit ``environment``. Raise
    :class:`RuntimeError` with the log of a process that does not start.
    """
    with ExitStack() as stack:
        at = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        started = _daemon(folder / "master", "master.Master", at, environment)
        master = stack.enter_context(started)
        for number in range(WORKERS):
            own = folder / f"worker-{number}"
            has = ["--cores", "1", "--memory", MEMORY, "--work-dir", str(own / "work")]
            started = _daemon(own, "worker.Worker", [*at, *has, master], environment)
            stack.enter_context(started)
        yield master


@contextmanager
def _daemon(
    folder: Path, name: str, arguments: Sequence[str], inherited: Mapping[str, str]
) -> Iterator[str]:
    """Run a process of the cluster; yield the address with which it says that it is ready."""
    scratch = folder / "scratch"
    scratch.mkdir(parents=True)
    log = folder / "log"
    command = [str(Path(_find_spark_home()) / "bin/spark-class"), f"org.apache.spark.deploy.{name}"]
    environment = {
        **inherited,
        **LOOPBACK,
        "SPARK_LOCAL_DIRS": str(scratch),
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_DAEMON_JAVA_OPTS": (
            f"-Djava.io.tmpdir={scratch} -XX:-UsePerfData -Dspark.master.rest.enabled=false"
        ),
    }
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, *arguments],
            env=environment,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the test, which ends the process
        )
    try:
        yield wait_until_ready(process, log, READY[name])
    finally:
        _end(process)


def wait_until_ready(process: "subprocess.Popen[bytes]", log: Path, ready: re.Pattern[str]) -> str:
    """Return the address in the line of a log that says that a process is ready.

    Raise :class:`RuntimeError` with the log if the process ends, or after ``PATIENCE_S`` seconds.
    """
    ends_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends_s:
        text = log.read_text(encoding="utf-8", errors="replace")
        if found := ready.search(text):
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.05)
    msg = f"a process of the cluster did not start:\n{text}"
    raise RuntimeError(msg)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and those that it started: the executors of a worker."""
    for number, patience_s in ((signal.SIGTERM, 10), (signal.SIGKILL, PATIENCE_S)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
