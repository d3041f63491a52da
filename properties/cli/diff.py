"""``straggler diff``: compare the Spark pipeline, or your implementation, with the reference."""

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.progress import Progress

from model.checking.claims import Outcome, worst
from model.vocabulary import System
from model.vocabulary.settings import nearest
from model.vocabulary.trace import kind_of
from properties.cli import render
from properties.cli.columns import add_columns, columns_of
from properties.cli.outputs import refuse_unmakable, refuse_unwritable
from properties.data.durations import duration
from properties.errors import UsageError
from properties.judging import counterexamples
from properties.judging.judge import Judgement, judge
from properties.judging.references import BOTH, REFERENCES, run_reference
from properties.judging.systems import SPARK, local_master, open_system
from properties.judging.trial import Trial
from properties.rooms import Case, Room, SkippedInput, find_rooms

SUMMARY = "compare the Spark pipeline, or your implementation, with the reference, on data"

EXAMPLES = """\
examples:
  straggler diff all
  straggler diff slack --input flights --input umts --json verdict.json
  straggler diff slack --input umts --window 2s --slide 500ms --aggregate avg --per key
  straggler diff slack --input trips.csv --event-time picked_up --value fare --time-unit iso \\
      --window 1h --slide 5min
  straggler diff slack --system mypackage.slack:make
  straggler diff join --input flights --workers 4 --on key --on "key and value within 100"
  straggler diff join --r orders.csv --s trades.csv --event-time at --time-unit ms --value price \\
      --window 1min --lateness 5s --on "key and value >"
  straggler diff grouping --input tokens --policy all --set instances=4 --set times_us=9,9,9,40
  straggler diff grouping --input hits.csv --key page --value bytes
  straggler diff script --script *.script --input readings.csv --key sensor --lateness 5s
  straggler diff watermark --input trips.csv --time-unit s --key car --window 1min --max-wait 20s

Without --input a room takes its default inputs. A path may be a Parquet or CSV file; without an
arrival column its rows arrive in the order of the file. Room grouping needs no column of times.
"""

