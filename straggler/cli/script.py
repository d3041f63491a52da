"""``straggler script``: check, explain and run sensor scripts."""

import sys
from collections.abc import Iterable, Mapping

import click

from model.vocabulary import ScriptConfig
from model.vocabulary.texts import escaped
from straggler.cli import render
from straggler.cli.commands import Command, Group, Run, examples_of
from straggler.cli.outputs import refuse_unwritable, write_json
from straggler.errors import UsageError, counted, refuse_unknown
from straggler.options import PATH, Arguments, Option
from straggler.rooms.script import inputs
from straggler.rooms.script.inputs import InvalidScriptsError, read_all, workflows
from straggler.rooms.script.plan import make_plan, print_plan
from straggler.rooms.script.queries import refuse_equal_names, sensors_of

EXAMPLES = """\
examples:
  straggler script check *.script --sensors weather
  straggler script explain *.script --sensors weather --workers 4
  straggler script run mine.script --input weather --output results.csv
  straggler script run mine.script --input readings.csv --key sensor --event-time at \\
      --time-unit ms --lateness 5s --output results.parquet

--sensors names a network (weather: three airports, nine measures) or a CSV file with the columns
sensor and per_hour, the tuples of the sensor in an hour. Without it, check and explain look for
sensors.csv beside the scripts; if there is none, every sensor is assumed to exist and to send once
a second. Exit code 2: a script is invalid.
"""


ACTIONS = {
    "check": "report errors with their places",
    "explain": "show what is shared, cut, dropped and placed",
    "run": "compute the results on Spark",
}


def make_command(summary: str) -> Group:
    """Return a command for each action."""
    return Group(summary, EXAMPLES, "action", ACTIONS, _load)


def _load(name: str) -> Command:
    """Return the command of an action."""
    refuse_unknown("action", name, ACTIONS)
    files = click.Argument(["files"], nargs=-1, required=True, type=PATH, metavar="FILE...")
    sensors = Option("--sensors", "weather, or a CSV file", metavar="NAME|FILE.csv")
    match name:
        case "check":
            return _command(name, [files, sensors], _check)
        case "explain":
            share = "largest load of a worker, in percent of an even share (125)"
            options = [
                Option("--workers", "number of workers (4)", type=int, default=4, metavar="N"),
                Option("--cap-percent", share, type=int, default=125, metavar="N"),
                Option("--json", "also write the plan to FILE", type=PATH, metavar="FILE"),
            ]
            return _command(name, [files, sensors, *options], _explain)
        case _:
            # Imported here because pandas takes a second that other actions do not need.
            from straggler.cli import script_run

            return _command(name, script_run.options(), script_run.run)


def _command(name: str, parameters: Iterable[click.Parameter], action: Run) -> Command:
    """Return a command that prints the places of errors in an invalid script."""

    def run(args: Arguments) -> int:
        try:
            return action(args)
        except InvalidScriptsError as error:
            sys.stderr.write("\n".join(map(escaped, error.lines)) + "\n")
            return 2

    return Command(ACTIONS[name], examples_of(name, EXAMPLES), parameters, run)


def _known(args: Arguments) -> tuple[Mapping[str, int] | None, str]:
    """Return the listed sensors, or ``None`` without a list, and a sentence on the list."""
    name = args.sensors or inputs.find_list(args.files)
    if name is None:
        missing = f"no {inputs.LIST} beside the scripts; --sensors names a list"
        return None, f"Any sensor is taken to exist: {missing}."
    known = inputs.load_sensors(name)
    return known, f"Scripts may name {counted(len(known), 'sensor')}, those of {name}."


def _check(args: Arguments) -> int:
    out = render.console()
    known, sentence = _known(args)
    for path, flow in zip(args.files, workflows(read_all(args.files), known), strict=True):
        counts = (
            counted(len(flow.statements), "statement"),
            counted(len(sensors_of([flow])), "sensor"),
        )
        render.print_lines(out, [f"{path}: {', '.join(counts)}"])
    render.print_lines(out, [sentence])
    return 0


def _explain(args: Arguments) -> int:
    refuse_unwritable("--json", args.json)
    known, sentence = _known(args)
    flows = workflows(read_all(refuse_equal_names(args.files)), known)
    if known is None:
        known = dict.fromkeys(sensors_of(flows), inputs.USUAL_PER_HOUR)
    try:
        config = ScriptConfig(
            tuple(flows), tuple(known.items()), args.workers, cap_percent=args.cap_percent
        )
    except ValueError as error:
        raise UsageError(str(error)) from error
    plan = make_plan(config)
    out = render.console(args.json)
    print_plan(out, plan)
    render.print_lines(out, [sentence])
    write_json(args.json, plan.to_json())
    return 0
