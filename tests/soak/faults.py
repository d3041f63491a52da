"""Faults of a soak, and the moments at which they strike.

Rules of this file:

* A plan is drawn from the seed and the number of the fault alone. When it strikes is up to the
  machine; moments that a gate holds are exact, others are drawn within a span.
* A fault ends by itself or is undone: a disk has space again, a process goes on.
"""

import ctypes
import os
import re
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.soak.driver import DAEMON, EXECUTOR, JAVA, PYTHON, WORKER, DriverProcess
from tests.soak.tampering import COPIED, DELETED, FOREIGN, REWRITTEN, ROLLED_BACK

IDLE = "between micro-batches"
STARTING = "in a start"
IN_BATCH = "in a micro-batch"
BEFORE_SINK = "before the sink"
AFTER_SINK = "between sink and commit"
CORRECTING = "in a correction"
RESIZING = "in a resize"
FLUSHING = "in a flush"
ANYTIME = "at any time"
MOMENTS = (
    STARTING,
    IDLE,
    IN_BATCH,
    CORRECTING,
    RESIZING,
    BEFORE_SINK,
    AFTER_SINK,
    FLUSHING,
    ANYTIME,
)
GATES = {
    IN_BATCH: "begin",
    BEFORE_SINK: "before the sink",
    AFTER_SINK: "after the sink",
    CORRECTING: "correcting",
    RESIZING: "resizing",
}
"""The announcement at which a driver waits, by moment."""
WITHIN_S = {STARTING: 1.5, IN_BATCH: 0.6, RESIZING: 0.6, FLUSHING: 2.0, ANYTIME: 1.5}
"""Longest time from the announcement to the fault; other faults strike while the driver waits."""

DRIVER_KILLED = "driver killed"
WORKER_KILLED = "Python worker killed"
EXECUTOR_KILLED = "executor killed"
DISK_FULL = "disk full"
CONNECTION_CUT = "connection cut"
SUSPENDED = "process suspended"
COMMIT_LOST = "commit lost"
SECOND_DRIVER = "second driver"
SUPERSEDED = "driver superseded"
REDELIVERED = "files redelivered"
CLOCK_JUMPED = "clock jumped"
KINDS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    DRIVER_KILLED: (3, MOMENTS),
    EXECUTOR_KILLED: (6, (STARTING, IN_BATCH, RESIZING, FLUSHING, ANYTIME)),
    WORKER_KILLED: (6, (STARTING, IN_BATCH, CORRECTING, RESIZING, FLUSHING, ANYTIME)),
    DISK_FULL: (4, tuple(each for each in MOMENTS if each != IDLE)),
    CONNECTION_CUT: (4, (IN_BATCH, RESIZING, ANYTIME)),
    SUSPENDED: (2, (IN_BATCH, RESIZING, ANYTIME)),
    COMMIT_LOST: (5, (IDLE, AFTER_SINK)),
    SECOND_DRIVER: (4, (IDLE, IN_BATCH, AFTER_SINK)),
    SUPERSEDED: (4, tuple(each for each in MOMENTS if each not in (IDLE, FLUSHING))),
    **dict.fromkeys((DELETED, ROLLED_BACK, COPIED, FOREIGN, REWRITTEN), (2, (IDLE,))),
    REDELIVERED: (4, (IDLE, IN_BATCH, ANYTIME)),
    CLOCK_JUMPED: (4, (IDLE, IN_BATCH, ANYTIME)),
}
"""Share and moments of every kind of fault."""
ONLY = {CORRECTING: ("slack", "watermark"), RESIZING: ("join", "join-load")}
"""Moments that only some rooms have."""
WITHOUT_HISTORY = "grouping"
"""The room that reads no history."""


REFUSED = (
    "another query has written it",
    "is there already",
    "was continued elsewhere",
    " expects ",
    "another query runs on it",
    "oncurrent",
)
"""Words of the refusal of a second driver."""

MOUNT = "mount"
"""The command that mounts a file system."""


class Plan(NamedTuple):
    """A fault that is going to happen."""

    number: int
    room: str
    kind: str
    moment: str


def draw_plan(
    number: int, room: str, random: Random, *, has_executors: bool, is_last: bool
) -> Plan:
    """Draw a fault; the last one of a life strikes in its flush, if its kind can."""
    kinds = {
        kind: share
        for kind, (share, moments) in KINDS.items()
        if (has_executors or kind != EXECUTOR_KILLED)
        and (not is_last or FLUSHING in moments)
        and not (room == WITHOUT_HISTORY and kind in (FOREIGN, REWRITTEN))
    }
    kind = random.choices([*kinds], [*kinds.values()])[0]
    moments = [
        each
        for each in KINDS[kind][1]
        if room in ONLY.get(each, (room,)) and (each == FLUSHING) == is_last
    ]
    return Plan(number, room, kind, random.choice(moments))


def kill_driver(driver: DriverProcess, random: Random) -> str:
    """Kill all processes of a driver at once, or Java alone, or Python alone."""
    found = driver.processes()
    victim = random.choice(("everything", JAVA, PYTHON))
    if victim == "everything":
        # The leader first: it would notice the end of Java, and exit by itself.
        driver.kill(*found[PYTHON], *(pid for pids in found.values() for pid in pids))
    else:
        driver.kill(*found[victim])
    return victim


