"""``straggler script run``: compute the results of sensor scripts on Spark."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from rich.table import Table
from rich.text import Text

from model.vocabulary import ScriptConfig
from model.vocabulary.script.config import REASON_LATE
from properties.cli import render
from properties.cli.columns import add_columns, columns_of
from properties.cli.outputs import refuse_unwritable
from properties.data.durations import duration
from properties.errors import UsageError, counted
from properties.judging.systems import local_master, open_session
from properties.script import inputs, limits
from properties.script.execution import SUFFIXES, Found, compute, explain, readable, write
from properties.script.plan import print_query
from properties.script.queries import CAP_PERCENT, WORKERS, add_watermark, load_scripts, query

DEFAULT = "weather"
SHOWN = 12
RESULTS_MAX = 100_000_000
"""Most results of all computations together, because they are sorted in memory."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for scripts, sensors and results."""
    parser.add_argument("scripts", nargs="+", metavar="FILE", type=Path)
    known = ", ".join(inputs.NAMED)
    parser.add_argument(
        "--input",
        metavar="NAME|PATH",
        default=DEFAULT,
        help=f"{known}, or a Parquet or CSV file; its keys are the sensors ({DEFAULT})",
    )
    parser.add_argument(
        "--sensors",
        metavar="NAME|FILE.csv",
        help="the known sensors, with their rates (those of the input)",
    )
    parser.add_argument(
        "--lateness",
        dest="lateness_us",
        type=duration,
        metavar="DURATION",
        help="how far a tuple may lie behind the latest one of its sensor (by input)",
    )
    add_watermark(parser)
    parser.add_argument("--workers", type=int, metavar="N", help=f"({WORKERS})")
    parser.add_argument(
        "--cap-percent", type=int, metavar="N", help=f"most that one should have ({CAP_PERCENT})"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write all results to FILE, .csv or .parquet"
    )
    parser.add_argument(
        "--explain", action="store_true", help="print the Spark query, compute nothing"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of simulated delays (0)")
    parser.add_argument("--master", metavar="URL", help="Spark master (local)")
    add_columns(parser)


def run(args: argparse.Namespace) -> int:
    """Compute the results; print the first of them, or write all."""
    _refuse_output(args.output)
    if args.seed < 0:
        raise UsageError(f"--seed is {args.seed}; it must be an integer >= 0")
    columns, texts = columns_of(args), load_scripts(args)
    with render.progress() as progress:
        progress.add_task("reading the input", total=None)
        network = inputs.load(args.input, args.seed, columns, args.sensors)
        config, title = query(args, network, texts)
        limits.refuse_impossible(config, network.events, network.label)
    if args.explain:
        return _explain(args.master, config, network)
    _refuse_results(limits.estimate(config, network.events).results, network.label)
    with render.progress() as progress:
        progress.add_task("computing on Spark", total=None)
        with open_session(args.master or local_master(2)) as spark:
            found = compute(spark, config, network.events)
    out = render.console()
    if args.output is not None:
        write(found.results, args.output)
    else:
        _print(found.results)
    unasked = sum(event.key not in config.asked_for for event in network.events)
    said = [f"{network.label}, {title}: {_summary(found, len(network.events), unasked)}"]
    if args.output is not None:
        said.append(f"All results are in {args.output}.")
    elif len(found.results) > SHOWN:
        said.append(f"These are the first {SHOWN}; --output FILE.csv keeps all.")
    render.print_lines(out, said)
    return 0


def _explain(master: str | None, config: ScriptConfig, network: inputs.Network) -> int:
    with render.progress() as progress:
        progress.add_task("asking Spark", total=None)
        with open_session(master or local_master(2)) as spark:
            query = explain(spark, config, network.events)
    print_query(render.console(), query)
    return 0


def _refuse_output(path: Path | None) -> None:
    refuse_unwritable("--output", path)
    if path is not None and path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--output {str(path)!r}: its name must end in {' or '.join(SUFFIXES)}")


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
    for row in readable(results.slice(0, SHOWN)).to_pylist():
        yield row["time"], row["workflow"], row["name"], f"{row['value']:,.6g}"
