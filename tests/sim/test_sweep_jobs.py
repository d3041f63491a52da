"""Jobs on processes: the same figures, and processes that end in the middle of a job."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import active_children
from time import sleep
from typing import Any

import pytest

from sim.sweep.jobs import (
    ENDED,
    TOO_LARGE,
    Done,
    Job,
    jobs_of,
    perform,
    perform_with_memory_limit,
    run_on_processes,
)
from sim.sweep.runs import runs_of
from tests.sim.experiments import small

EARLY = "INTERRUPT_EARLY"
if EARLY in os.environ:  # in a process that has just been started to do jobs
    signal.raise_signal(signal.SIGINT)


def jobs() -> list[Job]:
    return list(jobs_of(small(fan="policy"), runs_of(small(fan="policy"), "quick", 0)))


def without_times(found: Any) -> list[tuple[Any, ...]]:
    return sorted((done.job.addresses, done.figures, done.error) for done in found)


def test_figures_are_those_of_this_process() -> None:
    asked = jobs()
    assert without_times(run_on_processes(asked, 2)) == without_times(map(perform, asked))
    assert not active_children()


def dies_of_seed_1(job: Job) -> Done:
    """Exit at once, or be killed as a process that uses too much memory is."""
    if job.seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return perform(job)


def test_a_process_that_ends_takes_its_job_along_and_no_other() -> None:
    found = list(run_on_processes(jobs(), 2, dies_of_seed_1))
    assert sorted(done.job.seed for done in found) == [0, 0, 1, 1]
    for done in found:
        expected = f"{ENDED} (exit code -9)" if done.job.seed == 1 else ""
        assert (done.error, bool(done.figures)) == (expected, done.job.seed == 0)


def takes_too_much(job: Job) -> Done:
    perform_with_memory_limit(job)
    try:
        bytearray(5 << 30)
    except MemoryError:
        return Done(job, (), TOO_LARGE, 0.0, 0.0)
    return Done(job, (), "", 0.0, 0.0)


def test_memory_is_bounded() -> None:
    (done,) = run_on_processes(jobs()[:1], 1, takes_too_much)
    assert done.error == TOO_LARGE


def interrupted(job: Job) -> Done:
    signal.raise_signal(signal.SIGINT)
    return perform(job)


def test_a_process_hears_of_no_interrupt_and_the_sweep_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(EARLY, "yes")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        found = without_times(run_on_processes(jobs(), 2, interrupted))
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert found == without_times(map(perform, jobs()))


def sleeps(job: Job) -> Done:
    sleep(600 * job.seed)
    return perform(job)


def test_closing_the_iterator_ends_the_processes() -> None:
    found: Iterator[Done] = run_on_processes(jobs(), 2, sleeps)
    with closing(found):  # type: ignore[type-var]  # the iterator is a generator
        assert next(found).job.seed == 0
        assert len(active_children()) == 2
    assert not active_children()
