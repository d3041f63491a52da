"""The sweep: what is left to do is done somewhere, stored, and judged when an experiment is whole.

Rules of this file:

* A run whose figures are stored is not done again.
* A job that fails stops nothing.
* Results of an experiment are told as soon as its last job is done.
* What is known is kept until then: whatever happens to the store meanwhile, nothing of it is lost.
"""

import shlex
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from model.checking.claims import Outcome
from sim.sweep.events import Ended, Event, JobFailed, JobFinished, Judged, Started
from sim.sweep.experiment import Experiment
from sim.sweep.forecast import Forecast, known_times, longest_first
from sim.sweep.judging import findings
from sim.sweep.results import Failed, Results, problems_of, table_of
from sim.sweep.runs import Job, SweepRun, code_of, jobs_of, runs_of
from sim.sweep.store import Store
from sim.sweep.work import Done, Figure, Mapper


@dataclass(slots=True)
class _Task:
    """One experiment, while it is worked on."""

    experiment: Experiment
    runs: tuple[SweepRun, ...]
    open: set[str]
    """Addresses that nothing is known of yet."""
    again: str
    """The line that sweeps it again."""
    figures: dict[str, Mapping[str, Figure]]
    """What is known, by address."""
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
        known = known_times(self.store.folder)
        jobs = longest_first(self._jobs(tasks), known)
        addresses = {run.address for task in tasks for run in task.runs}
        still_open = {address for task in tasks for address in task.open}
        damaged = [] if self.is_fresh else filter(self.store.is_damaged, sorted(still_open))
        yield Started(
            self.effort,
            tuple([task.experiment.name for task in tasks]),
            len(addresses),
            sum(len(task.runs) for task in tasks) - len(addresses),
            len(addresses - still_open),
            tuple(damaged),
            len(jobs),
        )
        outcomes = []
        for event in self._work(tasks, jobs, Forecast(jobs, known)):
            if isinstance(event, Judged):
                outcomes.append(event.results.outcome)
            yield event
        yield Ended(_worst(outcomes), perf_counter() - began_s)

    def _task(self, experiment: Experiment) -> _Task:
        runs = runs_of(experiment, self.effort, self.first_seed)
        addresses = {run.address for run in runs}
        stored = {} if self.is_fresh else {each: self.store.read(each) for each in addresses}
        figures = {each: known for each, known in stored.items() if known is not None}
        name = self.names.get(experiment.name, experiment.name)
        again = f"straggler sweep {shlex.quote(name)} --{self.effort}"
        if self.first_seed:
            again += f" --seed {self.first_seed}"
        return _Task(experiment, runs, addresses - figures.keys(), again, figures)

    def _jobs(self, tasks: Iterable[_Task]) -> Iterator[Job]:
        """A run that two experiments have in common is that of the first one."""
        taken: set[str] = set()
        for task in tasks:
            wanted = task.open - taken
            runs = [run for run in task.runs if run.address in wanted]
            yield from jobs_of(task.experiment, runs)
            taken |= wanted

    def _work(
        self, tasks: Sequence[_Task], jobs: Sequence[Job], forecast: Forecast
    ) -> Iterator[Event]:
        """Do jobs; tell of each, and of every experiment that is whole then."""
        began_s = perf_counter()
        waiting = list(tasks)
        yield from self._whole(waiting)
        for done in self.mapper(jobs) if jobs else ():
            forecast.note(done)
            left_s = forecast.left_s(perf_counter() - began_s)
            if not done.error:
                self.store.keep(done)
            for task in waiting:
                _learn(task, done)
            job = done.job
            if done.error:
                (owner,) = [each for each in waiting if each.experiment.name == job.experiment]
                failed = _failed(owner, job.addresses)
                yield JobFailed(job.experiment, failed, done.seconds, left_s)
            else:
                numbers = (done.seconds, done.peak_mb, left_s)
                yield JobFinished(job.experiment, job.addresses, job.seed, *numbers)
            yield from self._whole(waiting)

    def _whole(self, waiting: list[_Task]) -> Iterator[Judged]:
        """Results of experiments of which nothing is open, which then wait no longer."""
        for task in [each for each in waiting if not each.open]:
            waiting.remove(task)
            results = self._results(task)
            task.figures.clear()
            yield Judged(results)

    def _results(self, task: _Task) -> Results:
        experiment, grid = task.experiment, task.experiment.grids[self.effort]
        found = [
            (run, task.figures[run.address]) for run in task.runs if run.address in task.figures
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


def _learn(task: _Task, done: Done) -> None:
    """What came of a job, as far as an experiment asks for it."""
    if done.error:
        task.failed |= dict.fromkeys(task.open.intersection(done.job.addresses), done.error)
    for address, figures in zip(done.job.addresses, done.figures, strict=not done.error):
        if address in task.open:
            task.figures[address] = figures
    task.open.difference_update(done.job.addresses)


def _failed(task: _Task, addresses: Iterable[str]) -> tuple[Failed, ...]:
    wanted = set(addresses)
    return tuple(
        [
            Failed(run, task.failed[run.address], _again(task, run))
            for run in task.runs
            if run.address in task.failed and run.address in wanted
        ]
    )


def _again(task: _Task, run: SweepRun) -> str:
    """The line that repeats a run: that of one timed run, or the sweep, which does what is left."""
    if task.experiment.run != "sim":
        return task.again
    settings = [f"--set {shlex.quote(f'{key}={text}')}" for key, text in run.settings.items()]
    return " ".join([f"straggler sim {task.experiment.room} --seed {run.seed}", *settings])


def _worst(outcomes: Sequence[Outcome]) -> Outcome:
    for worst in (Outcome.BROKEN, Outcome.UNDETERMINED):
        if worst in outcomes:
            return worst
    return Outcome.HOLDS
