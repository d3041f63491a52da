"""``straggler check``: have a Structured Streaming job judged."""

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
      --schema trades="id int, at timestamp" --event-time at

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
        Option("--event-time", "column of event times", "event_time", metavar="COLUMN"),
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
    if args.event_time is None:
        raise UsageError("--event-time is missing; it names the column of event times")
    if not args.schema and args.input is None:
        raise UsageError("--schema is missing; it lists the columns of the input")
    from straggler.jobs.api import judge_job
    from straggler.jobs.counterexamples import store
    from straggler.judging.systems import load_function, open_session

    job = load_function(args.job, "a job; write MODULE:JOB", "function")

    with render.progress() as progress, open_session(args.master) as spark:
        progress.add_task(f"judging {render.plain(args.job)}", total=None)
        schema: Any = schemas_of(args.schema)
        rows = None
        if args.input is not None:
            rows = read_rows(spark, args.input)
            schema = schema or rows.schema.simpleString()
        asked = {
            "schema": schema,
            "event_time": args.event_time,
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


def schemas_of(given: tuple[str, ...]) -> str | dict[str, str]:
    """Return the schema of the only input, or that of each one by name."""
    named = [text.partition("=") for text in given]
    if len(given) == 1 and not named[0][1]:
        return given[0]
    for name, equals, _ in named:
        if not (equals and name.isidentifier()):
            raise UsageError(f"--schema {name!r} has no name; several schemas are NAME=DDL")
    return {name: ddl for name, _, ddl in named}
