"""The sweep: what is left to do is done somewhere, stored, and judged when an experiment is whole.

Rules of this file:

* A run whose figures are stored is not done again.
* A job that fails stops nothing.
* Results of an experiment are told as soon as its last job is done.
"""

import shlex
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from model.claims import Outcome
from sim.sweep.events import Ended, Event, JobFailed, JobFinished, Judged, Started
from sim.sweep.experiment import Experiment
from sim.sweep.judging import findings
from sim.sweep.results import Failed, Results, problems_of, table_of
from sim.sweep.runs import Job, Run, code_of, jobs_of, runs_of
from sim.sweep.store import Store
from sim.sweep.work import Done, Mapper


@dataclass(slots=True)
class _Task:
    """One experiment, while it is worked on."""

    experiment: Experiment
    runs: tuple[Run, ...]
    open: set[str]
    """Addresses that nothing is known of yet."""
    again: str
    """The line that sweeps it again."""
    failed: dict[str, str] = field(default_factory=dict)
    """Sentences, by address."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """What is asked for."""

    experiments: Sequence[Experiment]
    effort: str
    store: Store
    mapper: Mapper
    first_seed: int = 0
    is_fresh: bool = False
    """Stored figures are not good enough."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What to type for an experiment, if it is not its name."""

    def events(self) -> Generator[Event]:
        """Sweep, and tell what happens."""
        began_s = perf_counter()
        tasks = [self._task(experiment) for experiment in self.experiments]
        jobs = list(self._jobs(tasks))
        addresses = {run.address for task in tasks for run in task.runs}
        still_open = {address for task in tasks for address in task.open}
        yield Started(
            self.effort,
            tuple([task.experiment.name for task in tasks]),
            len(addresses),
            len(addresses - still_open),
            len(jobs),
        )
        outcomes = []
        for event in self._work(tasks, jobs):
            if isinstance(event, Judged):
                outcomes.append(event.results.outcome)
            yield event
        yield Ended(_worst(outcomes), perf_counter() - began_s)

    def _task(self, experiment: Experiment) -> _Task:
        runs = runs_of(experiment, self.effort, self.first_seed)
        addresses = {run.address for run in runs}
        if not self.is_fresh:
            addresses = {each for each in addresses if self.store.read(each) is None}
        name = self.names.get(experiment.name, experiment.name)
        again = f"straggler sweep {shlex.quote(name)} --{self.effort}"
        if self.first_seed:
            again += f" --seed {self.first_seed}"
        return _Task(experiment, runs, addresses, again)

    def _jobs(self, tasks: Iterable[_Task]) -> Iterator[Job]:
        """A run that two experiments have in common is that of the first one."""
        taken: set[str] = set()
        for task in tasks:
            wanted = task.open - taken
            runs = [run for run in task.runs if run.address in wanted]
            yield from jobs_of(task.experiment, runs)
            taken |= wanted

    def _work(self, tasks: Sequence[_Task], jobs: Sequence[Job]) -> Iterator[Event]:
        """Do jobs; tell of each, and of every experiment that is whole then."""
        waiting = list(tasks)
        yield from self._whole(waiting)
        for done in self.mapper(jobs) if jobs else ():
            addresses = done.job.addresses
            if done.error:
                for task in tasks:
                    task.failed |= dict.fromkeys(task.open.intersection(addresses), done.error)
                (owner,) = [each for each in tasks if each.experiment.name == done.job.experiment]
                yield JobFailed(done.job.experiment, _failed(owner, addresses), done.seconds)
            else:
                self.store.keep(done)
                yield _finished(done)
            for task in tasks:
                task.open.difference_update(addresses)
            yield from self._whole(waiting)

    def _whole(self, waiting: list[_Task]) -> Iterator[Judged]:
        """Results of experiments of which nothing is open, which then wait no longer."""
        for task in [each for each in waiting if not each.open]:
            waiting.remove(task)
            yield Judged(self._results(task))

    def _results(self, task: _Task) -> Results:
        experiment, grid = task.experiment, task.experiment.grids[self.effort]
        found = [
            (run, figures)
            for run in task.runs
            if run.address not in task.failed
            and (figures := self.store.read(run.address)) is not None
        ]
        seeds = tuple(range(self.first_seed, self.first_seed + grid.seeds))
        columns = table_of(experiment, self.effort, found)
        return Results(
            experiment,
            self.effort,
            seeds,
            code_of(experiment),
            task.again,
            columns,
            problems_of(experiment, found),
            _failed(task, [run.address for run in task.runs]),
            findings(experiment, self.effort, columns, seeds),
        )


def _failed(task: _Task, addresses: Iterable[str]) -> tuple[Failed, ...]:
    wanted = set(addresses)
    return tuple(
        [
            Failed(run, task.failed[run.address], _again(task, run))
            for run in task.runs
            if run.address in task.failed and run.address in wanted
        ]
    )


def _again(task: _Task, run: Run) -> str:
    """The line that repeats a run: that of one timed run, or the sweep, which does what is left."""
    if task.experiment.run != "sim":
        return task.again
    settings = [f"--set {shlex.quote(f'{key}={text}')}" for key, text in run.settings.items()]
    return " ".join([f"straggler sim {task.experiment.room} --seed {run.seed}", *settings])


def _finished(done: Done) -> JobFinished:
    job = done.job
    return JobFinished(job.experiment, job.addresses, job.seed, done.seconds, done.peak_mb)


def _worst(outcomes: Sequence[Outcome]) -> Outcome:
    for worst in (Outcome.BROKEN, Outcome.UNDETERMINED):
        if worst in outcomes:
            return worst
    return Outcome.HOLDS
