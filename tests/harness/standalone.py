"""A standalone cluster of Spark on this machine: a master and workers, each its own process.

Everything listens on the loopback interface and writes into one folder, which is removed. All
processes end with the block, however it ends.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from pyspark.find_spark_home import _find_spark_home

PATIENCE_S = 60
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

    Each is a process, listens on the loopback interface, and ends with the block. ``folder`` takes
    all of their files. Executors inherit ``environment``. Raise :class:`RuntimeError` with the log
    of a process that does not start.
    """
    with ExitStack() as stack:
        at = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        started = _daemon(folder / "master", "master.Master", at, environment)
        master = stack.enter_context(started)
        for number in range(2):
            own = folder / f"worker-{number}"
            has = ["--cores", "1", "--memory", "2g", "--work-dir", str(own / "work")]
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


# ------------------------------------------------------------------------------ the interpreter


REQUIRED = ("pyspark", "numpy", "pyarrow", "pandas", "protobuf", "scipy", "xxhash")
"""Packages that every machine of a cluster needs."""


def isolate_python(folder: Path, required: Iterable[str] = REQUIRED) -> dict[str, str]:
    """Make an interpreter in ``folder``; return an environment in which Spark starts it.

    The interpreter has the packages that are ``required`` and those that they need, and no others.
    So it lacks whatever an archive lacks, although Straggler is installed here. Spark's scratch
    files stay in ``folder``.
    """
    packages = folder / "packages"
    packages.mkdir(parents=True)
    for source in _entries(_with_dependencies(required)):
        (packages / source.name).symlink_to(source)
    interpreter = folder / "python"
    interpreter.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n', encoding="utf-8")
    interpreter.chmod(0o755)
    theirs = ("PYSPARK_", "PYTHON", "SPARK_")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(theirs)}
    return {
        **kept,
        **LOOPBACK,
        "PYTHONPATH": str(packages),
        "PYSPARK_PYTHON": str(interpreter),
        "PYSPARK_DRIVER_PYTHON": str(interpreter),
        "SPARK_HOME": str(packages / "pyspark"),
        "SPARK_LOCAL_DIRS": str(folder),
        "TMPDIR": str(folder),
        "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={folder} -XX:TieredStopAtLevel=1",
    }


def _with_dependencies(names: Iterable[str]) -> set[str]:
    """Return packages with their direct and indirect dependencies."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            needs = [Requirement(text) for text in distribution(name).requires or ()]
            left += [
                need.name
                for need in needs
                if need.marker is None or need.marker.evaluate({"extra": ""})
            ]
    return found


def _entries(names: Iterable[str]) -> Iterator[Path]:
    """Yield the top-level files and folders of some installed packages."""
    for name in names:
        found = distribution(name)
        for top in sorted({file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}):
            yield Path(str(found.locate_file(top)))
