"""``straggler sweep``: run experiments in parallel; an interrupted sweep resumes."""

import shlex
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import click
from rich.progress import TimeRemainingColumn

from sim.sweep.engine import Ended, JobFailed, JobFinished, Judged, Started, Sweep
from sim.sweep.experiment import EFFORTS, Experiment
from sim.sweep.jobs import cores, run_on_processes
from sim.sweep.measurable import measurable
from sim.sweep.reading import catalogue, change_settings, find, find_file, load
from sim.sweep.results import Results, record_of
from sim.sweep.store import RUNS, Store, WriteFailed, as_json, write_atomically
from straggler.assignments import in_units, parse_settings
from straggler.cli import render
from straggler.cli.commands import Command
from straggler.cli.outputs import refuse_unmakable, refuse_unwritable
from straggler.errors import UsageError
from straggler.options import PATH, Arguments, Option
from straggler.sweeps import output
from straggler.sweeps.files import write_table

EXAMPLES = """\
examples:
  straggler sweep                              the whole catalogue, quick
  straggler sweep grouping-speeds --full       one experiment, in full
  straggler sweep mine.toml --jobs 4           your own experiment, in four processes
  straggler sweep --list                       lists the catalogue
  straggler sweep --show grouping-speeds       shows the file of an experiment
  straggler sweep grouping-speeds --set tuples=9000 --seeds 1,2,3 --out mine

A finished run is stored and never repeated: after an interrupt, or kill -9, the same command
resumes. docs/sweeps.md describes experiment files and results.
"""

SEEDS_MAX = 1_000
FOLDER = Path("sweeps")


def make_command(summary: str) -> Command:
    """Return the command with the options for experiments, effort, place and output."""
    experiments = "experiment of the catalogue, or a file (the whole catalogue)"
    settings = "setting of every run, instead of that of the files; may be repeated"
    parameters = [
        click.Argument(["experiments"], nargs=-1, help=experiments, metavar="[NAME|FILE.toml]..."),
        Option("--quick", "run the part that files call quick (unless --full)", is_flag=True),
        Option("--full", "run the part that files call full", is_flag=True),
        Option("--jobs", "number of processes (one per core)", type=int, metavar="N"),
        Option("--seeds", "seeds instead of those that files ask for", metavar="N,N,..."),
        Option("--set", settings, multiple=True, metavar="KEY=VALUE"),
        Option("--out", f"folder for results ({FOLDER})", type=PATH, default=FOLDER, metavar="DIR"),
        Option("--fresh", "repeat stored runs", is_flag=True),
        Option("--list", "list the catalogue and run nothing", is_flag=True),
        Option("--show", "print the file of an experiment and run nothing", metavar="NAME"),
    ]
    return Command(summary, EXAMPLES, parameters, run)


def run(args: Arguments) -> int:
    """Sweep and return the exit code of the worst outcome."""
    if args.quick and args.full:
        raise UsageError("--full is not allowed with --quick")
    if args.show is not None:
        render.print_lines(render.console(), _text(args.show).splitlines())
        return 0
    effort = EFFORTS[args.full]
    out = render.console()
    settings = parse_settings(args.set, {})
    experiments = _experiments(args.experiments, args.set)
    if args.list:
        lines = [f"{name}: {each.title}" for name, each in experiments.items()]
        render.print_prose(out, lines)
        return 0
    seeds = _seeds(args)
    _refuse_results(args.out, [each.name for each in experiments.values()], effort)
    args.out.mkdir(parents=True, exist_ok=True)
    sweep = Sweep(
        list(experiments.values()),
        effort,
        Store(args.out),
        partial(run_on_processes, processes=args.jobs or cores()),
        args.fresh,
        {each.name: name for name, each in experiments.items()},
        seeds,
        " ".join(f"--set {shlex.quote(f'{key}={text}')}" for key, text in settings.items()),
    )
    try:
        found, end = _swept(sweep)
    except (WriteFailed, UsageError) as error:
        kept = "stored runs are kept, and the same command resumes the sweep"
        raise UsageError(f"{error}; {kept}") from error
    out.print(output.table(found))
    render.print_lines(out, ["", *output.remarks(found)])
    render.print_lines(out, [output.describe_end(found, end, str(args.out))])
    return render.EXIT_CODES[end.outcome]


