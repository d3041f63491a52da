"""One Spark session, set up the way this project needs it and cleaned away afterwards.

Rules of this file:

* Everything stays on the loopback interface unless the master says otherwise.
* Nothing is left behind: every scratch folder lies in one temporary folder, removed at the end,
  after the Java process that writes there has ended, or at the next start if this one is killed.
* What a user can fix is an :class:`EnvironmentProblem` with one sentence.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from spark_impl.runtime.scratch import scratch_folder

DEFAULT_MASTER = "local[2]"
OLDEST_JAVA = 17
SHIPPED = ("model/__init__.py", "model/vocabulary", "spark_impl")
"""What Python workers of the pipelines have to import."""

_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Java compiles once and quickly: the rows of this project are computed on in Python, and what
Java does in a minute of tests or of a small query pays for no better code. It would keep a fifth of
the usual room for such code, which the queries of all rooms fill within minutes."""

_CAUSE = re.compile(
    r'^(?:Caused by: |Exception in thread "[^"]*" )?'
    r"(?:\w+\.)+(\w*(?:Exception|Error)): (\S.*?)\s*$",
    re.MULTILINE,
)
"""An exception as Java prints it: the name of its class, and what it says."""


class EnvironmentProblem(RuntimeError):  # noqa: N818 (a problem of the user, not a bug)
    """Something this machine lacks; the message is one sentence for the user."""


@contextmanager
def session(
    master: str | None = None,
    *,
    long_running: bool = False,
    shipped: Sequence[str] = SHIPPED,
    **options: str,
) -> Iterator[SparkSession]:
    """A session on ``master`` (default ``local[2]``), stopped and cleaned away at the end.

    Java compiles for a quick start; with ``long_running`` for the highest speed after minutes.
    ``shipped`` is what Python workers have to import, relative to the folder of the packages.
    ``options`` are Spark settings with ``__`` for the dots: ``spark__sql__ansi__enabled="false"``.
    Raises :class:`EnvironmentProblem` when Java is missing or too old.
    """
    where = master or DEFAULT_MASTER
    ours = SparkContext._gateway is None
    if ours:
        require_java()
    with scratch_folder() as (scratch, messages):
        try:
            with _environment(scratch, local=where.startswith("local")):
                settings = _settings(where, scratch, "" if long_running else _QUICK_START)
                settings |= {name.replace("__", "."): value for name, value in options.items()}
                interrupts: list[int] = []
                with _noted(interrupts):
                    spark = _start(where, messages, settings)
                application = spark.sparkContext.applicationId
                try:
                    if interrupts:
                        raise KeyboardInterrupt
                    spark.sparkContext.addPyFile(str(_package(scratch, shipped)))
                    yield spark
                finally:
                    _stop(spark)
                    if where.startswith("local-cluster"):
                        _forget_workers(application)
        finally:
            if ours:
                _end_java()


def require_java() -> None:
    """Raise :class:`EnvironmentProblem` unless Java 17 or newer can be started."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else "java"
    try:
        answer = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH"
        msg = f"Java {OLDEST_JAVA} or newer is needed and there is no java {where}"
        raise EnvironmentProblem(msg) from None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', answer.stderr + answer.stdout)
    if found is None:
        msg = f"{program} -version does not say which Java it is"
        raise EnvironmentProblem(msg)
    major = int(found[1])
    if major == 1 and found[2]:  # "1.8" was the old way to write 8
        major = int(found[2])
    if major < OLDEST_JAVA:
        msg = f"Java {OLDEST_JAVA} or newer is needed and {program} is Java {major}"
        raise EnvironmentProblem(msg)


def _start(master: str, messages: BinaryIO, settings: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.master(master).appName("straggler")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _java_messages(messages):
        spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def _java_messages(log: BinaryIO) -> Iterator[None]:
    """Send what Java writes to standard error to a file; shown only if Java does not start.

    What fails later is raised in Python; the same once more as a stack trace would help nobody.
    Java keeps the file open, and with it the lock on the scratch folder, until it ends.
    """
    sys.stderr.flush()
    ours = os.dup(2)
    try:
        os.dup2(log.fileno(), 2)
        yield
    except Exception as error:
        reason = _reason(Path(log.name).read_text(encoding="utf-8", errors="replace"))
        reason = reason or str(error).split("\n", maxsplit=1)[0]
        msg = f"Spark does not start: {reason}"
        raise EnvironmentProblem(msg) from error
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def _reason(log: str) -> str:
    """What the last cause says that Java wrote, else its first line about an error, if any.

    The first exception tells that something was waited for, the last cause why in vain.
    """
    causes = _CAUSE.findall(log)
    if causes:
        name, said = causes[-1]
        return said if name == "SparkException" else f"{name}: {said}"
    lines = [line for line in log.split("\n") if "Exception" in line or "Error" in line]
    return lines[0].strip() if lines else ""


@contextmanager
def _noted(interrupts: list[int]) -> Iterator[None]:
    """Note interrupts instead of raising them: Java, interrupted while it starts, lives for ever.

    Spark's own reaction to an interrupt, a call to Java that may cut into another one, goes too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread only
        return
    before = signal.signal(signal.SIGINT, lambda number, _frame: interrupts.append(number))
    try:
        yield
    except Exception as error:
        if interrupts:  # which the error may come of
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def _settings(master: str, scratch: Path, java: str) -> dict[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": (
            f"-Djava.io.tmpdir={_folder(scratch / 'jvm')} -Dderby.system.home={scratch} {java}"
        ),
        "spark.executor.extraJavaOptions": java,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            "spark.shuffle.compress": "false",  # what is shuffled never leaves this machine
        }
    return settings


def _stop(spark: SparkSession) -> None:
    """Stop a session, also one whose Java process has died: another one may follow."""
    try:
        spark.stop()
    except Exception:
        process = getattr(SparkContext._gateway, "proc", None)
        if process is None or process.poll() is None:
            raise
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None


def _forget_workers(application: str) -> None:
    """Remove what the workers of a local cluster leave, always in a folder of Spark itself."""
    work = Path(_find_spark_home()) / "work"
    shutil.rmtree(work / application, ignore_errors=True)
    with suppress(OSError):  # there are others
        work.rmdir()


def _end_java() -> None:
    """End the Java process: it would outlive its scratch folder and write there once more."""
    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    process = getattr(gateway, "proc", None)  # absent when Java was started by spark-submit
    if process is not None:
        process.stdin.close()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    SparkContext._gateway = None
    SparkContext._jvm = None


@contextmanager
def _environment(scratch: Path, local: bool) -> Iterator[None]:
    """Variables that Spark reads while it starts, put back as they were at the end."""
    # The worker that prepares a stateful operator on the driver knows no addPyFile.
    search = [str(_root()), *filter(None, [os.environ.get("PYTHONPATH")])]
    wanted = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(search),
    }
    if local:
        wanted |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(scratch / "local")}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _package(scratch: Path, shipped: Sequence[str]) -> Path:
    """A zip of the packages that workers import; they need not be installed where workers run."""
    root = _root()
    target = scratch / "straggler_packages.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        for name in shipped:
            path = root / name
            for source in [path] if path.is_file() else sorted(path.rglob("*.py")):
                out.write(source, source.relative_to(root))
    return target


def _root() -> Path:
    """The folder that holds our packages."""
    return Path(__file__).resolve().parent.parent


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
