"""``straggler`` as tests run it: in this process, or in one of its own as a user runs it.

``python -m tests.straggler.command JOBS ...`` is the command line with a sweep that waits once it
has done some jobs. A test then ends it in time, however fast its runs are.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing import parent_process
from pathlib import Path
from typing import NamedTuple

from sim.sweep import jobs as sweep_jobs
from sim.sweep.jobs import Done as Finished
from sim.sweep.jobs import Job, perform_with_memory_limit
from straggler.cli import main as cli

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


def start(
    folder: Path, *arguments: str, module: str = "straggler.cli", scratch: str = "scratch"
) -> subprocess.Popen[str]:
    """Start ``straggler`` in ``folder``, which also gets its temporary files."""
    (folder / scratch).mkdir(exist_ok=True)
    environment = {"TMPDIR": str(folder / scratch), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@dataclass(slots=True)
class Waiting:
    """A runner of jobs that stops after ``left`` jobs and waits while its parent lives."""

    left: int

    def __call__(self, job: Job) -> Finished:
        if self.left == 0:
            sweep = parent_process()
            assert sweep is not None
            sweep.join()
        self.left -= 1
        return perform_with_memory_limit(job)


def main(jobs: int, arguments: list[str]) -> int:
    """Run a command line whose sweep waits after some jobs."""
    sweep_jobs.run_on_processes = partial(sweep_jobs.run_on_processes, work=Waiting(jobs))
    return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
