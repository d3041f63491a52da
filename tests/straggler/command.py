"""``straggler`` as tests run it: in this process, or in one of its own as a user runs it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

PATIENCE_S = 240


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str


Straggler = Callable[..., Done]
INTERRUPTED = Done(130, "", "straggler: interrupted.\n")


def assert_refused(done: Done, *words: str) -> None:
    """Assert exit code 2 and one sentence with these words in it."""
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1, done.err
    assert done.err.startswith("straggler: ")
    for word in words:
        assert word in done.err


def start(folder: Path, *arguments: str, scratch: str = "scratch") -> subprocess.Popen[str]:
    """Start ``straggler`` in ``folder``, which also gets its temporary files."""
    (folder / scratch).mkdir(exist_ok=True)
    environment = {"TMPDIR": str(folder / scratch), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-m", "straggler", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
