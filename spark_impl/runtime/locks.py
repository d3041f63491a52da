"""One writer at a time: by a lock of the operating system, or by a lease where there are none.

A lock ends with the process that holds it, however it ends, unless a process that was forked from
it still runs. A lease is a file in the folder ``.lock`` that its holder writes again and again;
whoever wants one writes a file as well and then looks for others. Two that come at once see each
other and may both be refused, but cannot both succeed. A lease that nobody renews is over after
:data:`LEASE_S`; ages are those of the file system's own clock, on S3 in whole seconds. Its holder
therefore gives it up earlier, by the time between two renewals.
"""

import errno
import fcntl
import os
import socket
import threading
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Protocol

from spark_impl.runtime.storage import InputProblem, Location, locate, reason_of, writing

LOCK = ".lock"
PATIENCE_S = 2.0
"""Longest wait for a lock: a query that was stopped or killed needs a moment to release it."""
LEASE_S = 20.0
RENEWED_S = 4.0
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)


class Lock(Protocol):
    """The right to write a folder."""

    folder: Location

    @property
    def is_held(self) -> bool:
        """Whether nobody else can have it; its file is looked up."""

    def release(self) -> None:
        """Give it back."""


def lock(root: Location | Path) -> Lock:
    """Lock a store for writing.

    Raise :class:`InputProblem` if another query is writing, in this process or elsewhere.
    """
    folder = locate(root)
    if not folder.is_local or Path(folder.path, LOCK).is_dir():
        return Lease(folder)
    try:
        return FileLock(folder)
    except OSError as error:
        if error.errno not in _WITHOUT_LOCKS:
            msg = f"{folder} cannot be locked against other queries: {reason_of(error)}"
            raise InputProblem(msg) from error
        with suppress(OSError):  # another query may have made a folder of it just now
            Path(folder.path, LOCK).unlink()
        return Lease(folder)


def require_held(lock: Lock, work: str) -> None:
    """Raise :class:`InputProblem` unless a lock is still held; ask right before publishing."""
    if not lock.is_held:
        msg = (
            f"{lock.folder} is not locked any more by the query that was to write {work}: it has"
            " ended or stood still for too long, or the file of its lock was removed; nothing of"
            f" {work} counts"
        )
        raise InputProblem(msg)


class FileLock:
    """A lock of the operating system."""

    def __init__(self, folder: Location) -> None:
        self.folder = folder
        self._path = Path(folder.path, LOCK)
        self._acquire()
        while not self._is_in_place():  # somebody removed the file before it was locked
            self.release()
            self._acquire()

    def _acquire(self) -> None:
        """Open the file of the lock, and wait until it is locked."""
        folder = self.folder
        with writing(folder):
            self._file: BinaryIO = self._path.open("a+b", buffering=0)
        try:
            _wait_for(folder, self._file)
            with writing(folder):
                self._file.truncate(0)
                self._file.write(_signature().encode())
        except BaseException:
            self.release()
            raise

    @property
    def is_held(self) -> bool:
        """Whether nobody else can have it: others lock the file that has the name now."""
        return not self._file.closed and self._is_in_place()

    def _is_in_place(self) -> bool:
        """Return whether the locked file still has its name."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        except OSError:
            return False

    def release(self) -> None:
        """Unlock the file and close it; do nothing if that has been done."""
        if self._file.closed:
            return
        with self._file, suppress(OSError, ValueError):  # closing must do if unlocking cannot
            # Closing alone would leave the lock with every process forked in the meantime.
            fcntl.flock(self._file, fcntl.LOCK_UN)


def _wait_for(folder: Location, file: BinaryIO) -> None:
    ends_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > ends_s:
                file.seek(0)
                raise _taken(folder, file.read()) from error
            time.sleep(0.01)
        else:
            return


class Lease:
    """A file that is renewed while the store is being written."""

    def __init__(self, folder: Location) -> None:
        self.folder = folder
        self._file = folder / LOCK / uuid.uuid4().hex
        self._renewed_s = 0.0
        self._over = threading.Event()
        self._writing = threading.Lock()
        try:
            self._acquire()
        except BaseException:
            self._file.remove()
            raise
        threading.Thread(target=self._renew, daemon=True).start()

    @property
    def is_held(self) -> bool:
        """Whether nobody else can have it: it is fresh, and its file is there."""
        if not self._is_fresh():
            return False
        with self._writing:
            return self._is_fresh() and self._file.exists()

    def _is_fresh(self) -> bool:
        """Return whether others cannot take the lease for over, by this process's clock."""
        age_s = time.monotonic() - self._renewed_s
        return not self._over.is_set() and age_s < LEASE_S - RENEWED_S

    def release(self) -> None:
        """Stop renewing the file and remove it."""
        self._over.set()
        with self._writing, suppress(InputProblem):  # it ends by itself
            self._file.remove()

    def _acquire(self) -> None:
        """Wait until every other lease is over; refuse if one is renewed meanwhile."""
        first_seen: dict[str, tuple[int, float]] = {}
        while True:
            self._renewed_s = looked_s = self._write()
            others = {each.path: each.mtime_ns for each in self._file.parent.entries("[^.].*")}
            now_ns = others.pop(self._file.path, None)
            if now_ns is None:  # this process was stopped, and somebody took its lease for over
                continue
            seen_s = time.monotonic()
            for path, at_ns in others.items():
                first_seen.setdefault(path, (at_ns, seen_s))
            # If the clock was put back, a file may come from the future: being still counts, too.
            alive = {
                path: at_ns
                for path, at_ns in others.items()
                if now_ns - at_ns < LEASE_S * 1e9
                and (at_ns != first_seen[path][0] or looked_s - first_seen[path][1] < LEASE_S)
            }
            for path in others.keys() - alive.keys():
                Location(path, self.folder.system).remove()
            if not alive:
                return
            for path, at_ns in alive.items():
                if first_seen[path][0] != at_ns:
                    with suppress(FileNotFoundError):  # given back just now
                        raise _taken(self.folder, _read(Location(path, self.folder.system)))
            time.sleep(RENEWED_S / 4)

    def _write(self) -> float:
        """Write the file; return when that began, because for others its age may begin then."""
        begun_s = time.monotonic()
        self._file.write_bytes(_signature().encode())
        return begun_s

    def _renew(self) -> None:
        while not self._over.wait(RENEWED_S):
            with suppress(InputProblem):  # the lease ends if this goes on
                if not self._renew_once():
                    break
        self._over.set()

    def _renew_once(self) -> bool:
        """Write the file again; return whether the lease is still held."""
        with self._writing:
            # Either this process was stopped for too long, or the whole machine with its clock.
            if not self._is_fresh() or not self._file.exists():
                return False
            begun_s = self._write()
            if not self._is_fresh():  # it took too long: somebody may have seen the lease end
                return False
            self._renewed_s = begun_s
            return True


def _read(lease: Location) -> bytes:
    """Return who holds a lease; nothing if the file cannot be read while it is being renewed."""
    try:
        return lease.read_bytes()
    except FileNotFoundError:
        raise
    except OSError:
        return b""


def _signature() -> str:
    now = datetime.now(UTC).isoformat(" ", "seconds")
    return f"process {os.getpid()} on {socket.gethostname()} since {now}"


def _taken(folder: Location, by: bytes) -> InputProblem:
    holder = by.decode() or "another query"
    msg = f"{folder} is being written by {holder}; it takes one running query at a time"
    return InputProblem(msg)
