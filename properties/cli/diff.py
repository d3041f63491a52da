"""``straggler diff``: compare the Spark pipeline, or your implementation, with the reference."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import click
from rich.progress import Progress

from model.checking.claims import Outcome, worst
from model.vocabulary import System
from model.vocabulary.settings import nearest
from model.vocabulary.trace import kind_of
from properties.cli import render
from properties.cli.columns import column_options, columns_of
from properties.cli.commands import Group
from properties.cli.outputs import refuse_unmakable, refuse_unwritable, write_json
from properties.cli.room_commands import room_group
from properties.errors import UsageError
from properties.judging import counterexamples
from properties.judging.judge import Judgement, judge
from properties.judging.references import BOTH, REFERENCES, run_reference
from properties.judging.systems import SPARK, local_master, open_system
from properties.judging.trial import Trial
from properties.options import LATENESS, PATH, QUERY, Arguments, Option
from properties.rooms import Case, Room, SkippedInput, find_rooms

EXAMPLES = """\
examples:
  straggler diff all
  straggler diff slack --input flights --input umts --json verdict.json
  straggler diff slack --input umts --window 2s --slide 500ms --aggregate avg --per key
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

Chosen = list[tuple[Room, Case | SkippedInput]]


def make_command(summary: str) -> Group:
    """Return a command for each room, and one for all of them."""
    return room_group(summary, EXAMPLES, _options, run, has_all=True)


def _options(rooms: Sequence[Room]) -> Iterator[Option]:
    """Yield the options of a comparison, those of the rooms' queries, and those of files."""
    inputs = "; ".join(dict.fromkeys(room.inputs for room in rooms))
    yield Option("--input", f"{inputs}; may be repeated", multiple=True, metavar="NAME|PATH")
    yield Option("--seed", "seed of simulated inputs (0)", type=int, default=0, metavar="N")
    usual = ", ".join(dict.fromkeys(str(room.batches) for room in rooms))
    batches = f"number of equal micro-batches, at most one per row ({usual})"
    yield Option("--batches", batches, type=int, metavar="N")
    yield Option("--json", "also write the verdicts to FILE", type=PATH, metavar="FILE")
    yield from _comparison_options()
    for room in rooms:
        yield from room.options()
        if room.workers is not None:
            yield LATENESS
            workers = f"number of workers ({room.workers})"
            yield Option("--workers", workers, type=int, metavar="N", section=QUERY)
    yield from column_options()


def _comparison_options() -> Iterator[Option]:
    """Yield the options that choose system, reference and Spark master."""
    yield Option(
        "--reference",
        "compare with a simulated cluster, the untimed model, or both (both)",
        type=click.Choice(REFERENCES),
        default=BOTH,
    )
    system = "implementation to judge instead of the Spark pipeline"
    yield Option("--system", system, default=SPARK, metavar="MODULE:FACTORY")
    kinds = "kinds of steps to compare, if the system does not record all (all)"
    yield Option("--kinds", kinds, metavar="KIND,...")
    yield Option("--master", "Spark master (local, slots as needed)", metavar="URL")
    yield Option(
        "--counterexamples",
        f"folder for counterexamples ({counterexamples.FOLDER})",
        type=PATH,
        default=counterexamples.FOLDER,
        metavar="DIR",
    )


def run(args: Arguments) -> int:
    """Judge every case and return the exit code of the worst outcome."""
    refuse_unwritable("--json", args.json)
    refuse_unmakable("--counterexamples", args.counterexamples)
    if args.seed < 0:
        raise UsageError(f"--seed is {args.seed}; it must be an integer >= 0")
    if args.batches is not None and args.batches < 1:
        raise UsageError(f"--batches is {args.batches}; it must be an integer >= 1")
    chosen_rooms = find_rooms(args.room)
    if args.system != SPARK and len(chosen_rooms) > 1:
        raise UsageError(f"--system {args.system!r} belongs to one room; name it, not {args.room}")
    step_types = {each.name: choose_step_types(each, args.kinds) for each in chosen_rooms}
    columns = columns_of(args)
    with render.progress() as progress:
        reading = progress.add_task("reading inputs", total=None)
        chosen = [(each, case) for each in chosen_rooms for case in each.cases(args, columns)]
        progress.remove_task(reading)
        with open_system(args.system, args.master or _master(chosen)) as system_of:
            judgements, reports = _judge_all(args, chosen, step_types, system_of, progress)
    _print(args, chosen, judgements, reports)
    write_json(args.json, [judgement.to_json() for judgement in judgements])
    return render.EXIT_CODES[worst(judgement.outcome for judgement in judgements)]


def _master(chosen: Chosen) -> str:
    """Return a local master with the slots of the most demanding case."""
    cases = [(each, case) for each, case in chosen if isinstance(case, Case)]
    return local_master(max((each.slots(case.workload) for each, case in cases), default=1))


def choose_step_types(room: Room, kinds: str | None) -> tuple[type, ...]:
    """Return the step classes that ``--kinds`` names, or all of the room."""
    by_kind = {kind_of(word): word for word in room.step_types}
    names = list(by_kind) if kinds is None else kinds.split(",")
    for name in names:
        if name not in by_kind:
            known = ", ".join(by_kind)
            raise UsageError(f"there is no kind {name!r}, only {known}{nearest(name, by_kind)}")
    return tuple(by_kind[name] for name in names)


def _judge_all(
    args: Arguments,
    chosen: Chosen,
    step_types: Mapping[str, tuple[type, ...]],
    system_of: Callable[[Room], System],
    progress: Progress,
) -> tuple[list[Judgement], list[list[str]]]:
    """Return a judgement of every case, and a report on every broken one."""
    judgements: list[Judgement] = []
    reports: list[list[str]] = []
    cases = [(each, case) for each, case in chosen if isinstance(case, Case)]
    task = progress.add_task("", total=len(cases))
    for each, case in cases:
        progress.update(task, description=f"reference of {case.input}: {case.query}")
        expected = run_reference(each, case.workload, args.reference, step_types[each.name])
        progress.update(task, description=f"{case.input}: {case.query}")
        system = system_of(each)
        judgement = judge(each, case, system, step_types[each.name], expected)
        del expected  # a large trace, which should be gone before the next one is made
        judgements.append(judgement)
        if judgement.outcome is Outcome.BROKEN:
            progress.update(task, description="shrinking the counterexample")
            kinds = step_types[each.name]
            trial = Trial(each, system, args.system, kinds, args.reference)
            reports.append(trial.report(case.workload, args.counterexamples))
        progress.advance(task)
    return judgements, reports


def _print(
    args: Arguments,
    chosen: Chosen,
    judgements: list[Judgement],
    reports: list[list[str]],
) -> None:
    out = render.console(args.json)
    render.print_tables(out, judgements)
    lines = render.remarks(judgements)
    lines += [render.describe_skipped(case) for _, case in chosen if isinstance(case, SkippedInput)]
    for report in reports:
        lines += ["", *report]
    name = "the Spark pipeline" if args.system == SPARK else args.system
    render.print_lines(out, [*lines, "", f"{render.summarise(judgements, name)} Seed {args.seed}."])
