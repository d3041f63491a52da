"""``straggler script run``: compute the results of sensor scripts on Spark."""

from collections.abc import Iterator

import click
import pyarrow as pa
from rich.table import Table
from rich.text import Text

from model.vocabulary.script.config import REASON_LATE
from straggler.cli import render
from straggler.cli.input_options import column_options, columns_of
from straggler.cli.outputs import refuse_table, with_texts, write_table
from straggler.errors import UsageError, counted
from straggler.judging.systems import local_master, open_session
from straggler.options import LATENESS, PATH, VERBOSE, Arguments, Option
from straggler.rooms.script import inputs, limits
from straggler.rooms.script.execution import Found, compute
from straggler.rooms.script.queries import (
    CAP_PERCENT,
    SENSORS,
    WORKERS,
    load_scripts,
    query,
    watermark_options,
)

DEFAULT = "weather"
SHOWN = 12
RESULTS_MAX = 100_000_000
"""Most results of all computations together, because they are sorted in memory."""


def options() -> Iterator[click.Parameter]:
    """Yield the arguments for scripts, sensors and results."""
    yield click.Argument(["scripts"], nargs=-1, required=True, type=PATH, metavar="FILE...")
    known = ", ".join(inputs.NAMED)
    yield Option(
        "--input",
        f"{known}, or a Parquet or CSV file; its keys are the sensors ({DEFAULT})",
        metavar="NAME|PATH",
        default=DEFAULT,
    )
    yield SENSORS
    yield LATENESS
    yield from watermark_options()
    yield Option("--workers", f"number of workers ({WORKERS})", type=int, metavar="N")
    cap = f"most that one should have, in percent of an even share ({CAP_PERCENT})"
    yield Option("--cap-percent", cap, type=int, metavar="N")
    results = "write all results to FILE, .csv or .parquet"
    yield Option("--output", results, type=PATH, metavar="FILE")
    yield Option("--seed", "seed of simulated delays (0)", type=int, default=0, metavar="N")
    yield Option("--master", "Spark master (local)", metavar="URL")
    yield VERBOSE
    yield from column_options()


def run(args: Arguments) -> int:
    """Compute the results; print the first of them, or write all."""
    refuse_table(args.output)
    if args.seed < 0:
        raise UsageError(f"--seed is {args.seed}; it must be an integer >= 0")
    columns, texts = columns_of(args), load_scripts(args)
    with render.progress() as progress:
        progress.add_task("reading the input", total=None)
        network = inputs.load(args.input, args.seed, columns, args.sensors)
        config, title = query(args, network, texts)
        sent = network.sent
        limits.refuse_impossible(config, sent.events, sent.label)
    _refuse_results(limits.estimate(config, sent.events).results, sent.label)
    with render.progress() as progress:
        progress.add_task("computing on Spark", total=None)
        with open_session(args.master or local_master(2)) as spark:
            found = compute(spark, config, sent.events)
    out = render.console()
    if args.output is not None:
        write_table(found.results, args.output)
    else:
        _print(found.results)
    asked_for = config.asked_for
    unasked = sum(event.key not in asked_for for event in sent.events)
    said = [f"{sent.label}, {title}: {_summary(found, len(sent.events), unasked)}"]
    if args.output is not None:
        said.append(f"All results are in {args.output}.")
    elif len(found.results) > SHOWN:
        said.append(f"These are the first {SHOWN}; --output FILE.csv keeps all.")
    said += [f"{file.sentence}." for file in sent.set_aside if file.sentence]
    render.print_lines(out, said)
    return 0


def _refuse_results(results: int, name: str) -> None:
    if results > RESULTS_MAX:
        limit = f"{name} would have up to {results:,} results of all computations"
        raise UsageError(f"{limit}; at most {RESULTS_MAX:,} are computed: take longer slides")


def _summary(found: Found, events: int, unasked: int) -> str:
    late = found.rejected[REASON_LATE]
    others = found.rejected.total() - late
    return (
        f"{counted(len(found.results), 'result')}, {counted(found.undefined, 'time')} without one;"
        f" of {counted(events, 'tuple')} {late:,} came too late, {others:,} had no value,"
        f" {unasked:,} nobody asked for."
    )


def _print(results: pa.Table) -> None:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    grid.add_column("time", no_wrap=True)
    grid.add_column("script", overflow="fold")
    grid.add_column("name", overflow="fold")
    grid.add_column("value", justify="right", no_wrap=True)
    for row in _rows(results):
        grid.add_row(*(Text(cell) for cell in row))
    out = render.console()
    out.print(grid)
    out.print()


def _rows(results: pa.Table) -> Iterator[tuple[str, str, str, str]]:
    for row in with_texts(results.slice(0, SHOWN)).to_pylist():
        yield row["time"], row["workflow"], row["name"], f"{row['value']:,.6g}"
