"""``straggler replay``: run a stored counterexample again."""

import click

from model.checking.claims import Outcome
from model.vocabulary.settings import JsonObject
from straggler.cli import render
from straggler.cli.check import A_JOB, load_job, started_session
from straggler.cli.commands import Command
from straggler.cli.diff import limit_options, limits_of
from straggler.errors import UsageError
from straggler.judging.counterexamples import JOB, Counterexample, read_record
from straggler.judging.judge import MODEL
from straggler.judging.levels import Scope
from straggler.judging.systems import SPARK, local_master, names_of, open_system, troubled
from straggler.judging.trial import Trial, with_hint_of
from straggler.options import PATH, VERBOSE, Arguments, Option
from straggler.rooms import Room, find_room

EXAMPLES = """\
examples:
  straggler replay counterexamples/slack-spark-every-pair-counts-1a2b3c4d.json
  straggler replay counterexample.json --system mypackage.slack:make
  straggler replay counterexample.json --trust
  straggler replay counterexamples/job-jobs-minutes-1a2b3c4d.json --system jobs:minutes

A file may name any module or command, and replay would run it: trust files of your own.
"""


def make_command(summary: str) -> Command:
    """Return the command with the options for file, system and Spark master."""
    system = "system, or MODULE:JOB, to run instead of the stored one"
    parameters = [
        click.Argument(["file"], help="stored counterexample", type=PATH, metavar="FILE"),
        Option("--system", system, metavar="MODULE:FACTORY"),
        Option("--trust", "run the module or command that FILE names", is_flag=True),
        *limit_options(),
        Option("--master", "Spark master (local, slots as needed)", metavar="URL"),
        VERBOSE,
    ]
    return Command(summary, EXAMPLES, parameters, run)


def run(args: Arguments) -> int:
    """Run a counterexample and report whether it still fails."""
    record = read_record(args.file)
    if record["counterexample"] == JOB:
        return run_job(args, record)
    found = Counterexample.of(args.file, record)
    tried = find_room(found.room)
    scope = Scope.of(tried, found.kinds, found.level)
    _refuse_impossible(args.file.name, tried, found)
    name = args.system or found.system
    if name != SPARK:
        _refuse_untrusted(args, name)
    is_troubled = name == SPARK and bool(found.trouble)
    master = args.master or local_master(tried.slots(found.workload), again=is_troubled)
    limits = limits_of(args, name, found.level)
    with render.progress() as progress, open_system(name, master, limits) as system_of:
        progress.add_task(f"running {render.plain(args.file.name)}", total=None)
        system = troubled(found.trouble) if is_troubled else system_of(tried)
        trial = Trial(scope, system, name, found.reference)
        broken = with_hint_of(found.broken, trial.broken(found.workload))
    out = render.console()
    if broken:
        lines = render.with_times(broken, found.workload.time_unit)
        render.print_lines(out, [*lines, "It still fails."])
        return 1
    render.print_lines(out, [f"{args.file.name} does not fail any more."])
    return 0


def run_job(args: Arguments, record: JsonObject) -> int:
    """Run a job on stored rows, and report whether it is wrong still."""
    # Imported here: other counterexamples need no Hypothesis.
    from straggler.jobs.api import replay_job
    from straggler.jobs.counterexamples import read_asked

    name, asked = read_asked(args.file.name, record)
    _refuse_untrusted(args, name)
    with render.progress() as progress:
        task = progress.add_task("reading the job", total=None)
        names_of(args.system or name, A_JOB)
        with started_session(progress, args.master) as spark:
            job = load_job(args.system or name, spark)
            progress.update(task, description=f"running {render.plain(args.file.name)}")
            outcome, lines = replay_job(job, spark, record, **asked)
    ends = {
        Outcome.BROKEN: f"It still fails: {record.get('claim')!r} is broken.",
        Outcome.HOLDS: f"{args.file.name} does not fail any more.",
        Outcome.UNDETERMINED: "Whether it still fails is undetermined.",
    }
    render.print_lines(render.console(), [*lines, ends[outcome]])
    return render.EXIT_CODES[outcome]


def _refuse_untrusted(args: Arguments, name: str) -> None:
    if not (args.system or args.trust):
        raise UsageError(
            f"{args.file.name} names the system {name!r}; replay runs what a file names only with"
            " --trust, and another one with --system"
        )


def _refuse_impossible(file: str, tried: Room, found: Counterexample) -> None:
    """Refuse an edited workload that even the reference cannot run."""
    try:
        tried.refuse(found.workload)
        tried.reference()(found.workload)
        if found.reference != MODEL:
            tried.timed.replay(found.workload)
    except Exception as error:  # no error here comes from the system on trial
        raise UsageError(f"{file} cannot be run: {error}") from error
