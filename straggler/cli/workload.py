"""``straggler workload``: write the input of a comparison, for systems in any language."""

from collections.abc import Iterator, Sequence

from straggler.cli import render
from straggler.cli.commands import Group, room_group
from straggler.cli.input_options import columns_of, input_options, refuse_numbers, refuse_streams
from straggler.cli.outputs import refuse_unwritable
from straggler.errors import UsageError, counted
from straggler.inputs.protocol import workload_line
from straggler.inputs.text_files import write_output
from straggler.options import PATH, STDIO, Arguments, Option
from straggler.rooms import Case, Room, SkippedInput, find_room

EXAMPLES = """\
examples:
  straggler workload join --r orders.csv --s trades.csv --window 10s --on key --output work.jsonl
  straggler workload slack --input umts --window 2s --control fixed --output work.jsonl
  straggler workload watermark --input trips.csv --time-unit s --key car --output work.jsonl
  straggler workload grouping --input hits.csv --key page --value bytes --output work.jsonl
  straggler workload script --script *.script --input readings.csv --key sensor --output work.jsonl

straggler judge --help-all says what a line of the file means, and what to write.
"""


def make_command(summary: str) -> Group:
    """Return a command for each room."""
    return room_group(summary, EXAMPLES, _options, run)


def _options(rooms: Sequence[Room]) -> Iterator[Option]:
    """Yield the options of the output, of inputs and of the rooms' queries."""
    file = "write a workload in every line of FILE; - is standard output"
    yield Option("--output", file, type=PATH, metavar="FILE")
    yield from input_options(rooms)


def run(args: Arguments) -> int:
    """Write a workload for each case that the options ask for."""
    if args.output is None:
        raise UsageError("--output is missing; it names the file of workloads to write")
    if args.output != STDIO:
        refuse_unwritable("--output", args.output)
    refuse_numbers(args)
    refuse_streams(args, 1)
    room = find_room(args.room)
    with render.progress() as progress:
        progress.add_task("reading inputs", total=None)
        chosen = list(room.cases(args, columns_of(args)))
    cases = [each for each in chosen if isinstance(each, Case)]
    skipped = [render.describe_skipped(each) for each in chosen if isinstance(each, SkippedInput)]
    if not cases:
        raise UsageError(" ".join(skipped).removesuffix("."))
    write_output(args.output, "".join(workload_line(case.workload) for case in cases))
    lines = [
        f"line {number}: {case.workload.name}, {counted(len(case.workload.arrivals), 'arrival')}"
        for number, case in enumerate(cases, start=1)
    ]
    file = "WORKLOAD" if args.output == STDIO else args.output
    lines += [
        *skipped,
        *render.bad_rows(cases),
        f"Judge your answers: straggler judge {file} TRACE",
    ]
    render.print_lines(render.console(args.output), lines)
    return 0
