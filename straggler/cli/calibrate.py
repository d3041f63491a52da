"""``straggler calibrate``: the costs of a cluster, measured once, for simulations of it."""

import tempfile
from pathlib import Path

import click
from rich.table import Table

from sim.calibration import COSTS, Calibration
from straggler.cli import render
from straggler.cli.commands import Command
from straggler.cli.outputs import refuse_unmakable, refuse_unwritable, write_json
from straggler.errors import UsageError, counted
from straggler.inputs.text_files import read_json
from straggler.options import PATH, VERBOSE, Arguments, Duration, Option

EXAMPLES = """\
examples:
  straggler calibrate 'local[2]' --output here.json
  straggler calibrate spark://host:7077 --folder shared --output cluster.json
  straggler calibrate 'local[4]' --comparison 500us --output emulated.json

docs/cluster.md says what is measured; straggler plan --calibration FILE uses it.
"""


def make_command(summary: str) -> Command:
    """Return the command with the master and the options."""
    folder = "folder that the driver and all workers share (a temporary one)"
    stated = "cost of a comparison that workers emulate, instead of measuring it"
    parameters = [
        click.Argument(["master"], help="Spark master", metavar="MASTER"),
        Option("--output", "write the calibration to FILE", type=PATH, metavar="FILE"),
        Option("--folder", folder, type=PATH, metavar="DIR"),
        Option("--comparison", stated, "comparison_us", type=Duration()),
        Option("--seed", "seed of the tuples that are joined (0)", type=int, default=0),
        VERBOSE,
    ]
    return Command(summary, EXAMPLES, parameters, run)


def run(args: Arguments) -> int:
    """Measure, print the costs, and write the file."""
    refuse_unwritable("--output", args.output)
    if args.seed < 0:
        raise UsageError(f"--seed is {args.seed}; it must be an integer >= 0")
    if args.comparison_us is not None and args.comparison_us < 0:
        raise UsageError(f"--comparison is {args.comparison_us}us; it must be at least 0")
    if args.folder is not None:
        refuse_unmakable("--folder", args.folder)
    found = _measure(args)
    out = render.console(args.output)
    out.print(_table(found))
    took = " on ".join(
        counted(n, noun)
        for n, noun in ((len(found.speeds), "slot"), (len(set(found.hosts)), "host"))
    )
    render.print_prose(out, [f"Measured on {found.master}: {took}. Seed {found.seed}."])
    if args.output is not None:
        write_json(args.output, found.to_json())
    return 0


def _measure(args: Arguments) -> Calibration:
    # Imported here because PySpark takes a second that a refusal does not need.
    from spark_impl.runtime.session import EnvironmentProblem, session
    from straggler.calibrating import calibrate

    try:
        with (
            tempfile.TemporaryDirectory(prefix="straggler-", dir=args.folder) as folder,
            session(args.master) as spark,
        ):
            return calibrate(spark, Path(folder), args.seed, args.comparison_us)
    except EnvironmentProblem as problem:
        raise UsageError(str(problem)) from problem


def _table(found: Calibration) -> Table:
    grid = Table(box=None, pad_edge=False)
    for number, heading in enumerate(("cost", "least", "median", "largest")):
        grid.add_column(heading, justify="right" if number else "left")
    for name in COSTS:
        grid.add_row(name, *[f"{value:,.4g}" for value in getattr(found, name)])
    return grid


def read_calibration(path: Path) -> Calibration:
    """Read a calibration; raise :class:`UsageError` with one sentence if the file is not one."""
    name = repr(str(path))
    try:
        data = read_json(path)
    except ValueError as error:
        raise UsageError(f"{name} is no calibration: {error}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{name} is no calibration: it holds no object")
    try:
        return Calibration.from_json(data)
    except ValueError as error:
        raise UsageError(f"{name} is no calibration: {error}") from error
