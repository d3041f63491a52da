"""``straggler diff``: compare the Spark pipeline, or your implementation, with the reference."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from threading import Thread
from typing import NamedTuple

import click
from click.core import ParameterSource
from rich.progress import Progress

from model.checking.claims import Outcome, worst
from model.vocabulary import System
from model.vocabulary.durations import write_duration
from straggler.cli import interrupts, render
from straggler.cli.commands import Group, room_group
from straggler.cli.input_options import columns_of, input_options, refuse_numbers, refuse_streams
from straggler.cli.outputs import refuse_unmakable, refuse_unwritable, write_json
from straggler.errors import UsageError, counted
from straggler.judging.counterexamples import FOLDER
from straggler.judging.judge import BOTH, REFERENCES, Judgement, judge, run_reference
from straggler.judging.levels import ANSWERS, LEVELS, STEPS, Scope
from straggler.judging.processes import DEFAULT_LIMITS, PREFIX, Limits
from straggler.judging.systems import SPARK, local_master, open_system
from straggler.judging.trial import Trial
from straggler.options import PATH, VERBOSE, Arguments, Option, duration, size
from straggler.rooms import Case, ReferenceRun, Room, SkippedInput, find_rooms

EXAMPLES = """\
examples:
  straggler diff all
  straggler diff slack --input umts --window 2s --slide 500ms --per key --json verdict.json
  straggler diff slack --input trips.csv --event-time picked_up --value fare --time-unit iso \\
      --window 1h --slide 5min
  straggler diff slack --system mypackage.slack:make
  straggler diff join --input flights --workers 4 --on key --on "key and value within 100"
  straggler diff join --r orders.csv --s trades.csv --window 1min --on "key and value >"
  straggler diff grouping --input tokens --policy all --set instances=4 --set times_us=9,9,9,40
  straggler diff grouping --input hits.csv --key page --value bytes
  straggler diff script --script *.script --input readings.csv --key sensor --lateness 5s
  straggler diff watermark --input trips.csv --time-unit s --key car --window 1min --max-wait 20s

Without --input a room takes its default inputs. A path may be a Parquet or CSV file; without an
arrival column its rows arrive in the order of the file. Room grouping needs no column of times.
"""

COUNTEREXAMPLES = Option(
    "--counterexamples",
    f"folder for counterexamples ({FOLDER})",
    type=PATH,
    default=FOLDER,
    metavar="DIR",
    is_rare=True,
)

Chosen = list[tuple[Room, Case | SkippedInput]]


class Prepared(NamedTuple):
    """A comparison that the system is asked for next."""

    scope: Scope
    case: Case
    expected: ReferenceRun


def make_command(summary: str) -> Group:
    """Return a command for each room, and one for all of them."""
    return room_group(summary, EXAMPLES, _options, run, has_all=True)


def _options(rooms: Sequence[Room]) -> Iterator[Option]:
    """Yield the options of a comparison, those of the rooms' queries, and those of files."""
    yield from input_options(rooms)
    yield Option("--json", "also write the verdicts to FILE", type=PATH, metavar="FILE")
    if len(rooms) > 1:
        quick = "compare one query of each room, on real data"
        yield Option("--quick", quick, "is_quick", is_flag=True)
    yield from _comparison_options()


def _comparison_options() -> Iterator[Option]:
    """Yield the options that choose system, reference and Spark master."""
    yield Option(
        "--reference",
        "compare with the model alone, or with a simulated cluster and the model (both)",
        type=click.Choice(REFERENCES),
        default=BOTH,
    )
    system = "implementation to judge instead of Spark, or exec:COMMAND"
    yield Option("--system", system, default=SPARK, metavar="MODULE:FACTORY")
    yield from limit_options()
    level = "compare answers, or every step (answers of --system)"
    yield Option("--level", level, type=click.Choice(LEVELS), is_rare=True)
    kinds = "kinds of steps to compare, if the system does not record all (all of the level)"
    yield Option("--kinds", kinds, metavar="KIND,...", is_rare=True)
    master = "Spark master (local, slots as needed)"
    yield Option("--master", master, metavar="URL", is_rare=True)
    yield VERBOSE
    yield COUNTEREXAMPLES


def limit_options() -> Iterator[Option]:
    """Yield the options that limit a system that is a command."""
    timeout = f"time of exec:COMMAND for a workload ({write_duration(DEFAULT_LIMITS.timeout_us)})"
    yield Option("--timeout", timeout, "timeout_us", type=duration, is_rare=True)
    memory = "memory of exec:COMMAND (half of the machine's)"
    yield Option("--memory", memory, "memory_bytes", type=size, metavar="SIZE", is_rare=True)


