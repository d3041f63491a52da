"""The sweep: run the remaining jobs, store their figures, and judge each complete experiment.

Rules of this file:

* A run with stored figures is not done again.
* A failed job does not stop the sweep.
* An experiment is judged when its last job is done.
* Known figures stay in memory until then: damage to the store meanwhile loses none of them.
"""

import shlex
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple, TypeAlias

from model.checking.claims import Outcome, worst
from sim.sweep.experiment import Experiment
from sim.sweep.jobs import Done, Figure, Job, Mapper, jobs_of
from sim.sweep.judging import findings
from sim.sweep.measurable import measurable
from sim.sweep.results import Failed, Results, problems_of, table_of
from sim.sweep.runs import SweepRun, digest_of_sources, runs_of
from sim.sweep.store import Store

# ------------------------------------------------------------------------------------- events


class Started(NamedTuple):
    """The sweep has read everything and has run nothing yet."""

    effort: str
    experiments: tuple[str, ...]
    runs: int
    """Number of different runs."""
    repeated: int
    """Number of further runs if a run that experiments share counts for each of them."""
    stored: int
    """Number of different runs that have stored figures."""
    jobs: int
    """Number of jobs to do."""


class JobFinished(NamedTuple):
    """A job is done and its runs are stored."""

    experiment: str


class JobFailed(NamedTuple):
    """A job failed: its experiment and the failed runs."""

    experiment: str
    failed: tuple[Failed, ...]


class Judged(NamedTuple):
    """All jobs of an experiment are done, and it has been judged."""

    results: Results


class Ended(NamedTuple):
    """All jobs of all experiments are done."""

    outcome: Outcome
    seconds: float


Event: TypeAlias = Started | JobFinished | JobFailed | Judged | Ended
"""Something that happens in a sweep; progress and results are made of events."""


# ----------------------------------------------------------------------------------- the sweep


@dataclass(slots=True)
class _Task:
    """One experiment in progress."""

    experiment: Experiment
    runs: tuple[SweepRun, ...]
    open: set[str]
    """Addresses of runs that are neither done nor failed."""
    again: str
    """The command line that sweeps the experiment again."""
    figures: dict[str, Mapping[str, Figure]]
    """Known figures, by address."""
    failed: dict[str, str] = field(default_factory=dict)
    """Errors of failed runs, by address."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep: experiments, the effort, where figures are stored, and who does the jobs."""

    experiments: Sequence[Experiment]
    effort: str
    store: Store
    mapper: Mapper
    is_fresh: bool = False
    """True to ignore stored figures."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Command-line arguments of experiments whose name is not their argument, by name."""
    seeds: tuple[int, ...] = ()
    """Seeds of every combination, instead of the first ones."""
    options: str = ""
    """Command-line options that changed the experiments, to sweep them again."""

    def events(self) -> Generator[Event]:
        """Sweep, and yield each event when it happens."""
        began_s = perf_counter()
        tasks = [self._task(experiment) for experiment in self.experiments]
        jobs = list(self._jobs(tasks))
        addresses = {run.address for task in tasks for run in task.runs}
        still_open = {address for task in tasks for address in task.open}
        yield Started(
            self.effort,
            tuple([task.experiment.name for task in tasks]),
            len(addresses),
            sum(len(task.runs) for task in tasks) - len(addresses),
            len(addresses - still_open),
            len(jobs),
        )
        outcomes = []
        for event in self._work(tasks, jobs):
            if isinstance(event, Judged):
                outcomes.append(event.results.outcome)
            yield event
        yield Ended(worst(outcomes), perf_counter() - began_s)

    def _task(self, experiment: Experiment) -> _Task:
        runs = runs_of(experiment, self.effort, self.seeds)
        addresses = {run.address for run in runs}
        stored = {} if self.is_fresh else {each: self.store.read(each) for each in addresses}
        figures = {each: known for each, known in stored.items() if known is not None}
        name = self.names.get(experiment.name, experiment.name)
        again = f"straggler sweep {shlex.quote(name)} --{self.effort}"
        if self.seeds:
            again += f" --seeds {','.join(map(str, self.seeds))}"
        again += f" {self.options}" if self.options else ""
        return _Task(experiment, runs, addresses - figures.keys(), again, figures)

    def _jobs(self, tasks: Iterable[_Task]) -> Iterator[Job]:
        """Yield the jobs of all tasks; a shared run belongs to the first experiment with it."""
        taken: set[str] = set()
        for task in tasks:
            wanted = task.open - taken
            runs = [run for run in task.runs if run.address in wanted]
            yield from jobs_of(task.experiment, runs)
            taken |= wanted

    def _work(self, tasks: Sequence[_Task], jobs: Sequence[Job]) -> Iterator[Event]:
        """Run jobs; yield an event for each job, and one for each experiment that is complete."""
        waiting = list(tasks)
        yield from self._judge_complete(waiting)
        for done in self.mapper(jobs) if jobs else ():
            if not done.error:
                self.store.keep(done)
            for task in waiting:
                _learn(task, done)
            job = done.job
            if done.error:
                (owner,) = [each for each in waiting if each.experiment.name == job.experiment]
                failed = _failed(owner, job.addresses)
                yield JobFailed(job.experiment, failed)
            else:
                yield JobFinished(job.experiment)
            yield from self._judge_complete(waiting)

    def _judge_complete(self, waiting: list[_Task]) -> Iterator[Judged]:
        """Yield results of experiments without open runs, and take those off the list."""
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
        seeds = self.seeds or tuple(range(grid.seeds))
        columns = table_of(experiment, self.effort, found)
        return Results(
            experiment,
            self.effort,
            seeds,
            digest_of_sources(experiment.room),
            task.again,
            columns,
            problems_of(experiment, found),
            _failed(task, [run.address for run in task.runs]),
            findings(experiment, self.effort, columns, seeds),
        )


def _learn(task: _Task, done: Done) -> None:
    """Note the result of a job in a task that needs its runs."""
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
    """Return the command that repeats a run: `sim` for a timed run, otherwise the sweep.

    The command has the default of each setting that `sim` would take from an example otherwise.
    """
    experiment = task.experiment
    if experiment.run != "sim":
        return task.again
    room = measurable(experiment.room, experiment.run)
    defaults = {name: room.settings[name] for name in room.example}
    usual = {name: setting.write(setting.default) for name, setting in defaults.items()}
    texts = {**usual, **run.settings}
    settings = [f"--set {shlex.quote(f'{key}={text}')}" for key, text in texts.items()]
    return " ".join([f"straggler sim {experiment.room} --seed {run.seed}", *settings])
