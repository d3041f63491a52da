"""At most one query at a time writes a store: a lock of the operating system on a file in it.

Rules of this file:

* The lock belongs to the driver's process and goes with it, however it ends, unless a process that
  was forked from it is left. The file stays.
* Only those who want to write look at it; nobody who reads ever waits.
"""

import fcntl
import os
import socket
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from spark_impl.runtime.histories import InputProblem, why, writing

FILE = ".lock"
PATIENCE_S = 2.0
"""A query that somebody has just stopped, or killed, needs a moment to let go."""


def hold(store: Path) -> BinaryIO:
    """Keep every other query from writing ``store`` until :func:`let_go` of the returned file.

    Raises :class:`InputProblem` when another one is writing, in this process or elsewhere, and
    when nothing could keep two apart because the file system has no locks.
    """
    with writing(store):
        file = (store / FILE).open("a+b", buffering=0)
    try:
        _wait(file)
        with writing(store):
            file.truncate(0)
            now = datetime.now(UTC).isoformat(" ", "seconds")
            file.write(f"process {os.getpid()} on {socket.gethostname()} since {now}".encode())
    except BaseException:
        let_go(file)
        raise
    return file


def let_go(file: BinaryIO) -> None:
    """Let others write the store, and close the file."""
    with file, suppress(OSError):  # closing must do where unlocking cannot
        # Closing alone would leave the lock with every process that was forked in the meantime.
        fcntl.flock(file, fcntl.LOCK_UN)


def _wait(file: BinaryIO) -> None:
    """Lock a file, or say who keeps it locked."""
    store = Path(file.name).parent
    ends_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > ends_s:
                file.seek(0)
                holder = file.read().decode() or "another query"
                msg = f"{store} is being written by {holder}; it takes one running query at a time"
                raise InputProblem(msg) from error
            time.sleep(0.01)
        except OSError as error:
            msg = f"{store} cannot be locked against other queries: {why(error)}"
            raise InputProblem(msg) from error
        else:
            return
