"""``straggler judge``: judge recorded traces of a system that ran elsewhere, in any language."""

from collections.abc import Iterator
from importlib import import_module
from inspect import getdoc
from textwrap import TextWrapper
from typing import Any

import click

from model.checking.claims import worst
from model.vocabulary import Trace, Workload
from model.vocabulary.settings import defaults_of, settings_of
from model.vocabulary.trace import field_types, kind_of
from straggler.cli import render
from straggler.cli.commands import WIDTH, Command
from straggler.cli.outputs import refuse_unwritable, write_json
from straggler.errors import UsageError
from straggler.inputs.protocol import read_traces, read_workloads
from straggler.inputs.text_files import name_of
from straggler.judging.judge import MODEL, Judgement, judge, run_reference
from straggler.judging.levels import ANSWERS, LEVELS, STEPS, Scope
from straggler.options import PATH, STDIO, Arguments, Option
from straggler.rooms import Case, Room, find_room, find_rooms

HELP = """\
examples:
  straggler workload join --r orders.csv --s trades.csv --window 10s --on key --output work.jsonl
  straggler judge work.jsonl trace.jsonl --kinds match

what to read:
  WORKLOAD has a JSON object in every line: room, config (the query), arrivals, cuts, flush, seed,
  faults, name, version (1). An arrival is an array: seq, source_id, key, event_time_us, value,
  arrival_us, stream. Micro-batch 0 is arrivals[:cuts[0]]; the last one ends where the arrivals end.

what to write:
  TRACE has, for every line of WORKLOAD and in the same order, a header, a line for each step in any
  order, and an end with the number of steps:

    {"trace": 1, "producer": "my engine"}
    {"kind": "match", "query": "key", "r_id": 3, "s_id": 5}
    {"end": 1}

WORKLOAD or TRACE may be -, which is standard input. straggler judge --help-all describes the
config and the steps of every room; docs/protocol.md has the rest.
"""
DETAILS = """
workloads:
  Times are integer microseconds since the epoch. A value is a number, or one of the texts NaN,
  Infinity, -Infinity. Arrivals with the same source_id (and stream) are deliveries of one tuple.
  If flush is true, the stream ends after the last arrival, and everything has to be answered.

traces:
  Fields in brackets may be left out; --level steps compares them, too. A task is 0 if config.tasks
  is 1. If config.keyed is true, answers may have any task, because their key says which it is:
  XXH64(key in UTF-8, seed 42), as a signed integer, modulo config.tasks (never negative). If it is
  false, the key of an answer is "".
  Windows are [start_us, start_us + size_us), and start_us is a multiple of slide_us. After a flush
  a final has all tuples of its window, late ones too (unless config.corrections is false); n is
  their number. A window without a tuple has no answer.
  Queries of room join are pairs of a name and a predicate: ["equi", column, other], ["band",
  column, eps, other] (at most eps apart), ["apart", column, eps, other] (more than eps apart),
  ["between", column, low, high, other] (low <= s.other - r.column <= high), ["ineq", column,
  operator, other], ["where", stream, column, operator, constant], or ["and", predicate, ...].
  Column is one of R. Other is one of S, and left out if it has the same name. r_columns and
  s_columns are their names and kinds; the last field of an arrival has their values. A null meets
  no predicate, nor does NaN.

by room:
"""


_FOLD = TextWrapper(WIDTH - 2, initial_indent=" " * 6, subsequent_indent=" " * 6)


def make_command(summary: str) -> Command:
    """Return the command; --help-all is all that a system in another language needs to know."""
    level = "judge answers alone, or every step (answers)"
    kinds = "kinds of steps to compare, if the system does not record all (all)"
    parameters = [
        click.Argument(["workload"], type=PATH, metavar="WORKLOAD"),
        click.Argument(["trace"], type=PATH, metavar="TRACE"),
        Option("--level", level, type=click.Choice(LEVELS), default=ANSWERS),
        Option("--kinds", kinds, metavar="KIND,..."),
        Option("--json", "also write the verdicts to FILE", type=PATH, metavar="FILE"),
    ]
    rooms = "".join(f"{line}\n" for room in find_rooms("all") for line in _describe(room))
    return Command(summary, HELP, parameters, run, details=DETAILS + rooms)


def _describe(room: Room) -> Iterator[str]:
    """Yield lines on the settings and the steps of a room."""
    yield f"  {room.name}"
    yield "    config"
    known = settings_of(room.config)
    for name in defaults_of(room.config):
        meaning = f": {known[name].help}" if name in known else f" (docs/{room.name}.md)"
        yield f"      {name}{meaning}"
    for word in room.step_types:
        note = "" if word in room.answers else " (--level steps)"
        yield f"    {kind_of(word)}{note}: {(getdoc(word) or '').splitlines()[0]}"
        yield from _FOLD.wrap(", ".join(_fields(word, room)))
        if "reason" in room.answers.get(word, ()):
            yield "      reason: " + ", or ".join(map(repr, _reasons(word, room)))


def _fields(word: Any, room: Room) -> Iterator[str]:
    kept = room.answers.get(word, ())
    for name, declared in field_types(word).items():
        text = f"{name} {declared.expected.split()[-1]}"
        yield f"[{text}]" if kept and name not in kept else text


def _reasons(word: type, room: Room) -> list[str]:
    """Return the reasons of a room, as the modules of its words spell them."""
    names = {
        name: value
        for module in (word.__module__, room.config.__module__)
        for name, value in vars(import_module(module)).items()
        if name.startswith("REASON_")
    }
    return sorted(names.values())


def run(args: Arguments) -> int:
    """Judge a trace for every workload, and return the exit code of the worst outcome."""
    refuse_unwritable("--json", args.json)
    if args.workload == args.trace == STDIO:
        raise UsageError("WORKLOAD and TRACE are both '-'; only one can be standard input")
    file = name_of(args.workload)
    numbered = list(enumerate(read_workloads(args.workload), start=1))
    scopes = [
        Scope.of(_room(f"{file}, line {number}", workload), args.kinds, args.level)
        for number, workload in numbered
    ]
    readers = [scope.room.trace_reader(args.level == STEPS) for scope in scopes]
    traces = read_traces(args.trace, readers)
    judgements = [
        _judge(scope, f"{file}, line {number}", workload, trace)
        for scope, (number, workload), trace in zip(scopes, numbered, traces, strict=True)
    ]
    out = render.console(args.json)
    render.print_lines(out, [*render.summarise(judgements, traces[0].producer), ""])
    render.print_tables(out, judgements)
    lines = [*render.remarks(judgements), *render.undecided(judgements)]
    for each in judgements:
        lines += render.with_times(each.broken, each.case.workload.time_unit)
    render.print_lines(out, lines)
    write_json(args.json, [each.to_json() for each in judgements])
    return render.EXIT_CODES[worst(each.outcome for each in judgements)]


def _room(line: str, workload: Workload) -> Room:
    """Return the room of a workload, if the query of the workload is one of the room."""
    try:
        room = find_room(workload.room)
        room.refuse(workload)
    except UsageError as error:
        raise UsageError(f"{line}: {error}") from error
    return room


def _judge(scope: Scope, line: str, workload: Workload, trace: Trace) -> Judgement:
    try:
        expected = run_reference(scope.room, workload, MODEL, scope.step_types)
    except Exception as error:  # the trace has no part in it
        raise UsageError(f"{line}, cannot be run: {error}") from error
    case = Case(workload.name, workload.name, "", workload)
    return judge(scope, case, lambda _: trace, expected)