def kill_one(kinds: Sequence[str]) -> Callable[[DriverProcess, Random], str]:
    """Return a fault that kills one process of some kinds."""

    def strike(driver: DriverProcess, random: Random) -> str:
        found = driver.processes()
        pids = sorted(pid for kind in kinds for pid in found[kind])
        if not pids:
            return ""
        chosen = random.choice(pids)
        driver.kill(chosen)
        return next(kind for kind in kinds if chosen in found[kind])

    return strike


def cut_connection(driver: DriverProcess, random: Random) -> str:
    """Shut down a connection of a Python worker in both directions, as a network would."""
    sockets = [
        (pid, number) for pid in sorted(driver.processes()[WORKER]) for number in _connections(pid)
    ]
    random.shuffle(sockets)
    for pid, number in sockets:
        with suppress(OSError), _borrow(pid, number) as found:
            found.shutdown(socket.SHUT_RDWR)
            return "connection of a worker"
    return ""


def _connections(pid: int) -> Iterator[int]:
    """Yield the descriptors of a process that are established TCP connections."""
    established = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "01":
                    established.add(fields[9])
    with suppress(OSError):
        for entry in sorted(Path(f"/proc/{pid}/fd").iterdir(), key=lambda each: int(each.name)):
            with suppress(OSError):
                inode = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(entry))
                if inode and inode[1] in established:
                    yield int(entry.name)


def _borrow(pid: int, number: int) -> socket.socket:
    """Return a duplicate of a socket of another process (Linux 5.6 or newer)."""
    pidfd_getfd = 438
    process = os.pidfd_open(pid)
    try:
        copy = ctypes.CDLL(None, use_errno=True).syscall(pidfd_getfd, process, number, 0)
    finally:
        os.close(process)
    if copy < 0:
        raise OSError(ctypes.get_errno(), "the socket cannot be borrowed")
    return socket.socket(fileno=copy)


def suspend(driver: DriverProcess, random: Random) -> str:
    """Suspend a process for a while: a worker, an executor, Java or the Python driver."""
    found = driver.processes()
    kind = random.choice([each for each in (WORKER, WORKER, EXECUTOR, JAVA, PYTHON) if found[each]])
    pid = random.choice(sorted(found[kind]))
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(random.uniform(0.5, 12.0) if kind == WORKER else random.uniform(0.5, 3.0))
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    return kind


class Disk:
    """The disk of a life: a file system of its own where root may mount one.

    Elsewhere a full disk is a limit on the size of the files of all processes, which Linux applies
    to running processes.
    """

    SIZE = 192 << 20

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        size = f"size={self.SIZE}"
        mount = [MOUNT, "-t", "tmpfs", "-o", size, "straggler-soak", str(folder)]
        try:
            done = subprocess.run(mount, check=False, capture_output=True)
            self.is_mounted = done.returncode == 0
        except OSError:
            self.is_mounted = False

    def fill(self, driver: DriverProcess) -> str:
        """Leave no space on the disk."""
        if not self.is_mounted:
            _limit_files(driver, 0)
            return "limit on the size of files"
        with suppress(OSError), (self.folder / ".filler").open("wb", buffering=0) as file:
            while file.write(bytes(1 << 20)):
                pass
        return "no space"

    def free(self, driver: DriverProcess) -> None:
        """Make space again."""
        if self.is_mounted:
            (self.folder / ".filler").unlink(missing_ok=True)
        else:
            _limit_files(driver, resource.RLIM_INFINITY)

    def remove(self) -> None:
        """Unmount the disk."""
        if self.is_mounted:
            subprocess.run(["umount", "-l", str(self.folder)], check=True, capture_output=True)


def _limit_files(driver: DriverProcess, size: int) -> None:
    for pids in driver.processes().values():
        for pid in pids:
            with suppress(OSError):
                _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, most))


def lose_commit(disk: Path, random: Random) -> str:
    """Remove the last commit of one of Spark's checkpoints, as a crash of the machine may do."""
    # A checkpoint of Spark's has both logs; stores of ours have commits of their own.
    found = (each.parent / "commits" for each in sorted(disk.rglob("offsets")))
    logs = [each for each in found if _find_last(each) is not None]
    if not logs:
        return ""
    log = random.choice(logs)
    last = _find_last(log)
    assert last is not None
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    return f"{log.parent.name} {last.name}"


def _find_last(log: Path) -> Path | None:
    """Return the last file of a log of Spark's."""
    files = [each for each in log.glob("[0-9]*") if each.name.isdigit()]
    return max(files, key=lambda file: int(file.name), default=None)


STRIKES: Mapping[str, Callable[[DriverProcess, Random], str]] = {
    DRIVER_KILLED: kill_driver,
    EXECUTOR_KILLED: kill_one([EXECUTOR]),
    WORKER_KILLED: kill_one([WORKER, WORKER, WORKER, DAEMON]),
    CONNECTION_CUT: cut_connection,
    SUSPENDED: suspend,
}
"""Faults that strike processes of a driver; each returns what it struck, if anything."""
