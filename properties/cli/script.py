"""``straggler script``: check, format, explain and run sensor scripts."""

import argparse
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from model.vocabulary import ScriptConfig
from properties.cli import render, script_run
from properties.cli.outputs import refuse_unwritable
from properties.errors import UsageError, counted
from properties.script import inputs
from properties.script.formatter import formatted
from properties.script.inputs import InvalidScriptsError, read_script, read_workflows
from properties.script.picture import picture
from properties.script.plan import make_plan, print_plan
from properties.script.queries import refuse_equal_names, sensors_of

SUMMARY = "check, format, explain and run sensor scripts"

EXAMPLES = """\
examples:
  straggler script check *.script --sensors weather
  straggler script fmt mine.script                       rewrites the script in the usual form
  straggler script fmt --check *.script                  only lists scripts in another form
  straggler script explain *.script --sensors weather --workers 4 --svg plan.svg
  straggler script run mine.script --input weather --output results.csv
  straggler script run mine.script --input readings.csv --key sensor --event-time at \\
      --time-unit ms --lateness 5s --output results.parquet

--sensors names a network (weather: three airports, nine measures) or a CSV file with the columns
sensor and per_hour, the tuples of the sensor in an hour. Without it every sensor is assumed to
exist and to send once a second. Exit code 2: a script is invalid; 1: fmt --check found a script in
another form.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the actions with their options."""
    actions = parser.add_subparsers(
        dest="action", metavar="check | fmt | explain | run", required=True
    )
    check = actions.add_parser("check", help="report errors with their places", allow_abbrev=False)
    fmt = actions.add_parser("fmt", help="write scripts in the usual form", allow_abbrev=False)
    explain = actions.add_parser(
        "explain", help="show what is shared, cut, dropped and placed", allow_abbrev=False
    )
    for each in (check, fmt, explain):
        each.add_argument("files", nargs="+", metavar="FILE", type=Path)
    script_run.add_options(
        actions.add_parser("run", help="compute the results on Spark", allow_abbrev=False)
    )
    for each in (check, explain):
        each.add_argument("--sensors", metavar="NAME|FILE.csv", help="weather, or a CSV file")
    fmt.add_argument(
        "--check", action="store_true", help="list scripts in another form, write nothing"
    )
    explain.add_argument("--workers", type=int, default=4, help="number of workers (4)")
    explain.add_argument(
        "--cap-percent",
        type=int,
        default=125,
        help="largest load of a worker, in percent of an even share (125)",
    )
    explain.add_argument("--svg", type=Path, metavar="FILE.svg", help="draw the plan")
    explain.add_argument("--json", type=Path, metavar="FILE", help="also write the plan to FILE")


def run(args: argparse.Namespace) -> int:
    """Run the action; for an invalid script print the places of errors and write nothing."""
    action = _ACTIONS[args.action]
    try:
        return action(args)
    except InvalidScriptsError as error:
        sys.stderr.write("\n".join(error.lines) + "\n")
        return 2


def _known(args: argparse.Namespace) -> Mapping[str, int] | None:
    return None if args.sensors is None else inputs.load_sensors(args.sensors)


def _check(args: argparse.Namespace) -> int:
    out = render.console()
    for path, flow in zip(args.files, read_workflows(args.files, _known(args)), strict=True):
        counts = (
            counted(len(flow.statements), "statement"),
            counted(len(sensors_of([flow])), "sensor"),
        )
        render.print_lines(out, [f"{path}: {', '.join(counts)}"])
    return 0


def _format(args: argparse.Namespace) -> int:
    out = render.console()
    texts = [read_script(path) for path in args.files]
    read_workflows(args.files, None)
    changed = [
        (path, usual)
        for path, text in zip(args.files, texts, strict=True)
        if (usual := formatted(text)) != text
    ]
    for path, usual in changed:
        if not args.check:
            refuse_unwritable("FILE", path)
            _replace(path, usual)
        word = "is not in the usual form" if args.check else "written in the usual form"
        render.print_lines(out, [f"{path}: {word}"])
    return 1 if args.check and changed else 0


def _replace(path: Path, text: str) -> None:
    """Replace a file at once, so that an interrupt leaves the old text or the new one."""
    target = path.resolve()  # the file behind a link, not the link
    scratch = target.with_name(f".{target.name}.part")
    try:
        scratch.write_text(text, encoding="utf-8", newline="\n")
        shutil.copymode(target, scratch)
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)


def _explain(args: argparse.Namespace) -> int:
    refuse_unwritable("--svg", args.svg)
    refuse_unwritable("--json", args.json)
    if args.svg is not None and args.svg.suffix.lower() != ".svg":
        raise UsageError(f"--svg {str(args.svg)!r}: its name must end in .svg")
    known = _known(args)
    flows = read_workflows(refuse_equal_names(args.files), known)
    if known is None:
        known = dict.fromkeys(sensors_of(flows), inputs.USUAL_PER_HOUR)
    try:
        config = ScriptConfig(
            tuple(flows), tuple(known.items()), args.workers, cap_percent=args.cap_percent
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    plan = make_plan(config)
    out = render.console()
    print_plan(out, plan)
    if args.svg is not None:
        args.svg.write_text(picture(plan), encoding="utf-8")
    if args.json is not None:
        args.json.write_text(json.dumps(plan.to_json(), indent=1) + "\n", encoding="utf-8")
    return 0


_ACTIONS = {"check": _check, "fmt": _format, "explain": _explain, "run": script_run.run}