def limits_of(args: Arguments, system: str, level: str) -> Limits:
    """Return the limits of a system; raise :class:`UsageError` unless it is a command."""
    given = {"timeout_us": args.timeout_us, "memory_bytes": args.memory_bytes}
    chosen = {name: value for name, value in given.items() if value is not None}
    for name in chosen:
        option = f"--{name.partition('_')[0]}"
        if not system.startswith(PREFIX):
            raise UsageError(f"{option} is for --system exec:COMMAND, not for {system!r}")
        if chosen[name] <= 0:  # a time: no size is
            told = write_duration(chosen[name])
            raise UsageError(f"{option} is {told}; it must be a duration > 0")
    return Limits(**chosen, whole_steps=level == STEPS)


@dataclass
class Comparisons:
    """The comparisons that were asked for, and what has been judged so far."""

    chosen: Chosen
    unread: list[Room] = field(default_factory=list)
    """Rooms whose inputs are read when their turn comes, so that the first row is there soon."""
    judgements: list[Judgement] = field(default_factory=list)
    reports: list[list[str]] = field(default_factory=list)
    """A report on each broken comparison."""
    preparing: str = ""
    """Work on the next comparison, while the system is asked about this one."""
    is_interrupted: bool = False
    """True if no more were judged, because of Ctrl-C."""

    @property
    def cases(self) -> list[tuple[Room, Case]]:
        """Comparisons that can be judged, without inputs that are skipped."""
        return [(room, case) for room, case in self.chosen if isinstance(case, Case)]

    @property
    def total(self) -> int:
        """Number of comparisons, counting one for each room that is unread."""
        return len(self.cases) + len(self.unread)

    @property
    def note(self) -> str:
        """Sentence on a result that is not complete; empty for a complete one."""
        judged = f"{len(self.judgements)} of {counted(self.total, 'comparison')}"
        return f"Not complete: {judged} judged, then interrupted." if self.is_interrupted else ""


def run(args: Arguments) -> int:
    """Judge every case and return the exit code of the worst outcome."""
    _refuse_options(args)
    rooms = find_rooms(args.room)
    if args.system != SPARK and len(rooms) > 1:
        raise UsageError(f"--system {args.system!r} belongs to one room; name it, not {args.room}")
    level = args.level or (STEPS if args.system == SPARK else ANSWERS)
    scopes = {each.name: Scope.of(each, args.kinds, level) for each in rooms}
    columns = columns_of(args)
    refuse_streams(args, len(rooms))
    with render.progress() as progress:
        task = progress.add_task("reading inputs", total=None)

        def read(room: Room) -> Chosen:
            return [(room, case) for case in room.cases(_arguments(args, room), columns)]

        found = _begin(args, rooms, read)
        limits = limits_of(args, args.system, level)
        prepared = _prepare(args, found, read, scopes)
        first = _later(lambda: next(prepared, None))
        progress.update(task, description=f"starting {render.plain(args.system)}")
        with open_system(args.system, args.master or _master(found), limits) as system_of:
            _judge_all(args, found, prepared, first, system_of, progress)
    found.judgements.sort(key=lambda judgement: judgement.room.position)
    # Not in place: after Ctrl-C the thread of the references may still add an input.
    found.chosen = sorted(found.chosen, key=lambda pair: pair[0].position)
    if found.judgements or not found.is_interrupted:
        _print(args, found)
        _write(args, found)
    if found.is_interrupted:
        raise KeyboardInterrupt
    return render.EXIT_CODES[worst(judgement.outcome for judgement in found.judgements)]


def _begin(args: Arguments, rooms: list[Room], read: Callable[[Room], Chosen]) -> Comparisons:
    """Read the inputs of all rooms; of a quick comparison only those of the quickest room."""
    if getattr(args, "is_quick", False):
        first, *others = sorted(rooms, key=lambda room: room.quick_s)
        return Comparisons(read(first), others)
    return Comparisons([each for room in rooms for each in read(room)])


def _refuse_options(args: Arguments) -> None:
    """Raise :class:`UsageError` for output that cannot be written, or for bad numbers."""
    refuse_unwritable("--json", args.json)
    refuse_unmakable("--counterexamples", args.counterexamples)
    refuse_numbers(args)


def _arguments(args: Arguments, room: Room) -> Arguments:
    """Return the arguments for a room, with its own of the quick comparison if that was chosen."""
    if not getattr(args, "is_quick", False):
        return args
    if args.input:
        raise UsageError(f"--quick chooses the inputs itself, without --input {args.input[0]!r}")
    command = make_command("").load(room.name)
    context = command.make_context(room.name, room.quick.split())
    chosen = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    return Arguments(**{**vars(args), **chosen})


def _master(found: Comparisons) -> str:
    """Return a local master with the slots of the most demanding case, or of an unread room."""
    slots = [room.slots(case.workload) for room, case in found.cases]
    slots += [(room.workers or 0) + 1 for room in found.unread]
    return local_master(max(slots, default=1))


def _prepare(
    args: Arguments,
    found: Comparisons,
    read: Callable[[Room], Chosen],
    scopes: Mapping[str, Scope],
) -> Iterator[Prepared]:
    """Yield every case with its reference, and read those of an unread room when its turn comes."""
    for room, case in _due(found, read):
        found.preparing = f"reference of {case.input}: {case.query}"
        scope = scopes[room.name]
        expected = run_reference(room, case.workload, args.reference, scope.step_types)
        yield Prepared(scope, case, expected)
        del expected  # a large trace, which should be gone before the next one is made


