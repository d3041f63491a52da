"""What a user is told when Spark fails: one sentence, without any stack trace."""

import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

_ERROR = re.compile(
    r"^[\s:]*((?:\w+\.)*(?:\w*(?:Error|Problem|Exception|Lost)|(?<=\.)[A-Z]\w*)): (.+)$",
    re.MULTILINE,
)
_DISK = (
    "No space left on device|Disk quota exceeded|Read-only file system|File too large"
    "|Input/output error|Permission denied"
)
"""What operating systems say about a disk that takes no more."""


def last_error(error: Exception) -> tuple[str, str]:
    """Name and message of the last error that the text of an exception tells of."""
    found = _ERROR.findall(str(error)) or [(type(error).__name__, _first_line(error))]
    name, said = found[-1]
    return name.rsplit(".", maxsplit=1)[-1], said.strip()


def sentence_of(error: Exception, store: Path | None = None) -> str:
    """What the last Python error in the message says; of Java's what a user can make sense of.

    ``store`` is where the query writes.
    """
    if not isinstance(error, PySparkException | Py4JJavaError):
        return "the Java process of Spark has ended; the same query goes on in a new session"
    name, said = last_error(error)
    if not (name.endswith("Exception") or said.startswith("[Errno")):
        return said
    full = re.search(_DISK, str(error))
    if full:
        return f"Spark cannot write to {store or 'its checkpoint'} or its scratch folder: {full[0]}"
    if isinstance(error, Py4JJavaError):  # begins with a number of Py4J's
        return said
    return re.sub(
        r"^\[STREAM_FAILED\].*?with exception: | SQLSTATE: XXKST$", "", _first_line(error)
    )


def _first_line(error: Exception) -> str:
    return str(error).split("\n", maxsplit=1)[0]


def wait_for(
    query: StreamingQuery, problem: Callable[[str], Exception], store: Path | None = None
) -> None:
    """Wait until a query has ended, and stop it when the user interrupts the wait.

    Raises ``problem`` with a sentence when the query fails.
    """
    failures: list[Exception] = []

    def wait() -> None:
        try:
            query.awaitTermination()
        except Exception as error:  # Spark's, or that of a connection which is no more
            failures.append(error)

    # A signal in the middle of a call to Java would break the connection that stop() needs.
    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    try:
        waiting.join()
    finally:
        if not failures:
            query.stop()
    if failures:
        raise problem(sentence_of(failures[0], store)) from failures[0]


@contextmanager
def without_stack_traces() -> Iterator[None]:
    """Keep the bridge to Java from printing what is raised anyway."""
    bridge = logging.getLogger("py4j")
    before = bridge.level
    bridge.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        bridge.setLevel(before)
