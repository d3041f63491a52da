"""``straggler check``: have a Structured Streaming job judged."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.progress import Progress

from model.checking.claims import Outcome
from straggler.cli import render
from straggler.cli.commands import Command
from straggler.cli.diff import COUNTEREXAMPLES
from straggler.cli.outputs import (
    refuse_overwriting,
    refuse_unmakable,
    refuse_unwritable,
    write_json,
)
from straggler.errors import UsageError
from straggler.jobs import MODES
from straggler.options import PATH, VERBOSE, Arguments, Option, in_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

A_JOB = "a job; write MODULE:JOB"
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
    texts: dict[str, Any] = {"multiple": True, "metavar": "TEXT"}
    columns: dict[str, Any] = {"multiple": True, "metavar": "COLUMN"}
    parameters = [
        click.Argument(["job"], metavar="MODULE:JOB"),
        Option("--schema", "columns of the input in DDL, or NAME=DDL", **texts),
        Option("--input", "Parquet file of rows instead of drawn ones, or NAME=FILE", **texts),
        Option("--event-time", "column of event times, or NAME=COLUMN", **texts),
        Option("--mode", "output mode (append)", type=click.Choice(MODES), default=MODES[0]),
        Option("--key", "column with few values", "keys", **columns),
        Option("--lateness", "how late a row may be (delay of the watermark)", metavar="TEXT"),
        Option("--redelivered", "column that identifies a row", **columns),
        Option("--upsert", "column by which later answers replace", **columns),
        Option("--keeps-state", "the job keeps its state on purpose", is_flag=True),
        Option("--streams", "number of drawn streams (24)", type=int, default=24, metavar="N"),
        Option("--seed", "seed of the streams (0)", type=int, default=0, metavar="N"),
        Option("--json", "also write the report to FILE", type=PATH, metavar="FILE"),
        Option("--master", "Spark master (local[2])", metavar="URL", is_rare=True),
        VERBOSE,
        COUNTEREXAMPLES,
    ]
    return Command(summary, EXAMPLES, parameters, run)


def run(args: Arguments) -> int:
    """Judge a job and return the exit code of its outcome."""
    refuse_unwritable("--json", args.json)
    refuse_unmakable("--counterexamples", args.counterexamples)
    with render.progress() as progress, ExitStack() as stack:
        task = progress.add_task("reading options", total=None)
        schema, event_time, files = asked_inputs(args)
        refuse_overwriting(Arguments(json=args.json, input=tuple(files.values())))
        from straggler.jobs.api import judge_job, lateness_of
        from straggler.jobs.counterexamples import store_report
        from straggler.judging.systems import names_of

        names_of(args.job, A_JOB)
        with _in_options():
            lateness_of(args.lateness)
        spark = stack.enter_context(started_session(progress, args.master))
        job = load_job(args.job, spark)
        progress.update(task, description=f"judging {render.plain(args.job)}")
        given = {name: read_rows(spark, path) for name, path in files.items()}
        known = {name: frame.schema.toDDL() for name, frame in given.items()}
        if isinstance(schema, dict):
            schema = {name: ddl or known[name] for name, ddl in schema.items()}
        rows = given or None if isinstance(schema, dict) else given.get("")
        schema = schema or known[""]
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
        with _in_options():
            report = judge_job(job, spark, **asked, **more, rows=rows, name=args.job)
    out = render.console(args.json)
    told = re.sub(r"\b(redelivered|upsert)=(?= names|$)", r"--\1", str(report), flags=re.M)
    render.print_lines(out, told.splitlines())
    write_json(args.json, report.to_json())
    if report.rows is not None:
        path = store_report(args.counterexamples, args.job, asked, report)
        again = f"Stored in {path}; run it again with: straggler replay {path} --trust"
        render.print_lines(out, ["", again])
    elif report.outcome is Outcome.BROKEN and report.table:
        render.print_lines(out, ["", "No counterexample: the rows cannot be stored as data."])
    return render.EXIT_CODES[report.outcome]


@contextmanager
def started_session(progress: Progress, master: str | None) -> Iterator["SparkSession"]:
    """Give a session, and say before that it starts, which takes seconds."""
    from straggler.judging.systems import open_session

    (task,) = progress.task_ids
    progress.update(task, description="starting Spark")
    render.print_lines(progress.console, ["starting Spark"])
    with open_session(master) as spark:
        yield spark


def load_job(reference: str, spark: "SparkSession") -> "Callable[..., Any]":
    """Return the job that ``MODULE:JOB`` names.

    The module is imported while the session runs: user-defined functions and columns of a module
    need one, and a module that gets a session of its own is given this one. Raise
    :class:`UsageError` if there is no such job, or if its module stops the session.
    """
    from straggler.jobs.api import is_stopped
    from straggler.judging.systems import load_function

    job = load_function(reference, A_JOB, "function")
    if is_stopped(spark):
        raise UsageError(f"importing {reference.partition(':')[0]!r} stops the Spark session")
    return job


@contextmanager
def _in_options() -> Iterator[None]:
    """Name options, not arguments of Python, in a refusal."""
    try:
        yield
    except UsageError as error:
        same = ("event_time", "lateness", "redelivered", "upsert")
        others = {"keys": "--key", "rows": "--input"}
        raise UsageError(in_options(str(error), same, others)) from error


def read_rows(spark: Any, path: str) -> Any:
    """Return the rows of a Parquet file; raise :class:`UsageError` if Spark cannot read it."""
    try:
        return spark.read.parquet(path)
    except Exception as error:
        first = str(error).partition("\n")[0]
        raise UsageError(f"--input {path!r} cannot be read: {first}") from error


def asked_inputs(
    args: Arguments,
) -> tuple[str | dict[str, str], str | dict[str, str], dict[str, str]]:
    """Return schemas, columns of event times, and files of rows by input.

    A schema is empty if the file has it; the name of the only input is, too. Raise
    :class:`UsageError` for what does not fit. Spark takes seconds to start, and says the rest.
    """
    if not args.event_time:
        raise UsageError("--event-time is missing; it names the column of event times")
    if not args.schema and not args.input:
        raise UsageError("--schema is missing; it lists the columns of the input")
    schema = by_name("--schema", args.schema, "schemas are NAME=DDL") if args.schema else ""
    files = asked_files(args, schema)
    if not schema and files and "" not in files:
        schema = dict.fromkeys(files, "")
    if isinstance(schema, str) and len(args.event_time) == 1:
        (event_time,) = args.event_time  # a name may have an equals sign
    else:
        event_time = by_name("--event-time", args.event_time, "event times are NAME=COLUMN")
    ddls = schema if isinstance(schema, dict) else {"": schema}
    times = event_time if isinstance(event_time, dict) else dict.fromkeys(ddls, event_time)
    for name in times:
        if name not in ddls:
            raise UsageError(f"--event-time {name!r} is the name of no --schema")
    for name in ddls:
        if name not in times:
            raise UsageError(f"--event-time is missing for {name!r}; write {name}=COLUMN")
    refuse_misfits(args, ddls, times, files)
    return schema, event_time, files


def asked_files(args: Arguments, schema: str | dict[str, str]) -> dict[str, str]:
    """Return the files of rows by input, of whose schemas some are known."""
    if not args.input:
        return {}
    if isinstance(schema, str) and len(args.input) == 1:
        return {"": args.input[0]}
    found = by_name("--input", args.input, "files are NAME=FILE")
    if isinstance(found, str) and isinstance(schema, dict) and len(schema) == 1:
        return dict.fromkeys(schema, found)
    if isinstance(found, str):
        raise UsageError(f"--input {found!r} has no name; several files are NAME=FILE")
    if isinstance(schema, str) and schema:
        raise UsageError(f"--schema {schema!r} has no name; several schemas are NAME=DDL")
    for name in schema if isinstance(schema, dict) else ():
        if name not in found:
            raise UsageError(f"--input is missing for {name!r}; write {name}=FILE")
    for name in found if schema else ():
        if name not in schema:
            raise UsageError(f"--input {name!r} is the name of no --schema")
    return found


def refuse_misfits(
    args: Arguments, ddls: Mapping[str, str], times: Mapping[str, str], files: Mapping[str, str]
) -> None:
    """Refuse columns and types that do not fit, unless only Spark can read one of the schemas."""
    # Imported here because it takes a while that a wrong option does not need.
    from straggler.jobs.api import inputs_of
    from straggler.jobs.schemas import flat_schema

    known: dict[str, StructType] = {}
    for name, ddl in ddls.items():
        file = file_schema(Path(files[name]), times[name]) if name in files else None
        found = flat_schema(name or "input", ddl) if ddl else file
        if found is None:
            return
        has = [each.lower() for each in (file or found).names]
        for column in found.names:
            if column.lower() not in has:
                raise UsageError(f"--schema names {column!r}, which is no column of --input")
        known[name or "input"] = found
    at = {name or "input": column for name, column in times.items()}
    with _in_options():
        inputs_of(known, at, keys=args.keys, redelivered=args.redelivered)


def file_schema(path: Path, event_time: str) -> "StructType | None":
    """Return the schema of a Parquet file; None if only Spark can say it, as of a folder.

    Raise :class:`UsageError` for a file that Spark does not read.
    """
    import pyarrow as pa
    from pyarrow import parquet
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import from_arrow_schema

    if not path.is_file():
        if path.exists() or re.search(r"[*?\[{:]", str(path)):  # a pattern or an address
            return None
        raise UsageError(f"--input {str(path)!r} does not exist")
    try:
        with parquet.ParquetFile(path) as file:
            columns, schema = file.schema, file.schema_arrow
    except pa.ArrowInvalid as error:
        hint, made = "", path.with_suffix(".parquet")
        if made != path:
            # Each time is read alone: a wrong one becomes a null, and no other one does.
            steps = (
                "import pandas",
                f"rows = pandas.read_csv({str(path)!r})",
                f"at = {event_time!r}",
                "how = dict(errors='coerce', format='mixed', utc=True)",
                "rows[at] = pandas.to_datetime(rows[at], **how)",
                f"rows.to_parquet({str(made)!r}, coerce_timestamps='us')",
            )
            line = re.sub(r'[$`"\\]', r"\\\g<0>", "; ".join(steps))
            hint = f'; python -c "{line}" makes one of a CSV file'
        said = f"--input {str(path)!r} is no Parquet file that can be read{hint}"
        raise UsageError(said) from error
    except (OSError, pa.ArrowException):
        return None
    for column in map(columns.column, range(len(columns))):
        if re.match("Timestamp.*nanoseconds", str(column.logical_type)):
            raise UsageError(
                f"--input {str(path)!r} has nanoseconds in {column.path!r}, which Spark does not"
                " read; pandas writes microseconds with coerce_timestamps='us'"
            )
    try:
        return from_arrow_schema(schema)
    except PySparkTypeError:
        return None


def by_name(option: str, given: tuple[str, ...], several: str) -> str | dict[str, str]:
    """Return what is given for the only input, or for each one by name."""
    if len(given) == 1 and not re.match(r"\w+=", given[0]):
        return given[0]
    found: dict[str, str] = {}
    for name, equals, value in (text.partition("=") for text in given):
        if not (equals and name.isidentifier()):
            raise UsageError(f"{option} {name!r} has no name; several {several}")
        if name in found:
            raise UsageError(f"{option} {name!r} is given twice")
        found[name] = value
    return found
