"""Jobs on processes, processes that end in the middle of a job, and how long the rest takes."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from multiprocessing import active_children
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from sim.sweep.forecast import TIMES, Forecast, kind_of, known_times, longest_first, time_of
from sim.sweep.jobs import (
    ENDED,
    Done,
    Job,
    jobs_of,
    perform,
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


# ----------------------------------------------------------------------------------------- forecast


def jobs_named(name: str = "small", **other: object) -> list[Job]:
    experiment = small(name=name, **other)
    return list(jobs_of(experiment, runs_of(experiment, "quick", 0)))


def done_in(job: Job, seconds: float) -> Done:
    return Done(job, (), "", seconds, 1.0)


def test_times_of_other_seeds_and_versions_are_known_by_kind(tmp_path: Path) -> None:
    first, second, third, *_ = jobs_named()
    assert kind_of(first) == kind_of(second._replace(seed=7, addresses=("of other code",)))
    assert kind_of(first) != kind_of(third)
    lines = [
        json.dumps(time_of(done_in(job, seconds))) for job, seconds in ((first, 3), (third, 2))
    ]
    lines += ["", "[]", "{", '{"kind": "x"}', '{"kind": "y", "seconds": null}', lines[0][:20]]
    lines += [f'{{"kind": "z", "seconds": {seconds}}}' for seconds in ("1e999", "NaN", "9" * 400)]
    lines.append(json.dumps(time_of(done_in(second, 5))))
    (tmp_path / TIMES).write_text("\n".join(lines), encoding="utf-8")
    assert known_times(tmp_path) == {kind_of(first): 5, kind_of(third): 2}
    assert known_times(tmp_path / "nowhere") == {}


def test_the_longest_comes_first_in_its_experiment() -> None:
    mine, others = (
        jobs_named(),
        jobs_named("other", base={"keys": 7, "tuples": 400, "window_tuples": 100}),
    )
    known = {kind_of(mine[2]): 1.0, kind_of(mine[4]): 9.0, kind_of(others[0]): 99.0}
    ordered = longest_first([*mine, *others], known)
    unknown = [job for job in mine if kind_of(job) not in known]
    assert ordered[:8] == [*unknown, *mine[4:6], *mine[2:4]]
    assert {job.experiment for job in ordered[8:]} == {"other"}
    assert longest_first(mine, {}) == mine


def test_the_forecast_uses_known_times() -> None:
    """Eight jobs run two at a time: two take 6 s, as known before, the others 2 s."""
    asked = jobs_named()
    forecast = Forecast(asked, {kind_of(asked[0]): 6.0})
    assert forecast.left_s(1.0) == 0.0
    left = []
    for number, job in enumerate(asked):
        forecast.note(done_in(job, 6.0 if number < 2 else 2.0))
        left.append(forecast.left_s((6.0 * min(2, number + 1) + 2.0 * max(0, number - 1)) / 2))
    assert left[2:] == pytest.approx([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
