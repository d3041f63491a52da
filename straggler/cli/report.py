"""``straggler report``: stored results of sweeps as a page of claims."""

from collections import Counter
from pathlib import Path

import click

from sim.report.contents import STATUSES, Report
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
  straggler report                                 sweeps/ as report.md
  straggler report results/monday --output monday.md
  straggler report --output docs/reproduction.md

The page says for each claim what was published, what came out, and the verdict. An experiment that
was run in both efforts is shown in full. If one of its runs has failed, no page is written, and a
sentence says which sweep to run again. The exit code is 0 if the page is written; `straggler
sweep` has judged the results. Beside the page a summary is written (FILE.json), from which the page
can be written again without the results.
"""


def make_command(summary: str) -> Command:
    """Return the command with the options for results and the page."""
    folder, page = Path("sweeps"), Path("report.md")
    results = f"results of sweeps, or the summary of a page ({folder})"
    effort = "show the results of this effort only"
    parameters = [
        click.Argument(["folder"], help=results, type=PATH, default=folder, metavar="[DIR]"),
        Option("--output", f"the page ({page})", type=PATH, default=page, metavar="FILE.md"),
        Option("--effort", effort, type=click.Choice(EFFORTS)),
    ]
    return Command(summary, EXAMPLES, parameters, run)


def run(args: Arguments) -> int:
    """Write the page and its summary, and say in a sentence what they hold."""
    path: Path = args.output
    refuse_unwritable("--output", path)
    if path.suffix != ".md":
        raise UsageError(f"--output {str(path)!r}: its name must end in .md")
    refuse_unwritable("--output", path.with_suffix(".json"))
    efforts = (args.effort,) if args.effort else tuple(reversed(EFFORTS))
    is_summary = args.folder.is_file()
    report = (
        reproduction.read_summary(args.folder) if is_summary else read_report(args.folder, efforts)
    )
    written = reproduction.page(report)
    write_output(path.with_suffix(".json"), reproduction.summary_of(report))
    write_output(path, written)
    render.print_lines(render.console(), [summarise(report, path)])
    return 0


def summarise(report: Report, path: Path) -> str:
    """Summarise a page in one sentence."""
    counts = Counter(entry.status for entry in report)
    verdicts = ", ".join(f"{counts[each]} {each}" for each in STATUSES if counts[each])
    runs = counted(sum(entry.runs for entry in report), "run")
    return f"{path}: {counted(len(report), 'experiment')}, {runs}: {verdicts}."