def _refuse_results(folder: Path, names: Iterable[str], effort: str) -> None:
    """Raise :class:`UsageError` for a folder in which results could not be written."""
    refuse_unmakable("--out", folder)
    refuse_unmakable("--out", folder / RUNS)
    if folder.is_dir():
        results = [f"{name}-{effort}{kind}" for name in names for kind in (".parquet", ".json")]
        for each in results:
            refuse_unwritable("--out", folder / each)


def _seeds(args: Arguments) -> tuple[int, ...]:
    """Return the seeds that are asked for; raise :class:`UsageError` for an impossible number."""
    if args.jobs is not None and args.jobs < 1:
        raise UsageError(f"--jobs {args.jobs}: it must be at least 1")
    if args.seeds is None:
        return ()
    words = args.seeds.split(",")
    seeds = tuple([int(word) for word in words if word.isascii() and word.isdecimal()])
    if len(set(seeds)) < len(words) or len(seeds) > SEEDS_MAX:
        allowed = f"up to {SEEDS_MAX:,} different integers >= 0 with commas between"
        raise UsageError(f"--seeds is {args.seeds!r}; it must be {allowed}")
    return seeds


def _text(name: str) -> str:
    """Return the file of an experiment; raise :class:`UsageError` if there is none."""
    try:
        load(find_file(name))
        return find_file(name).read_text(encoding="utf-8")
    except ValueError as error:
        raise UsageError(f"--show: {error}") from error


def _experiments(asked: Sequence[str], texts: Sequence[str]) -> dict[str, Experiment]:
    """Return the experiments of the given names, or the whole catalogue, by name.

    ``texts`` are settings of all of their runs, as KEY=VALUE.
    """
    try:
        found = {name: find(name) for name in asked or catalogue()}
    except ValueError as error:
        raise UsageError(str(error)) from error
    try:
        for name, each in found.items():
            known = measurable(each.room, each.run).settings
            found[name] = change_settings(each, parse_settings(texts, known))
    except ValueError as error:
        raise UsageError(f"--set: {in_units(str(error), texts)}") from error
    names = [experiment.name for experiment in found.values()]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two experiments are called {name!r}; their results would be mixed")
    return found


def _swept(sweep: Sweep) -> tuple[list[Results], Ended]:
    """Sweep and write what is judged at once; return the results and the last event."""
    found: list[Results] = []
    with render.progress(TimeRemainingColumn()) as progress, closing(sweep.events()) as events:
        task = progress.add_task("group of runs")
        for event in events:
            match event:
                case Started():
                    render.print_lines(progress.console, [output.describe_start(event)])
                    progress.update(task, total=event.jobs)
                case JobFinished() | JobFailed():
                    progress.update(
                        task, description=f"group of runs, {event.experiment}", advance=1
                    )
                    if isinstance(event, JobFailed):
                        failures = output.describe_failures(event.failed)
                        render.print_lines(progress.console, failures)
                case Judged():
                    found.append(event.results)
                    write(event.results, sweep.store.folder)
                case Ended():
                    asked = [experiment.name for experiment in sweep.experiments]
                    return sorted(found, key=lambda each: asked.index(each.experiment.name)), event
    raise AssertionError("a sweep ends with the event that says so")


def write(results: Results, folder: Path) -> None:
    """Write the table and the record of an experiment. Raise :class:`WriteFailed` on failure."""
    stem = f"{results.experiment.name}-{results.effort}"
    write_table(folder / f"{stem}.parquet", results.columns, results.experiment)
    write_atomically(folder / f"{stem}.json", as_json(record_of(results)))
