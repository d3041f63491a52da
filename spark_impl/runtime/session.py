"""A Spark session with the settings of this project, which removes its files when it ends.

Rules of this file:

* Everything stays on the loopback interface unless the master says otherwise.
* All scratch files lie in one temporary folder. It is removed at the end, after the Java process
  that writes there has ended. A session that is killed leaves it.
* A problem that a user can fix is an :class:`EnvironmentProblem` with one sentence.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from spark_impl.runtime import packages

DEFAULT_MASTER = "local[2]"
OLDEST_JAVA = 17
VERBOSE = "STRAGGLER_VERBOSE"
"""Variable of the environment that lets Spark write its log to the terminal, if it is set."""
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Java compiles once and quickly: rows are processed in Python, so better code does not pay off
within a minute of tests or of a small query. The first option alone would shrink the code cache to
a fifth, which the queries of all rooms fill within minutes."""
_COLLECTOR = "-XX:+UseSerialGC"
"""The collector that starts quickest and needs least processor time for a small heap."""
CLASS_ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
"""Spark's classes as Java keeps them in memory: with this file Java starts in half of the processor
time. :mod:`spark_impl.class_archive` writes it. Java silently ignores the file of another Java or
another Spark."""
_JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
_CAUSE = re.compile(
    r'^(?:Caused by: |Exception in thread "[^"]*" )?'
    r"(?:\w+\.)+(\w*(?:Exception|Error)): (\S.*?)\s*$",
    re.MULTILINE,
)
"""An exception as Java prints it: the name of its class, and its message."""


class EnvironmentProblem(RuntimeError):  # noqa: N818 (a problem of the user, not a bug)
    """A requirement that this machine lacks; the message is one sentence for the user."""


@contextmanager
def session(
    master: str | None = None, *, long_running: bool = False, **options: str
) -> Iterator[SparkSession]:
    """Yield a session; stop it and clean up at the end.

    A session that this process has already is yielded as it is, and stays. Raise
    :class:`EnvironmentProblem` if Java is missing or too old, or if its master is another.

    Args:
        master: address of a cluster, or ``local[N]`` for N cores; None takes ``local[2]``.
        long_running: True to let Java compile for speed after minutes, not for a quick start.
        **options: Spark's, with ``__`` for the dots, such as ``spark__sql__ansi__enabled="false"``.

    Examples:
        >>> with session() as spark:
        ...     spark.range(3).count()
        3
    """
    if running := SparkContext._active_spark_context:
        if master not in (None, running.master):
            msg = f"master is {master!r}, and this process has a session on {running.master!r}"
            raise EnvironmentProblem(msg)
        yield SparkSession.builder.getOrCreate()
        return
    where = master or DEFAULT_MASTER
    if ours := SparkContext._gateway is None:
        require_java()
    with TemporaryDirectory(prefix="straggler-spark-", ignore_cleanup_errors=True) as folder:
        scratch = Path(folder)
        try:
            with _environment(scratch, local=where.startswith("local")):
                given = {name.replace("__", "."): value for name, value in options.items()}
                settings = _settings(where, scratch, long_running=long_running) | given
                interrupts: list[int] = []
                with _collect_interrupts(interrupts):
                    spark = _start(where, scratch / "messages.log", settings)
                application = spark.sparkContext.applicationId
                try:
                    if interrupts:
                        raise KeyboardInterrupt
                    packages.prepare_workers(spark.sparkContext)
                    if where.partition("[")[0] != "local":  # workers need not have our packages
                        (scratch / "straggler.zip").write_bytes(packages.archive())
                        spark.sparkContext.addPyFile(str(scratch / "straggler.zip"))
                    yield spark
                finally:
                    _stop(spark)
                    if where.startswith("local-cluster"):
                        _remove_worker_files(application)
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
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)  # "1.8" is Java 8
    if found is None:
        msg = f"{program} -version does not say which Java it is"
        raise EnvironmentProblem(msg)
    if int(found[1]) < OLDEST_JAVA:
        msg = f"Java {OLDEST_JAVA} or newer is needed and {program} is Java {found[1]}"
        raise EnvironmentProblem(msg)


