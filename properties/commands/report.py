"""``straggler report``: what sweeps have stored, as one page."""

import argparse
from collections import Counter
from pathlib import Path

from properties import render
from properties.commands.outputs import refuse_unwritable
from properties.errors import counted
from properties.sweeps.stored import read
from sim.report.contents import Report
from sim.report.page import page
from sim.report.status import Status, status
from sim.sweep.experiment import EFFORTS
from sim.sweep.store import write_whole

SUMMARY = "results of sweeps as one self-contained page: verdicts, plots, what was published"

EXAMPLES = """\
examples:
  straggler report                                 sweeps/ as report.html
  straggler report --effort quick --output quick.html
  straggler report results/monday --output monday.html

The page needs no network and no other file. An experiment that was run in both efforts is shown in
full. The exit code is 0 if the page is written; `straggler sweep` has judged the results.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where results lie, and where the page goes."""
    parser.add_argument(
        "folder",
        metavar="DIR",
        type=Path,
        nargs="?",
        default=Path("sweeps"),
        help="results of sweeps (sweeps)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        default=Path("report.html"),
        help="the page (report.html)",
    )
    parser.add_argument("--effort", choices=EFFORTS, help="of these results only")


def run(args: argparse.Namespace) -> int:
    """Write the page and say what is on it."""
    refuse_unwritable("--output", args.output)
    report = read(args.folder, (args.effort,) if args.effort else tuple(reversed(EFFORTS)))
    with render.progress() as progress:
        progress.add_task("drawing", total=None)
        written = page(report)
    write_whole(args.output.resolve(), written)
    render.print_lines(render.console(), [summary(report, args.output)])
    return 0


def summary(report: Report, path: Path) -> str:
    """What is on the page, in one sentence."""
    counts = Counter(map(status, report))
    told = ", ".join(f"{counts[each]} {each.value}" for each in Status if counts[each])
    runs = counted(sum(entry.runs for entry in report), "run")
    return f"{path}: {counted(len(report), 'experiment')}, {runs}: {told}."