def _due(found: Comparisons, read: Callable[[Room], Chosen]) -> Iterator[tuple[Room, Case]]:
    yield from found.cases
    while found.unread:
        room = found.unread[0]
        found.preparing = f"reading the input of {room.name}"
        chosen = read(room)
        del found.unread[0]
        found.chosen += chosen
        yield from Comparisons(chosen).cases


def _later(compute: Callable[[], Prepared | None]) -> Future[Prepared | None]:
    """Compute in a thread for which the end of the program does not wait."""
    future = Future[Prepared | None]()

    def run() -> None:
        try:
            future.set_result(compute())
        except BaseException as error:  # raised again where the result is asked for
            future.set_exception(error)

    Thread(target=run, name="reference", daemon=True).start()
    return future


def _judge_all(
    args: Arguments,
    found: Comparisons,
    prepared: Iterator[Prepared],
    coming: Future[Prepared | None],
    system_of: Callable[[Room], System],
    progress: Progress,
) -> None:
    """Judge every case, or as many as there are until Ctrl-C.

    The reference of the next case is computed while the system works on this one.
    """
    (task,) = progress.task_ids
    progress.reset(task, total=found.total)
    try:
        while (ready := _await(coming, found, progress)) is not None:
            coming = _later(lambda: next(prepared, None))
            judgement = _judge_one(args, found, ready, system_of(ready.scope.room), progress)
            progress.advance(task)
            if found.total > 1:
                room, case = judgement.room, judgement.case
                row = f"{room.name} {case.input}, {case.query}: {judgement.outcome}"
                count = f"{len(found.judgements)} of {found.total}"
                line = f"{count}: {row} in {judgement.seconds:.1f} s"
                render.print_lines(progress.console, [line])
    except (Exception, KeyboardInterrupt) as error:
        # A library may have turned the interrupt into an error of its own.
        if not isinstance(error, KeyboardInterrupt) and not interrupts.came():
            raise
        found.is_interrupted = True


def _await(
    coming: Future[Prepared | None], found: Comparisons, progress: Progress
) -> Prepared | None:
    """Return the next comparison, and say what it is waiting for."""
    while not coming.done():
        progress.update(progress.task_ids[0], description=found.preparing)
        wait([coming], timeout=0.2)
    return coming.result()


def _judge_one(
    args: Arguments,
    found: Comparisons,
    ready: Prepared,
    system: System,
    progress: Progress,
) -> Judgement:
    """Judge a case and store the judgement, with a report if it is broken."""
    (task,) = progress.task_ids
    scope, case, expected = ready
    progress.update(task, description=f"{case.input}: {case.query}")
    judgement = judge(scope, case, system, expected)
    if interrupts.came():  # the system may have noticed it and given up
        raise KeyboardInterrupt
    found.judgements.append(judgement)
    if judgement.outcome is Outcome.BROKEN:
        progress.update(task, description="shrinking the counterexample")
        trial = Trial(scope, system, args.system, args.reference)
        report = trial.report(case.workload, args.counterexamples)
        report[-1:-1] = _describe_numbers(args, case)
        found.reports.append(render.with_times(report, case.workload.time_unit))
    return judgement


def _describe_numbers(args: Arguments, case: Case) -> list[str]:
    """Return a sentence on the numbers of tuples, if these are where their rows are in files."""
    if args.id is not None or getattr(args, "s_id", None) is not None:
        return []
    places = [f"its {file.unit} in {file.file}" for file in case.set_aside]
    return [f"The number of a tuple is {' or '.join(places)}."] if places else []


# ---------------------------------------------------------------------------------------- output


def _print(args: Arguments, found: Comparisons) -> None:
    out = render.console(args.json)
    judgements = found.judgements
    name = "the Spark pipeline" if args.system == SPARK else args.system
    verdict, *more = render.summarise(judgements, name)
    note = [found.note] if found.note else []
    render.print_lines(out, [f"{verdict} Seed {args.seed}.", *note, *more, ""])
    render.print_tables(out, judgements)
    lines = [*render.remarks(judgements), *render.undecided(judgements)]
    skipped = [case for _, case in found.chosen if isinstance(case, SkippedInput)]
    lines += map(render.describe_skipped, skipped)
    lines += render.bad_rows(case for _, case in found.cases)
    for report in found.reports:
        lines += ["", *report]
    render.print_lines(out, lines)


def _write(args: Arguments, found: Comparisons) -> None:
    """Write the verdicts as JSON; those that are not complete have another form."""
    rows = [
        {**each.to_json(), "files": [file.to_json() for file in each.case.set_aside]}
        for each in found.judgements
    ]
    write_json(args.json, {"incomplete": found.note, "comparisons": rows} if found.note else rows)
