"""``straggler report``: stored results of sweeps as one page."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from sim.report.contents import Report, Status
from sim.report.page import page
from sim.sweep.experiment import EFFORTS
from straggler.cli import render
from straggler.cli.commands import Command
from straggler.cli.outputs import refuse_unwritable
from straggler.errors import UsageError, counted
from straggler.inputs.text_files import write_output
from straggler.options import PATH, Arguments, Option
from straggler.pages import reproduction
from straggler.sweeps.files import read_report

EXAMPLES = """\
examples:
  straggler report                                 sweeps/ as report.html
  straggler report --effort quick --output quick.html
  straggler report results/monday --output monday.html
  straggler report --effort full --reproduction docs/reproduction.md --measured DIR
  straggler report docs/reproduction.json --reproduction docs/reproduction.md --measured DIR

The page needs no network and no other file. An experiment that was run in both efforts is shown in
full. The exit code is 0 if the page is written; `straggler sweep` has judged the results.
--reproduction writes a page of claims in Markdown instead, and beside it a summary from which it
can be written again without the results, when benchmarks have new figures. Figures of benchmarks
come from the folder that --measured names.
"""


def make_command(summary: str) -> Command:
    """Return the command with the options for results and pages."""
    folder, page = Path("sweeps"), Path("report.html")
    results = f"results of sweeps, or the summary of a reproduction ({folder})"
    claims = "write the page of claims there, and FILE.json, instead of the page of results"
    measured = "results of benchmarks for --reproduction, such as benchmarks/results"
    effort = "show the results of this effort only"
    parameters = [
        click.Argument(["folder"], help=results, type=PATH, default=folder, metavar="[DIR]"),
        Option("--output", f"the page ({page})", type=PATH, default=page, metavar="FILE"),
        Option("--effort", effort, type=click.Choice(EFFORTS)),
        Option("--reproduction", claims, type=PATH, metavar="FILE.md"),
        Option("--measured", measured, type=PATH, metavar="DIR"),
    ]
    return Command(summary, EXAMPLES, parameters, run)


def run(args: Arguments) -> int:
    """Write the page and summarise it."""
    efforts = (args.effort,) if args.effort else tuple(reversed(EFFORTS))
    if args.reproduction is not None:
        return _reproduce(args.folder, efforts, args.reproduction, args.measured)
    refuse_unwritable("--output", args.output)
    report = read_report(args.folder, efforts)
    with render.progress() as progress:
        progress.add_task("drawing", total=None)
        written = page(report)
    _write(args.output, written, report)
    return 0


def _reproduce(source: Path, efforts: Sequence[str], path: Path, measured: Path | None) -> int:
    refuse_unwritable("--reproduction", path)
    if path.suffix != ".md":
        raise UsageError(f"--reproduction {str(path)!r}: its name must end in .md")
    if measured is None:
        raise UsageError("--reproduction needs --measured DIR, a folder with results of benchmarks")
    report = reproduction.read_summary(source) if source.is_file() else read_report(source, efforts)
    written = reproduction.page(report, reproduction.figures(measured))
    write_output(path.with_suffix(".json"), reproduction.summary_of(report))
    _write(path, written, report)
    return 0


def _write(path: Path, text: str, report: Report) -> None:
    write_output(path, text)
    render.print_lines(render.console(), [summarise(report, path)])


def summarise(report: Report, path: Path) -> str:
    """Summarise a page in one sentence."""
    counts = Counter(entry.status for entry in report)
    verdicts = ", ".join(f"{counts[each]} {each.value}" for each in Status if counts[each])
    runs = counted(sum(entry.runs for entry in report), "run")
    return f"{path}: {counted(len(report), 'experiment')}, {runs}: {verdicts}."
