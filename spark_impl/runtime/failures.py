"""Turns failures of Spark into one sentence for the user, without a stack trace."""

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # Py4J has no types
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from spark_impl.runtime.storage import Location

_ERROR = re.compile(
    r"^[\s:]*((?:\w+\.)*(?:\w*(?:Error|Problem|Exception|Lost)|(?<=\.)[A-Z]\w*)): (.+)$",
    re.MULTILINE,
)
_LAST_LINE = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)")
"""The line behind a stack trace of Python, which says why."""
_DISK = (
    "No space left on device|Disk quota exceeded|Read-only file system|File too large"
    "|Input/output error|Permission denied"
)
"""Messages of operating systems about a disk that cannot be written."""
_NO_REASON = (
    "Spark gives no reason{}; often one of its processes was killed: run the same query again"
)
"""Message for errors of Java without a text, such as the end of a process that Java reads from."""
_CAUSE = re.compile(r"^(?:Caused by: )?(?:\w+\.)+([A-Z]\w*)\b", re.MULTILINE)
"""The class of an error in a stack trace of Java."""


class QueryProblem(RuntimeError):  # noqa: N818 (a problem of the user, not a bug)
    """A query or a job failed; the message is one sentence that says why."""


def last_error(error: Exception) -> tuple[str, str]:
    """Return name and message of the last error in the text of an exception."""
    found = _ERROR.findall(str(error)) or [(type(error).__name__, _first_line(error))]
    name, said = found[-1]
    return name.rsplit(".", maxsplit=1)[-1], said.strip()


def sentence_of(error: Exception, store: Location | None = None) -> str:
    """Return the message of the last Python error, else the useful part of Java's message.

    ``store`` is the folder that the query writes.
    """
    if not isinstance(error, PySparkException | Py4JJavaError):
        return "the Java process of Spark has ended; run the same query again in a new session"
    name, said = last_error(error)
    if not (name.endswith("Exception") or said.startswith("[Errno")):
        return said
    full = re.search(_DISK, str(error))
    if full:
        return f"Spark cannot write to {store or 'its checkpoint'} or its scratch folder: {full[0]}"
    if isinstance(error, Py4JJavaError):  # its text begins with an identifier of Py4J
        return said
    first, reasons = _first_line(error), _LAST_LINE.findall(str(error))
    if first.endswith("Traceback (most recent call last):") and reasons:  # of a sink, perhaps
        return said if said != first else str(reasons[-1])
    said = re.sub(r"^\[STREAM_FAILED\].*?with exception: | SQLSTATE: XXKST$", "", first)
    if said:
        return said
    causes = _CAUSE.findall(getattr(error, "_stackTrace", None) or "")
    return _NO_REASON.format(f" but {causes[-1]}" if causes else "")


def _first_line(error: Exception) -> str:
    return str(error).split("\n", maxsplit=1)[0]


def wait_for(query: StreamingQuery, store: Location | None = None) -> None:
    """Wait until a query has ended; stop it if the user interrupts the wait.

    Raise :class:`QueryProblem` if the query fails.
    """
    failures: list[Exception] = []

    def wait() -> None:
        try:
            query.awaitTermination()
        except Exception as error:  # an error of Spark, or of a lost connection
            failures.append(error)

    # A signal during a call to Java would break the connection that stop() needs.
    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    try:
        waiting.join()
    finally:
        if not failures:
            query.stop()
    if failures:
        raise QueryProblem(sentence_of(failures[0], store)) from failures[0]


@contextmanager
def without_stack_traces() -> Iterator[None]:
    """Keep the bridge to Java from printing errors that are raised anyway."""
    bridge = logging.getLogger("py4j")
    before = bridge.level
    bridge.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        bridge.setLevel(before)
