"""The scratch folder of a Spark session: gone with it, or when the next session starts.

Rules of this file:

* A folder is in use while anybody holds the lock of the operating system on a file in it: the
  driver, and Java, to which the open file is given. The lock goes with the last of them, however
  they end.
* Whoever starts removes what earlier sessions of the same user on the same host had to leave, and
  nothing else: on a network file system, a lock may be none for other hosts. So the name of a
  folder says of which host it is.
"""

import fcntl
import os
import re
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

FILE = "messages.log"
HALF_MADE_S = 3600
"""An empty folder may become one in use; after so long nobody is about to do that."""


def prefix_of(host: str) -> str:
    """How names of folders of a host begin; what follows has no hyphen, as a host's name may."""
    return f"straggler-spark-{re.sub('[^a-zA-Z0-9.-]', '_', host)}-"


PREFIX = prefix_of(socket.gethostname())


@contextmanager
def scratch_folder() -> Iterator[tuple[Path, BinaryIO]]:
    """A new folder in the temporary folder, removed at the end, and its locked file.

    A process that inherits the file keeps the folder from being removed at other starts.
    """
    remove_forsaken(Path(tempfile.gettempdir()))
    folder, file = _make()
    with file:
        try:
            yield folder, file
        finally:
            _remove(folder)


def remove_forsaken(where: Path) -> None:
    """Remove scratch folders in ``where`` whose session was killed, as far as that is possible."""
    for folder in sorted(where.glob(f"{PREFIX}*")):
        if "-" in folder.name.removeprefix(PREFIX):
            continue  # of another host
        with suppress(OSError):  # in use, of somebody else, or somebody was faster
            _remove_if_forsaken(folder)


def _remove_if_forsaken(folder: Path) -> None:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    try:
        file = (folder / FILE).open("r+b")
    except FileNotFoundError:
        if time.time() - found.st_mtime > HALF_MADE_S:
            folder.rmdir()  # fails unless it is empty
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)


def _make() -> tuple[Path, BinaryIO]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        file = (folder / FILE).open("ab", buffering=0)
        with suppress(OSError):  # without locks nobody can remove it, either
            fcntl.flock(file, fcntl.LOCK_EX)
        if (folder / FILE).exists():
            return folder, file
        file.close()  # another start has removed it before it was locked


def _remove(folder: Path) -> None:
    """Remove a folder, its locked file last: of a removal that is cut short the rest is found."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != FILE:
                path.unlink(missing_ok=True)
        if [path.name for path in folder.iterdir()] in ([], [FILE]):
            shutil.rmtree(folder)