def _start(master: str, messages: Path, settings: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder.master(master).appName("straggler")
    for name, value in settings.items():
        builder = builder.config(name, value)
    if os.environ.get(VERBOSE):
        return builder.getOrCreate()
    with _java_messages(messages):
        spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def _java_messages(log: Path) -> Iterator[None]:
    """Redirect standard error of Java to a file, which is shown only if Java does not start.

    Later errors are raised in Python, so their stack traces need not be shown again.
    """
    sys.stderr.flush()
    ours = os.dup(2)
    try:
        with log.open("ab", buffering=0) as file:
            os.dup2(file.fileno(), 2)
        yield
    except Exception as error:
        reason = _reason(log.read_text(encoding="utf-8", errors="replace"))
        reason = reason or str(error).split("\n", maxsplit=1)[0]
        msg = f"Spark does not start: {reason}"
        raise EnvironmentProblem(msg) from error
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def _reason(log: str) -> str:
    """Return the last cause in Java's messages, else the first line about an error, if any.

    The first exception only says that something was awaited; the last cause says why it failed.
    """
    if causes := _CAUSE.findall(log):
        name, said = causes[-1]
        return said if name == "SparkException" else f"{name}: {said}"
    lines = (line for line in log.split("\n") if "Exception" in line or "Error" in line)
    return next(lines, "").strip()


@contextmanager
def _collect_interrupts(interrupts: list[int]) -> Iterator[None]:
    """Collect interrupts instead of raising them: Java never ends if its start is interrupted.

    This also replaces Spark's own handler, whose call to Java may interfere with another call.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread only
        return
    before = signal.signal(signal.SIGINT, lambda number, _frame: interrupts.append(number))
    try:
        yield
    except Exception as error:
        if interrupts:  # probably the cause of the error
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def _settings(master: str, scratch: Path, *, long_running: bool) -> dict[str, str]:
    java = "" if long_running else _QUICK_START
    if master.startswith("local") and CLASS_ARCHIVE.is_file():
        java += f' -XX:SharedArchiveFile="{CLASS_ARCHIVE}" -Xlog:cds=off -Xlog:cds+dynamic=off'
    given = " ".join(os.environ.get(name, "") for name in _JAVA_VARIABLES)
    has_collector = re.search(r"-XX:\+Use\w+GC\b", given)  # Java refuses to start with two
    collector = "" if long_running or has_collector else _COLLECTOR
    (scratch / "jvm").mkdir()
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.driver.extraJavaOptions": (
            f"-Djava.io.tmpdir={scratch / 'jvm'} -Dderby.system.home={scratch} {java} {collector}"
        ),
        "spark.executor.extraJavaOptions": java,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.interruptOnCancel": "false",  # interrupted tasks wait in a busy loop
        "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            "spark.shuffle.compress": "false",  # shuffled data never leaves this machine
        }
    else:  # workers of a chain start together: none may wait 3 s for a slot near its rows
        settings["spark.locality.wait"] = "0s"
    return settings


def _stop(spark: SparkSession) -> None:
    """Stop a session, even if its Java process has died, so that another one may follow."""
    try:
        with warnings.catch_warnings():
            # An interrupted call to Java may break the connection. The session ends Java itself.
            warnings.filterwarnings("ignore", "Unable to cleanly shutdown", RuntimeWarning)
            spark.stop()
    except Exception:
        process = getattr(SparkContext._gateway, "proc", None)
        if process is None or process.poll() is None:
            raise
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None


def _remove_worker_files(application: str) -> None:
    """Remove the files that workers of a local cluster leave in Spark's own folder."""
    work = Path(_find_spark_home()) / "work"
    shutil.rmtree(work / application, ignore_errors=True)
    with suppress(OSError):  # not empty: other applications are running
        work.rmdir()


def _end_java() -> None:
    """End the Java process, which would outlive its scratch folder and write there again."""
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


_FIRST_INSTALLED = """\
import sys
archives = [path for path in sys.path if path.endswith("pyspark.zip")]
sys.path[:] = [path for path in sys.path if path not in archives] + archives
"""
"""Spark puts an archive of PySpark before the installed PySpark on the search path. A process
compiles every module that it imports from an archive, which takes each process of a query 0.7 s."""


@contextmanager
def _environment(scratch: Path, local: bool) -> Iterator[None]:
    """Set the variables that Spark reads while it starts; restore them at the end."""
    chosen = None if local else os.environ.get("PYSPARK_PYTHON")
    wanted = {"PYSPARK_PYTHON": chosen or sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if local:
        wanted |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(scratch / "local")}
        startup = scratch / "startup"  # Python runs its module when it starts
        startup.mkdir()
        (startup / "sitecustomize.py").write_text(_FIRST_INSTALLED, encoding="utf-8")
        search = filter(None, [str(startup), os.environ.get("PYTHONPATH")])
        wanted["PYTHONPATH"] = os.pathsep.join(search)
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
