"""``straggler conformance``: engines of others, judged by the promises, as a page."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from model.vocabulary.texts import escaped
from straggler.cli import render
from straggler.cli.commands import Command
from straggler.cli.outputs import refuse_unwritable
from straggler.conformance.engines import Engine, engine_names, load_engine
from straggler.conformance.page import Row, verdict, write_page
from straggler.conformance.promises import PROMISES
from straggler.conformance.results import read_results, write_results
from straggler.conformance.trials import judge_engine
from straggler.errors import UsageError, format_error
from straggler.inputs.text_files import write_output
from straggler.options import PATH, Arguments, Option

EXAMPLES = """\
examples:
  make engines                                     the environments of all engines
  straggler conformance                            judge every engine
  straggler conformance duckdb flink --workloads 20
  straggler conformance --stored --markdown docs/conformance.md

Results are stored in results.json beside the adapter, engine by engine; --markdown writes a page
with the stored results of all engines. The exit code is 0 if all engines could be judged, whatever
the verdicts. If some could not, it is 2: a sentence says why for each, and the others are judged.
"""


WORKLOADS = 100
SEED = 0


def make_command(summary: str) -> Command:
    """Return the command with the options that choose engines and output files."""
    parameters = [
        click.Argument(["engines"], nargs=-1, metavar="[ENGINE]..."),
        Option("--folder", "folder of the engines", type=PATH, default=Path("engines")),
        Option(
            "--environments",
            "folder of their environments",
            type=PATH,
            default=Path(".engines"),
            metavar="FOLDER",
        ),
        Option(
            "--workloads",
            f"workloads of each cell; {WORKLOADS} by default",
            type=click.IntRange(1),
        ),
        Option("--seed", f"seed of the workloads; {SEED} by default", type=click.IntRange(0)),
        Option("--stored", "judge nothing, read what is stored", is_flag=True),
        Option("--markdown", "also write the page to FILE", type=PATH, metavar="FILE"),
    ]
    return Command(summary, EXAMPLES, parameters, run)


def run(args: Arguments) -> int:
    """Judge the engines, store and print the verdicts."""
    refuse_unwritable("--markdown", args.markdown)
    if args.stored and args.engines:
        raise UsageError("--stored judges nothing, so it takes no names of engines")
    if args.stored and not (args.workloads is None and args.seed is None):
        raise UsageError("--stored judges nothing, so it takes no --workloads or --seed")
    number = WORKLOADS if args.workloads is None else args.workloads
    seed = SEED if args.seed is None else args.seed
    names = engine_names(args.folder)
    engines = [load_engine(args.folder, name, args.environments) for name in names]
    chosen = [load_engine(args.folder, name, args.environments) for name in args.engines or names]
    out = render.console(args.markdown)
    refusals: dict[str, UsageError] = {}
    for engine in () if args.stored else chosen:
        with _collected(refusals, engine):
            write_results(engine, judge_engine(engine, number, seed, _say))
    rows = []
    for engine in engines:
        row = Row(engine, None)
        with _collected(refusals, engine):
            row = Row(engine, read_results(engine))
        rows.append(row)
    shown = [engine for engine in chosen if engine.name not in refusals]
    if shown:
        lines = [line for row in rows if row.engine in shown for line in _lines(row)]
        render.print_lines(out, lines)
        write_output(args.markdown, write_page(rows))
    sys.stderr.writelines(format_error(str(error)) for error in refusals.values())
    return 2 if refusals else 0


@contextmanager
def _collected(refusals: dict[str, UsageError], engine: Engine) -> Iterator[None]:
    """Keep the first refusal of an engine, instead of ending with it."""
    try:
        yield
    except UsageError as error:
        refusals.setdefault(engine.name, error)


def _say(line: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"{escaped(line)}\n")


def _lines(row: Row) -> list[str]:
    title = f"{row.engine.title} {row.engine.version}"
    return [
        title,
        *(f"  {promise.title:<30} {verdict(row, name)}" for name, promise in PROMISES.items()),
    ]
