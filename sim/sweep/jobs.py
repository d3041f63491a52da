"""Jobs: runs that share their arrivals, done together, here or by processes of this machine.

Rules of this file:

* A failed job does not stop others: its error becomes a sentence.
* Each process has its own pipe. If a process ends for any reason, its job has failed, another
  process takes its place, and nothing else is affected.
* A process ends when the other end of its pipe is gone: nothing outlives the sweep by more than
  one job.
* Ctrl-C reaches every process of a terminal. These processes ignore it, even while they start: the
  sweep ends them.
"""

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import isfinite, isnan
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from numbers import Integral, Real
from typing import NamedTuple, TypeAlias, cast

from sim.sweep.experiment import Experiment
from sim.sweep.measurable import Figures, measurable
from sim.sweep.runs import SweepRun

MEMORY_MAX_BYTES = 4 << 30
"""Memory limit of a process that does jobs."""
TOO_LARGE = f"it takes more than {MEMORY_MAX_BYTES >> 30} GiB of memory"
ENDED = "its process ended, as the system ends one that takes too much memory"

Figure: TypeAlias = float | int | str | None


class Job(NamedTuple):
    """One run, or several runs on the same arrivals; one process does it in one go."""

    experiment: str
    """The first experiment that needs it."""
    room: str
    run: str
    settings: Mapping[str, str]
    """Settings that all its runs share."""
    seed: int
    fan: str
    """The setting in which its runs differ; empty for a single run."""
    values: tuple[str, ...]
    """Value of that setting in each run."""
    addresses: tuple[str, ...]
    """Address of each run."""


class Done(NamedTuple):
    """The result of a job."""

    job: Job
    figures: tuple[Mapping[str, Figure], ...]
    """One mapping per run; empty if the job failed."""
    error: str
    """A sentence without a full stop; empty if the job succeeded."""


Mapper: TypeAlias = Callable[[Sequence[Job]], Iterable[Done]]
"""A function that does jobs somewhere and yields results in any order, each when it is ready."""


def jobs_of(experiment: Experiment, runs: Iterable[SweepRun]) -> Iterator[Job]:
    """Yield the jobs for these runs; a repeated run is done once."""
    wanted = {run.address: run for run in runs}
    fan = experiment.fan
    groups: dict[tuple[object, ...], list[SweepRun]] = {}
    for run in wanted.values():
        common = tuple(sorted(item for item in run.settings.items() if item[0] != fan))
        # Without a factor to fan out over, every run is a group by itself.
        key = (common, run.seed) if fan else (run.address,)
        groups.setdefault(key, []).append(run)
    for group in groups.values():
        settings = dict(group[0].settings)
        settings.pop(fan, None)
        yield Job(
            experiment.name,
            experiment.room,
            experiment.run,
            settings,
            group[0].seed,
            fan,
            tuple([run.settings[fan] for run in group]) if fan else (),
            tuple([run.address for run in group]),
        )


# ---------------------------------------------------------------------------------- one job


def perform_with_memory_limit(job: Job) -> Done:
    """Run a job like :func:`perform`, but first limit the memory of this process for good."""
    # Imported here because Windows has no such module; there nothing is limited.
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        wanted = MEMORY_MAX_BYTES if most == resource.RLIM_INFINITY else min(MEMORY_MAX_BYTES, most)
        resource.setrlimit(resource.RLIMIT_AS, (wanted, most))
    return perform(job)


def perform(job: Job) -> Done:
    """Run a job in this process; every exception becomes a sentence in the result."""
    figures: tuple[Mapping[str, Figure], ...] = ()
    error = ""
    try:
        figures = tuple([dict(_plain(each)) for each in _measured(job)])
    except MemoryError:
        error = TOO_LARGE
    except ValueError as refused:
        error = str(refused)
    except Exception as mistake:
        error = f"{type(mistake).__name__}: {mistake}"
    return Done(job, figures, " ".join(error.split()))


def _measured(job: Job) -> Sequence[Figures]:
    known = measurable(job.room, job.run)
    if not job.fan:
        return [known.measure(job.settings, job.seed)]
    return known.fans[job.fan](job.settings, job.seed, job.values)


def _plain(figures: Figures) -> Iterator[tuple[str, Figure]]:
    """Yield figures as JSON values; a NaN is a figure without observations."""
    for name, figure in figures.items():
        if figure is None or isinstance(figure, str):
            yield name, figure
        elif isinstance(figure, Integral):
            yield name, int(figure)
        elif isinstance(figure, Real) and (isfinite(figure) or isnan(figure)):
            yield name, None if isnan(figure) else float(figure)
        else:
            msg = f"the figure {name} is {figure!r}; it must be a finite number or a text"
            raise ValueError(msg)


# -------------------------------------------------------------------------------- processes


def run_on_processes(
    jobs: Sequence[Job], processes: int, work: Callable[[Job], Done] = perform_with_memory_limit
) -> Iterator[Done]:
    """Run jobs in up to ``processes`` processes; yield each result when it is ready.

    ``work`` runs one job; it must be a function of a module.
    """
    # A fork server would start processes faster, but it listens on a socket in the folder for
    # temporary files, whose path may be too long for a socket.
    context = get_context("spawn")
    waiting = deque(jobs)
    busy: dict[Connection, tuple[SpawnProcess, Job]] = {}
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
                    yield Done(job, (), f"{ENDED} (exit code {process.exitcode})")
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
    """Return the number of cores that this process may use; a container may allow it fewer."""
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
    """Delay interrupts until the end of the block; processes started in it never get any."""
    resource_tracker.ensure_running()  # started within the block, it would unblock interrupts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _give(pipe: Connection, process: SpawnProcess, job: Job) -> tuple[SpawnProcess, Job]:
    with suppress(OSError):  # the process has ended; receiving its result will notice that
        pipe.send(job)
    return process, job


def _received(pipe: Connection, job: Job) -> Done | None:
    """Return the result of a job, or ``None`` from a process that has ended."""
    try:
        done = pipe.recv()
    except (EOFError, OSError):
        return None
    assert isinstance(done, Done)
    assert done.job == job
    return done


def _work(pipe: Connection, work: Callable[[Job], Done]) -> None:
    """Run jobs in a separate process until the pipe is closed."""
    while True:
        try:
            pipe.send(work(pipe.recv()))
        except (EOFError, OSError):
            return
