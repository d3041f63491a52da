"""``straggler check``: have a Structured Streaming job judged."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from model.checking.claims import Outcome
from straggler.cli import render
from straggler.cli.commands import Command
from straggler.cli.outputs import refuse_unmakable, refuse_unwritable, write_json
from straggler.errors import UsageError
from straggler.jobs import MODES
from straggler.judging.counterexamples import FOLDER
from straggler.options import PATH, VERBOSE, Arguments, Option

EXAMPLES = """\
examples:
  straggler check jobs:minutes --schema "device string, at timestamp, watts double" --event-time at
  straggler check jobs:minutes --input readings.parquet --event-time at --lateness "10 seconds"
  straggler check jobs:joined --schema orders="id int, at timestamp" \\
      --schema trades="id int, paid timestamp" --event-time orders=at --event-time trades=paid

The job is a function of the module, from a streaming DataFrame to another one. With several schemas
it takes the inputs as keyword arguments. docs/your-job.md says what is asked of it.
"""


def make_command(summary: str) -> Command:
    """Return the command with the arguments of a check."""
    parameters = [
        click.Argument(["job"], metavar="MODULE:JOB"),
        Option(
            "--schema", "columns of the input in DDL, or NAME=DDL", multiple=True, metavar="TEXT"
        ),
        Option("--input", "Parquet file whose rows take the place of drawn ones", type=PATH),
        Option(
            "--event-time",
            "column of event times, or NAME=COLUMN",
            "event_time",
            multiple=True,
            metavar="TEXT",
        ),
        Option("--mode", "output mode (append)", type=click.Choice(MODES), default=MODES[0]),
        Option("--key", "column with few values", "keys", multiple=True, metavar="COLUMN"),
        Option("--lateness", "how late a row may be (delay of the watermark)", metavar="TEXT"),
        Option("--redelivered", "column that identifies a row", multiple=True, metavar="COLUMN"),
        Option(
            "--upsert", "column by which later answers replace", multiple=True, metavar="COLUMN"
        ),
        Option("--keeps-state", "the job keeps its state on purpose", "keeps_state", is_flag=True),
        Option("--streams", "number of drawn streams (24)", type=int, default=24, metavar="N"),
        Option("--seed", "seed of the streams (0)", type=int, default=0, metavar="N"),
        Option("--json", "also write the report to FILE", type=PATH, metavar="FILE"),
        Option("--master", "Spark master (local[2])", metavar="URL", is_rare=True),
        VERBOSE,
        Option(
            "--counterexamples",
            f"folder for counterexamples ({FOLDER})",
            type=PATH,
            default=FOLDER,
            metavar="DIR",
            is_rare=True,
        ),
    ]
    return Command(summary, EXAMPLES, parameters, run)


def run(args: Arguments) -> int:
    """Judge a job and return the exit code of its outcome."""
    refuse_unwritable("--json", args.json)
    refuse_unmakable("--counterexamples", args.counterexamples)
    schema, event_time = inputs_of(args)
    from straggler.jobs.api import judge_job, lateness_of
    from straggler.jobs.counterexamples import store
    from straggler.judging.systems import load_function, open_session

    job = load_function(args.job, "a job; write MODULE:JOB", "function")
    lateness_of(args.lateness)

    with render.progress() as progress, open_session(args.master) as spark:
        progress.add_task(f"judging {render.plain(args.job)}", total=None)
        rows = None
        if args.input is not None:
            rows = read_rows(spark, args.input)
            schema = schema or rows.schema.simpleString()
        asked = {
            "schema": schema,
            "event_time": event_time,
            "mode": args.mode,
            "keys": list(args.keys),
            "lateness": args.lateness,
            "upsert": list(args.upsert) or None,
            "redelivered": list(args.redelivered),
        }
        more = {"keeps_state": args.keeps_state, "streams": args.streams, "seed": args.seed}
        report = judge_job(job, spark, **asked, **more, rows=rows, name=args.job)
    out = render.console(args.json)
    render.print_lines(out, str(report).splitlines())
    write_json(args.json, report.to_json())
    if report.rows is not None:
        broken = next(e for e in report.verdicts if e.claim == report.rows["claim"])
        sentence = f"{broken.claim}: {broken.sentence}"
        path = store(args.counterexamples, args.job, asked, sentence, report.rows)
        told = f"Stored in {path}; run it again with: straggler replay {path} --trust"
        render.print_lines(out, ["", told])
    elif report.outcome is Outcome.BROKEN and report.table:
        render.print_lines(out, ["", "No counterexample: the rows cannot be stored as data."])
    return render.EXIT_CODES[report.outcome]


def read_rows(spark: Any, path: Path) -> Any:
    """Return the rows of a Parquet file; raise :class:`UsageError` if it cannot be read."""
    try:
        return spark.read.parquet(str(path))
    except Exception as error:
        raise UsageError(f"--input {str(path)!r} is no Parquet file that can be read") from error


def inputs_of(args: Arguments) -> tuple[str | dict[str, str], str | dict[str, str]]:
    """Return the schemas and the columns of event times; refuse what is wrong without Spark, too.

    Spark takes seconds to start, and says the rest.
    """
    if not args.event_time:
        raise UsageError("--event-time is missing; it names the column of event times")
    if not args.schema and args.input is None:
        raise UsageError("--schema is missing; it lists the columns of the input")
    columns = None if args.input is None else columns_of(args.input)
    schema = by_name("--schema", args.schema, "schemas are NAME=DDL") if args.schema else ""
    event_time = by_name("--event-time", args.event_time, "event times are NAME=COLUMN")
    ddls = schema if isinstance(schema, dict) else {"": schema}
    times = event_time if isinstance(event_time, dict) else dict.fromkeys(ddls, event_time)
    for name in times:
        if name not in ddls:
            raise UsageError(f"--event-time {name!r} is the name of no --schema")
    for name, ddl in ddls.items():
        if name not in times:
            raise UsageError(f"--event-time is missing for {name!r}; write {name}=COLUMN")
        _refuse_absent("--event-time", [times[name]], [ddl], columns)
    for option, named in (("--key", args.keys), ("--redelivered", args.redelivered)):
        _refuse_absent(option, named, ddls.values(), columns)
    return schema, event_time


def columns_of(path: Path) -> list[str] | None:
    """Return the columns of a Parquet file; None if only Spark can say them, as of a folder."""
    # Imported here because it takes a while that a check of drawn rows does not need.
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        return None
    try:
        return list(pq.read_schema(path).names)
    except pa.ArrowInvalid as error:
        raise UsageError(f"--input {str(path)!r} is no Parquet file that can be read") from error
    except (OSError, pa.ArrowException):
        return None


def by_name(option: str, given: tuple[str, ...], several: str) -> str | dict[str, str]:
    """Return what is given for the only input, or for each one by name."""
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    found: dict[str, str] = {}
    for name, equals, value in (text.partition("=") for text in given):
        if not (equals and name.isidentifier()):
            raise UsageError(f"{option} {name!r} has no name; several {several}")
        if name in found:
            raise UsageError(f"{option} {name!r} is given twice")
        found[name] = value
    return found


def _refuse_absent(
    option: str, named: Iterable[str], ddls: Iterable[str], columns: list[str] | None
) -> None:
    """Refuse a column that no schema has: no word of its DDL, which only Spark can read."""
    for column in named:
        word = re.compile(rf"(?<!\w){re.escape(column)}(?!\w)")
        written = [ddl for ddl in ddls if ddl]
        if written and "`" not in column and not any(word.search(ddl) for ddl in written):
            raise UsageError(
                f"{option} {column!r} is no column of {' or '.join(map(repr, written))}"
            )
        if not written and columns is not None and column not in columns:
            raise UsageError(f"{option} {column!r} is no column of --input: {', '.join(columns)}")
