"""A job done: its figures, or why there are none."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite, isnan
from numbers import Integral, Real
from time import perf_counter
from typing import NamedTuple, TypeAlias

from sim.sweep.measurable import Figures, measurable
from sim.sweep.runs import Job

MEMORY_MAX_BYTES = 4 << 30
"""What a process that works on jobs may use."""
TOO_LARGE = f"it takes more than {MEMORY_MAX_BYTES >> 30} GiB of memory"

Figure: TypeAlias = float | int | str | None


class Done(NamedTuple):
    """What came of a job."""

    job: Job
    figures: tuple[Mapping[str, Figure], ...]
    """One mapping a run; empty if it failed."""
    error: str
    """A sentence without a full stop; empty if it did not."""
    seconds: float
    peak_mb: float
    """The most memory that the process has used until then."""


Mapper: TypeAlias = Callable[[Sequence[Job]], Iterable[Done]]
"""Does jobs somewhere, and gives what comes of them as it comes, in any order."""


def bounded(job: Job) -> Done:
    """The same as :func:`perform`, in a process that has no other work: it gets less memory."""
    # Imported here: there is no such module on Windows, where nothing is bounded.
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        wanted = MEMORY_MAX_BYTES if most == resource.RLIM_INFINITY else min(MEMORY_MAX_BYTES, most)
        resource.setrlimit(resource.RLIMIT_AS, (wanted, most))
    return perform(job)


def perform(job: Job) -> Done:
    """Do a job here and now. Whatever goes wrong is a sentence: the next job may go well."""
    began_s = perf_counter()
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
    return Done(job, figures, " ".join(error.split()), perf_counter() - began_s, _peak_mb())


def _measured(job: Job) -> Sequence[Figures]:
    known = measurable(job.room, job.run)
    if not job.fan:
        return [known.measure(job.settings, job.seed)]
    if len(job.values) == 1:
        return [known.measure({**job.settings, job.fan: job.values[0]}, job.seed)]
    return known.fans[job.fan](job.settings, job.seed, job.values)


def _plain(figures: Figures) -> Iterator[tuple[str, Figure]]:
    """Figures as JSON has them; not a number is nothing seen."""
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


def _peak_mb() -> float:
    with suppress(ImportError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return 0.0
