"""Public functions that have a Spark job judged."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis.strategies import SearchStrategy

from model.checking.claims import Outcome, Verdict
from model.vocabulary.durations import duration_us, write_duration
from model.vocabulary.settings import JsonObject
from straggler.errors import UsageError
from straggler.jobs import APPEND, MODES
from straggler.jobs.check import LIMIT_S, Check, begin, calibrate, run_stages
from straggler.jobs.counterexamples import Failing, plain_rows, read_rows, replay, store_report
from straggler.jobs.plans import EXACT
from straggler.jobs.report import JobReport, table_of
from straggler.jobs.rows import Input
from straggler.jobs.running import ROCKS, Job, JobProblem, SinkMaker, quick, settings
from straggler.jobs.schemas import spark_schema
from straggler.jobs.threads import HangsError, map_in_order
from straggler.jobs.verdicts import verdicts_of
from straggler.judging.counterexamples import FOLDER
from straggler.judging.systems import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from spark_impl.runtime.cell_times import Duration

STREAMS = 24
HANGS = "the job hangs: a stream made no progress for minutes"
STOPPED = "the job stopped the Spark session"


class JobBroken(AssertionError):  # noqa: N818 (what is asserted is in the name)
    """A job breaks a claim; ``report`` says which one, and on which stream."""

    report: JobReport


class JobUndetermined(AssertionError):  # noqa: N818
    """A job breaks no claim, and was not put to the test; ``report`` says why."""

    report: JobReport


def check_job(
    job: "Callable[..., DataFrame]",
    spark: "SparkSession | None" = None,
    *,
    allow_undetermined: bool = False,
    folder: Path = FOLDER,
    **asked: Any,
) -> JobReport:
    """Have a Structured Streaming job judged; raise unless every claim holds.

    Raise :class:`JobBroken` or :class:`JobUndetermined` with the report.

    Args:
        job: the job of :func:`judge_job`.
        spark: the session of :func:`judge_job`.
        allow_undetermined: True if a job that was not put to the test is let pass.
        folder: folder for the rows that break a claim, which ``straggler replay`` runs again.
        **asked: the other arguments of :func:`judge_job`.

    Examples:
        >>> asked = {"schema": schema, "event_time": "at", "streams": 2}
        >>> report = check_job(minutes, spark, allow_undetermined=True, **asked)
    """
    __tracebackhide__ = True  # pytest shows the line of the caller
    try:
        signature(judge_job).bind(job, spark, **asked)
    except TypeError as misfit:
        msg = f"check_job(): {misfit}"
        raise TypeError(msg) from None
    report = judge_job(job, spark, **asked)
    fine = (Outcome.HOLDS, Outcome.UNDETERMINED) if allow_undetermined else (Outcome.HOLDS,)
    if report.outcome in fine:
        return report
    kind = JobBroken if report.outcome is Outcome.BROKEN else JobUndetermined
    stored = "" if asked.get("sink") else _stored(job, report, asked, folder)
    error = kind(f"\n{report}{stored}")
    error.report = report
    raise error


def _stored(
    job: "Callable[..., DataFrame]", report: JobReport, asked: JsonObject, folder: Path
) -> str:
    """Store the rows that break a job, if there are any, and return lines that say so."""
    if report.rows is None:
        return ""
    module, name = job.__module__, getattr(job, "__qualname__", "job")
    try:
        path = store_report(Path(folder), f"{module}:{name}", asked, report)
    except Exception as error:  # which must not hide that the job is broken
        return f"\n\nThe rows are not stored: {error}"
    how = "--trust" if _is_found(job, module, name) else "--system MODULE:JOB"
    return f"\n\nStored in {path}; run it again with: straggler replay {path} {how}"


def _is_found(job: "Callable[..., DataFrame]", module: str, name: str) -> bool:
    """Return whether another process finds a job by its name, from the current folder."""
    loaded, here = sys.modules.get(module), Path.cwd().joinpath(*module.split("."))
    file = Path(getattr(loaded, "__file__", None) or "").resolve()
    is_there = file in (here.with_suffix(".py"), here / "__init__.py")
    return getattr(loaded, name, None) is job and (is_there or "site-packages" in file.parts)


def judge_job(
    job: "Callable[..., DataFrame]",
    spark: "SparkSession | None" = None,
    *,
    schema: "str | StructType | Mapping[str, str | StructType]",
    event_time: str | Mapping[str, str],
    mode: str = APPEND,
    columns: Mapping[str, SearchStrategy[Any]] | None = None,
    keys: Sequence[str] = (),
    lateness: "Duration | None" = None,
    upsert: Sequence[str] | None = None,
    redelivered: Sequence[str] = (),
    sink: SinkMaker | None = None,
    rows: Any = None,
    keeps_state: bool = False,
    streams: int = STREAMS,
    seed: int = 0,
    name: str = "",
) -> JobReport:
    """Return the report on a Structured Streaming job (docs/your-job.md).

    Raise :class:`straggler.errors.UsageError` with one sentence if the job cannot be run at all.

    Args:
        job: function from a streaming DataFrame to another one; a job with several inputs takes
            them as keyword arguments.
        spark: session that runs the job; None takes the active one, or starts one.
        schema: columns of the input, in DDL or as a ``StructType``; a dict of them for several
            inputs, by name.
        event_time: column of event times, a ``timestamp``, or a ``timestamp_ntz`` if the job has no
            watermark, or casts it first; a dict for several inputs.
        mode: output mode, ``"append"``, ``"update"`` or ``"complete"``.
        columns: Hypothesis strategies of columns, by name; those of other columns follow from the
            schema.
        keys: columns with few values, one of them more frequent than the others.
        lateness: how late a row may be, such as ``"10 seconds"``; None takes the delay of the job's
            own watermark.
        upsert: in update mode, the columns of the answer that a later answer replaces; None takes
            those that the job groups by.
        redelivered: columns that identify a row; if there are any, rows also come twice. If a job
            drops duplicates by some columns, these count as named here.
        sink: function that returns a pair: ``write(frame, batch)`` as for ``foreachBatch``, and
            ``read()``, which returns the rows. They are compared with those of another such pair
            that gets all answers at once. None judges what Spark hands on.
        rows: recorded rows to put through the network, as dicts, a pandas or a Spark DataFrame;
            None draws rows.
        keeps_state: True if the job keeps its state on purpose.
        streams: number of drawn streams.
        seed: whole number; the same seed draws the same streams.
        name: name of the job in the report; ``""`` takes that of the function.

    Examples:
        >>> from pyspark.sql import functions as F
        >>> def minutes(readings):
        ...     timed = readings.withWatermark("at", "10 seconds")
        ...     return timed.groupBy("device", F.window("at", "1 minute")).agg(F.sum("watts"))
        >>> schema = "device string, at timestamp, watts double"
        >>> report = judge_job(minutes, spark, schema=schema, event_time="at")
        >>> str(report.outcome)
        'holds'
    """
    started = time.monotonic()
    with begun(
        job, spark, schema=schema, event_time=event_time, mode=mode, columns=columns, keys=keys,
        lateness=lateness, upsert=upsert, redelivered=redelivered, sink=sink, rows=rows, seed=seed,
    ) as check:  # fmt: skip
        label = name or getattr(job, "__name__", "the job")
        return _judge(check, label, streams, started, keeps_state=keeps_state)


def replay_job(
    job: "Callable[..., DataFrame]",
    spark: "SparkSession",
    record: JsonObject,
    **asked: Any,
) -> tuple[Outcome, list[str]]:
    """Run a job on stored rows; return whether it is wrong still, and what is to be shown."""
    with begun(job, spark, **asked) as check:
        try:
            failing = read_rows(check.reference.runner.frames, record)
        except Exception as error:
            first = str(error).partition("\n")[0]
            raise UsageError(f"the rows of the counterexample cannot be read: {first}") from error
        try:
            with _one_sentence(spark):
                return within_limit(lambda: replay(check, failing))
        except JobProblem as problem:
            return Outcome.UNDETERMINED, [str(problem)]


@contextmanager
def begun(
    job: "Callable[..., DataFrame]",
    spark: "SparkSession | None",
    *,
    mode: str = APPEND,
    lateness: "Duration | None" = None,
    sink: SinkMaker | None = None,
    upsert: Sequence[str] | None = None,
    rows: Any = None,
    seed: int = 0,
    **of_inputs: Any,
) -> Iterator[Check]:
    """Give the check of a job whose plan was read; raise :class:`UsageError` if it cannot run."""
    if mode not in MODES:
        raise UsageError(f"mode is {mode!r}; it must be one of {', '.join(MODES)}")
    from pyspark.sql import SparkSession

    lateness_us = lateness_of(lateness)
    chosen = spark or SparkSession.getActiveSession()
    with open_session() if chosen is None else nullcontext(chosen) as session:
        inputs = inputs_of(**of_inputs)
        tried = Job(job, inputs, isinstance(of_inputs["schema"], Mapping), mode, sink)
        with quick(session):
            try:
                with _one_sentence(session, "the job hangs before Spark runs it"):
                    check = within_limit(
                        lambda: begin(session, tried, seed, lateness_us, upsert, rows)
                    )
            except JobProblem as problem:
                raise UsageError(str(problem)) from problem
            with settings(session, ROCKS if check.shape.needs_rocks else {}):
                yield check


T = TypeVar("T")


def within_limit(call: Callable[[], T]) -> T:
    """Return what a call returns; raise :class:`HangsError` if it lasts too long."""
    (found,) = map_in_order(lambda _: call(), [None], threads=1, limit_s=LIMIT_S)
    return found


@contextmanager
def _one_sentence(session: "SparkSession", hangs: str = HANGS) -> Iterator[None]:
    """Raise :class:`JobProblem` if the job hangs, or stops the session."""
    try:
        yield
    except HangsError as error:
        _stop_all(session)
        raise JobProblem(hangs) from error
    except Exception as error:
        if is_stopped(session):
            raise JobProblem(STOPPED) from error
        raise


def is_stopped(session: "SparkSession") -> bool:
    """Return whether a session, or its context, has been stopped."""
    context = session._jsc
    return context is None or context.sc().isStopped()


def _judge(
    check: Check, label: str, streams: int, started: float, *, keeps_state: bool
) -> JobReport:
    problem, runner = "", check.reference.runner
    try:
        with _one_sentence(runner.spark):
            edges, drawn, problem = within_limit(lambda: calibrate(check, streams))
            if not problem:
                run_stages(check, edges, drawn, keeps_state=keeps_state)
    except JobProblem as error:
        problem = str(error)
    if problem and is_stopped(runner.spark):
        problem = STOPPED
    elif problem and check.failed:  # while the failing stream was made smaller
        check.doubts.append(problem)
        problem = ""
    if problem:
        verdicts = [Verdict(EXACT, Outcome.UNDETERMINED, problem)]
    else:
        verdicts = [*verdicts_of(check, keeps_state=keeps_state)]
    table, rows = [], None
    if check.failed and not check.failed.is_refused and not problem:
        table = table_of(check.failed, check.shape, check.job.inputs)
        failing = Failing(check.claim, check.failed.stream, check.reference.flush)
        rows = plain_rows(runner.frames, failing)
    return JobReport(
        label,
        tuple(verdicts),
        check.seed,
        check.streams,
        tuple(dict.fromkeys(each.sentence for each in check.remarks)),
        tuple(table),
        dict(check.guards),
        time.monotonic() - started,
        rows,
    )


def _stop_all(session: "SparkSession") -> None:
    with suppress(Exception):  # what hangs may not let itself be stopped
        session.sparkContext.cancelAllJobs()
        for query in session.streams.active:
            query.stop()


def lateness_of(given: "Duration | None") -> int | None:
    """Return a lateness in microseconds; raise :class:`UsageError` if it is none."""
    if given is None:
        return None
    try:
        found = duration_us("lateness", given)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if found < 0:
        raise UsageError(f"lateness is {write_duration(found)}; it must be a duration >= 0")
    return found


def inputs_of(
    schema: "str | StructType | Mapping[str, str | StructType]",
    event_time: str | Mapping[str, str],
    columns: Mapping[str, SearchStrategy[Any]] | None = None,
    keys: Sequence[str] = (),
    redelivered: Sequence[str] = (),
) -> tuple[Input, ...]:
    """Return the inputs of a job; raise :class:`UsageError` for a column that does not fit."""
    from pyspark.sql import types as sql

    schemas = dict(schema) if isinstance(schema, Mapping) else {"input": schema}
    if not schemas:
        raise UsageError("schema is an empty dict; a job has at least one input")
    columns = columns or {}
    inputs: list[Input] = []
    known: list[str] = []
    for name, given in schemas.items():
        found = spark_schema(name, given)
        at = event_time if isinstance(event_time, str) else event_time.get(name, "")
        if at not in found.names:
            have = ", ".join(found.names)
            raise UsageError(f"event_time is {at!r}, which is no column of {name}; it has {have}")
        if not isinstance(found[at].dataType, sql.TimestampType | sql.TimestampNTZType):
            kind = found[at].dataType.simpleString()
            raise UsageError(f"event_time {at!r} is a {kind}; it must be a timestamp")
        known += found.names
        mine = {each: strategy for each, strategy in columns.items() if each in found.names}
        identity = tuple([each for each in redelivered if each in found.names])
        inputs.append(
            Input(name, found, at, tuple([k for k in keys if k in found.names]), identity, mine)
        )
    for what, names in (("columns", columns), ("keys", keys), ("redelivered", redelivered)):
        for each in names:
            if each not in known:
                raise UsageError(f"{what} names {each!r}, which is no column of the schema")
    for of in inputs:
        of.values()  # which refuses a type without values
    return tuple(inputs)