Chosen = list[tuple[Room, Case | SkippedInput]]
Groups = list[tuple[Sequence[str], argparse._ArgumentGroup]]
"""Groups of options, each with the names of its rooms."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of all rooms, then those of each room."""
    known = find_rooms("all")
    parser.add_argument(
        "room", metavar="ROOM", help=f"{', '.join(room.name for room in known)}, or all"
    )
    parser.add_argument(
        "--input",
        action="append",
        metavar="NAME|PATH",
        help=f"{_by_room(known, lambda room: room.inputs)}; may be repeated",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of simulated inputs (0)")
    parser.add_argument(
        "--batches",
        type=int,
        help="number of equal micro-batches, at most one per row"
        f" ({_by_room(known, lambda room: str(room.batches))})",
    )
    parser.add_argument(
        "--window",
        dest="window_us",
        type=duration,
        metavar="DURATION",
        help="length W of a window, like 5s or 6h; in a join the largest distance in time of a"
        " pair",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the verdicts to FILE")
    _add_comparison(parser)
    add_columns(parser)
    parser.set_defaults(groups=_add_room_options(parser, known))


def _by_room(known: Sequence[Room], text_of: Callable[[Room], str]) -> str:
    """Return the texts of rooms, each with the rooms that have it."""
    rooms_of: dict[str, list[str]] = defaultdict(list)
    for room in known:
        rooms_of[text_of(room)].append(room.name)
    return "; ".join(f"{_join_names(names)}: {text}" for text, names in rooms_of.items())


def _add_room_options(parser: argparse.ArgumentParser, known: Sequence[Room]) -> Groups:
    """Add options that rooms share, then those of single rooms; return the groups."""
    sharing: dict[Callable[[argparse._ArgumentGroup], None], list[Room]] = defaultdict(list)
    for room in known:
        if room.shared_options is not None:
            sharing[room.shared_options].append(room)
    with_workers = [room for room in known if room.workers is not None]
    sharing[partial(_add_worker_options, with_workers)] = with_workers
    for room in known:
        sharing[room.add_options].append(room)
    groups: Groups = []
    for add, rooms in sharing.items():
        names = [room.name for room in rooms]
        group = parser.add_argument_group(f"query of {_join_names(names)}")
        add(group)
        groups.append((names, group))
    return groups


def _add_comparison(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose system, reference and Spark master."""
    parser.add_argument(
        "--reference",
        choices=REFERENCES,
        default=BOTH,
        help="sim: compare with a simulation that replays the input through the stated cluster;"
        " model: compare with the untimed model; both: compare with the simulation, and the"
        " simulation with the model (both)",
    )
    parser.add_argument(
        "--system",
        metavar="MODULE:FACTORY",
        default=SPARK,
        help="implementation to judge instead of the Spark pipeline",
    )
    parser.add_argument(
        "--kinds",
        metavar="KIND,...",
        help="kinds of steps to compare, if the system does not record all (all)",
    )
    parser.add_argument("--master", metavar="URL", help="Spark master (local, slots as needed)")
    parser.add_argument(
        "--counterexamples",
        type=Path,
        metavar="DIR",
        default=counterexamples.FOLDER,
        help="folder for counterexamples (counterexamples)",
    )


def _add_worker_options(rooms: Sequence[Room], group: argparse._ArgumentGroup) -> None:
    """Add the options of rooms that serve streams with workers of their own."""
    group.add_argument(
        "--lateness",
        dest="lateness_us",
        type=duration,
        metavar="DURATION",
        help="how far a tuple may lie behind the latest one of its stream or sensor (by input)",
    )
    group.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help=f"number of workers ({_by_room(rooms, lambda room: str(room.workers))})",
    )


def _join_names(names: Sequence[str]) -> str:
    return f"room{'s' * (len(names) > 1)} {' and '.join(names)}"


def run(args: argparse.Namespace) -> int:
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
    _refuse_others(args, chosen_rooms)
    step_types = {each.name: choose_step_types(each, args.kinds) for each in chosen_rooms}
    columns = columns_of(args)
    with render.progress() as progress:
        reading = progress.add_task("reading inputs", total=None)
        chosen = [(each, case) for each in chosen_rooms for case in each.cases(args, columns)]
        progress.remove_task(reading)
        with open_system(args.system, args.master or _master(chosen)) as system_of:
            judgements, reports = _judge_all(args, chosen, step_types, system_of, progress)
    _print(args, chosen, judgements, reports)
    if args.json is not None:
        rows = [judgement.to_json() for judgement in judgements]
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return render.EXIT_CODES[worst(judgement.outcome for judgement in judgements)]


def _refuse_others(args: argparse.Namespace, chosen: Sequence[Room]) -> None:
    """Raise :class:`UsageError` for an option of a room that is not judged."""
    names_of_chosen = {each.name for each in chosen}
    for names, group in args.groups:
        for action in group._group_actions:
            if names_of_chosen.isdisjoint(names) and getattr(args, action.dest) != action.default:
                flag = action.option_strings[0]
                sentence = f"{flag} is an option of {_join_names(names)}, not of {args.room}"
                raise UsageError(sentence)


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
    args: argparse.Namespace,
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
    args: argparse.Namespace,
    chosen: Chosen,
    judgements: list[Judgement],
    reports: list[list[str]],
) -> None:
    out = render.console()
    render.print_tables(out, judgements)
    lines = render.remarks(judgements)
    lines += [render.describe_skipped(case) for _, case in chosen if isinstance(case, SkippedInput)]
    for report in reports:
        lines += ["", *report]
    name = "the Spark pipeline" if args.system == SPARK else args.system
    render.print_lines(out, [*lines, "", f"{render.summarise(judgements, name)} Seed {args.seed}."])
