"""``straggler script``: sensor scripts checked, written in the usual form, and explained."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from model.vocabulary import ScriptConfig
from model.vocabulary.script import Sensor, Workflow, walk
from properties import render
from properties.commands.outputs import refuse_unwritable
from properties.errors import UsageError, counted
from properties.script import sensors
from properties.script.files import InvalidScriptsError, read, read_workflows
from properties.script.formatter import formatted
from properties.script.picture import picture
from properties.script.plan import Plan, figure, make_plan

SUMMARY = "sensor scripts: are they right, in the usual form, and what is computed for them"

EXAMPLES = """\
examples:
  straggler script check *.script --sensors weather
  straggler script fmt mine.script                       writes it in the usual form
  straggler script fmt --check *.script                  only says which are not in it
  straggler script explain *.script --sensors weather --workers 4 --svg plan.svg

Sensors are those of a network (weather: three airports, nine measures) or of a CSV file with the
columns sensor and per_hour, its tuples in an hour. Without --sensors every sensor is taken to be
there, once a second. Exit code 2: a script is invalid; 1: fmt --check found one in another form.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """What to do, and with which scripts."""
    actions = parser.add_subparsers(dest="action", metavar="check | fmt | explain", required=True)
    check = actions.add_parser("check", help="say what is wrong, and where", allow_abbrev=False)
    fmt = actions.add_parser("fmt", help="write scripts in the usual form", allow_abbrev=False)
    explain = actions.add_parser(
        "explain", help="what is shared, cut, dropped and placed", allow_abbrev=False
    )
    for each in (check, fmt, explain):
        each.add_argument("files", nargs="+", metavar="FILE", type=Path)
    for each in (check, explain):
        each.add_argument("--sensors", metavar="NAME|FILE.csv", help="weather, or a CSV file")
    fmt.add_argument("--check", action="store_true", help="write nothing")
    explain.add_argument("--workers", type=int, default=4, help="(4)")
    explain.add_argument(
        "--cap-percent", type=int, default=125, help="most that a worker should have (125)"
    )
    explain.add_argument("--svg", type=Path, metavar="FILE.svg", help="draw it there")
    explain.add_argument("--json", type=Path, metavar="FILE", help="write it there, too")


def run(args: argparse.Namespace) -> int:
    """Do it; an invalid script is told with its place, and nothing is written."""
    action = {"check": _check, "fmt": _format, "explain": _explain}[args.action]
    try:
        return action(args)
    except InvalidScriptsError as error:
        sys.stderr.write("\n".join(error.lines) + "\n")
        return 2


def _known(args: argparse.Namespace) -> Mapping[str, int] | None:
    return None if args.sensors is None else sensors.load(args.sensors)


def _check(args: argparse.Namespace) -> int:
    out = render.console()
    for path, flow in zip(args.files, read_workflows(args.files, _known(args)), strict=True):
        told = counted(len(flow.statements), "statement"), counted(len(_used([flow])), "sensor")
        render.print_lines(out, [f"{path}: {told[0]}, {told[1]}"])
    return 0


def _format(args: argparse.Namespace) -> int:
    out = render.console()
    texts = [read(path) for path in args.files]
    read_workflows(args.files, None)
    changed = [
        (path, usual)
        for path, text in zip(args.files, texts, strict=True)
        if (usual := formatted(text)) != text
    ]
    for path, usual in changed:
        if not args.check:
            refuse_unwritable("FILE", path)
            path.write_text(usual, encoding="utf-8", newline="\n")
        word = "is not in the usual form" if args.check else "written in the usual form"
        render.print_lines(out, [f"{path}: {word}"])
    return 1 if args.check and changed else 0


def _used(flows: Sequence[Workflow]) -> list[str]:
    nodes = (
        node for flow in flows for each in flow.statements for node, _ in walk(each.expression)
    )
    return sorted({node.id for node in nodes if isinstance(node, Sensor)})


def _explain(args: argparse.Namespace) -> int:
    refuse_unwritable("--svg", args.svg)
    refuse_unwritable("--json", args.json)
    if args.svg is not None and args.svg.suffix.lower() != ".svg":
        raise UsageError(f"--svg {str(args.svg)!r}: its name has to end in .svg")
    known = _known(args)
    flows = read_workflows(args.files, known)
    if known is None:
        known = dict.fromkeys(_used(flows), sensors.USUAL_PER_HOUR)
    try:
        config = ScriptConfig(
            tuple(flows), tuple(known.items()), args.workers, cap_percent=args.cap_percent
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    plan = make_plan(config)
    out = render.console()
    _print_plan(out, plan)
    if args.svg is not None:
        args.svg.write_text(picture(plan), encoding="utf-8")
    if args.json is not None:
        args.json.write_text(json.dumps(plan.to_json(), indent=1) + "\n", encoding="utf-8")
    return 0


def _print_plan(out: Console, plan: Plan) -> None:
    graph = plan.graph
    made = [
        (
            f"#{number}",
            plan.said(number),
            ", ".join(plan.names.get(number, ())),
            figure(graph.per_hour[number]),
            str(plan.placement.worker[number]),
        )
        for number in graph.computed
    ]
    _print_table(out, ("", "computation", "called", "per hour", "worker"), made)
    cut = [
        (plan.name(number), plan.cut(number), *(f"{float(cost):,.1f}" for cost in choice[1:]))
        for number, choice in plan.slices.items()
    ]
    _print_table(out, ("windows over", "cut into", "panes cost", "edges cost"), cut)
    if plan.dropped:
        render.print_lines(out, [f"Dropped: {', '.join(plan.dropped)}.", ""])
    render.print_lines(out, plan.sentences())


def _print_table(out: Console, headings: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        is_number = heading in ("per hour", "worker", "panes cost", "edges cost")
        grid.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))
    out.print(grid)
    out.print()
