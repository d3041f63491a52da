"""The command line, with a sweep that waits once it has done some jobs: ``waiting_sweep JOBS ...``.

A test then ends the sweep in time, however fast its runs are and whatever else the machine does.
"""

import sys
from dataclasses import dataclass
from functools import partial
from multiprocessing import parent_process

from sim.sweep import jobs as sweep_jobs
from sim.sweep.jobs import Done, Job, perform_with_memory_limit
from straggler.cli import main as cli


@dataclass(slots=True)
class Waiting:
    """A runner of jobs that stops after ``left`` jobs and waits while its parent lives."""

    left: int

    def __call__(self, job: Job) -> Done:
        if self.left == 0:
            sweep = parent_process()
            assert sweep is not None
            sweep.join()
        self.left -= 1
        return perform_with_memory_limit(job)


def main(jobs: int, arguments: list[str]) -> int:
    """Run a command line."""
    sweep_jobs.run_on_processes = partial(sweep_jobs.run_on_processes, work=Waiting(jobs))
    return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
