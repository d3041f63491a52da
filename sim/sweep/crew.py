"""Jobs on processes of this machine.

Rules of this file:

* A process has a pipe of its own. If it ends, by whatever, the job that it had has failed, another
  process takes its place, and nothing else is touched.
* A process whose other end of the pipe is gone ends: nothing outlives the sweep for longer than a
  job.
* Ctrl-C reaches every process of a terminal. These never hear of it, not even while they start:
  the sweep ends them.
"""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import NamedTuple, cast

from sim.sweep.runs import Job
from sim.sweep.work import Done, bounded

ENDED = "its process ended, as one that takes too much memory is ended"


class _Worker(NamedTuple):
    process: SpawnProcess
    job: Job


def on_processes(
    jobs: Sequence[Job], processes: int, work: Callable[[Job], Done] = bounded
) -> Iterator[Done]:
    """Do jobs, so many at a time; what comes of them comes as it comes.

    ``work`` does one of them; it is a function of a module.
    """
    # A server that forks would start them faster, but listens on a socket of the folder for
    # temporary files, whose name may be too long for one.
    context = get_context("spawn")
    waiting = deque(jobs)
    busy: dict[Connection, _Worker] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < processes:
                pipe, process = _start(context, work)
                busy[pipe] = _give(pipe, process, waiting.popleft())
            for ready in wait(list(busy)):
                pipe = cast(Connection, ready)
                process, job = busy.pop(pipe)
                done = _received(pipe, job)
                if done is None:
                    process.join()
                    yield Done(job, (), f"{ENDED} (exit code {process.exitcode})", 0.0, 0.0)
                    continue
                if waiting:
                    busy[pipe] = _give(pipe, process, waiting.popleft())
                else:
                    pipe.close()
                    process.join()
                yield done
    finally:
        for process, _ in busy.values():
            process.terminate()
        for process, _ in busy.values():
            process.join()


def cores() -> int:
    """How many cores this process may use, which in a container is fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start(context: SpawnContext, work: Callable[[Job], Done]) -> tuple[Connection, SpawnProcess]:
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, work), daemon=True)
    with _interrupts_blocked():
        process.start()
    theirs.close()
    return ours, process


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Here they wait until the end of this block; for what is started in it there are none."""
    resource_tracker.ensure_running()  # it would be started in the block, and lift it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _give(pipe: Connection, process: SpawnProcess, job: Job) -> _Worker:
    with suppress(OSError):  # it has ended, which is noticed when it is asked what it did
        pipe.send(job)
    return _Worker(process, job)


def _received(pipe: Connection, job: Job) -> Done | None:
    """``None`` from a process that has ended."""
    try:
        done = pipe.recv()
    except (EOFError, OSError):
        return None
    assert isinstance(done, Done)
    assert done.job == job
    return done


def _work(pipe: Connection, work: Callable[[Job], Done]) -> None:
    """Do jobs until there are no more."""
    while True:
        try:
            pipe.send(work(pipe.recv()))
        except (EOFError, OSError):
            return
