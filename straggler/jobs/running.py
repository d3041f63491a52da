"""Runs of a job on Spark: as a batch, and as a query over a stream with faults."""

import datetime as dt
import json
import logging
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from straggler.jobs.memory import Source
from straggler.jobs.rows import EPOCH, Answer, Frames, Input, Row, answers_of
from straggler.jobs.streams import KILLED, LOST_COMMIT, RESTART, Fault, Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Write: TypeAlias = Callable[["DataFrame", int], object]
SinkMaker: TypeAlias = Callable[[], tuple[Write, Callable[[], Any]]]
"""Factory of a sink: how it takes a micro-batch, and how its rows are read."""
_MANAGERS = "org.apache.spark.sql.execution.streaming.checkpointing"
NTZ = (
    "; watermarks of Spark need a timestamp: say so in the schema, or let the job begin with"
    ' .withColumn("NAME", F.col("NAME").cast("timestamp"))'
)
"""Advice on an event time that is a ``timestamp_ntz``."""
SETTINGS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_MANAGERS}.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.pollingDelay": "1ms",
    "spark.sql.streaming.numRecentProgressUpdates": "100",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings that make micro-batches of a few rows quick; none of them changes answers."""
ROCKS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
"""State that transformWithState needs."""
_SHARED_MEMORY = Path("/dev/shm")


class JobProblem(Exception):  # noqa: N818 (a fault of the job, not of this program)
    """A failure of the job: one sentence."""


class KilledError(Exception):
    """The planned death of the driver."""


def _is_unplanned(record: logging.LogRecord) -> bool:
    """Return whether a record of the log is on anything but a planned death."""
    return not (record.exc_info and isinstance(record.exc_info[1], KilledError))


class State(NamedTuple):
    """State of one operator in a micro-batch."""

    operator: str
    rows: int
    removed: int


@dataclass
class MicroBatch:
    """One micro-batch of a query, as it was last written."""

    number: int
    data: int
    """Number of the data micro-batch to whose rows it belongs; the flush has the last one."""
    answers: list[Answer]
    watermark_us: int | None = None
    states: tuple[State, ...] = ()


@dataclass
class Run:
    """The answers and watermarks of a query that ran on a stream, or the problem that it had."""

    batches: list[MicroBatch] = field(default_factory=list)
    columns: tuple[str, ...] = ()
    differing: list[str] = field(default_factory=list)
    """Sentences on micro-batches that another write answered in another way."""
    happened: list[Fault] = field(default_factory=list)
    read: list[Answer] | None = None
    """Rows that the sink of the user has in the end."""
    problem: str = ""
    """Sentence on why the query failed."""

    def answers(self, data: int | None = None) -> list[Answer]:
        """Return all answers in order, or those up to a data micro-batch."""
        kept = [each for each in self.batches if data is None or each.data <= data]
        return [answer for batch in kept for answer in batch.answers]

    @property
    def watermark_us(self) -> int | None:
        """The last watermark that a micro-batch used."""
        known = [each.watermark_us for each in self.batches if each.watermark_us is not None]
        return max(known, default=None)

    def states(self, data: int) -> tuple[State, ...]:
        """Return the states after a data micro-batch and those without data that follow it."""
        of = [each.states for each in self.batches if each.data == data and each.states]
        return of[-1] if of else ()


@dataclass(frozen=True)
class Job:
    """A job on trial, and how it is run."""

    function: Callable[..., "DataFrame"]
    inputs: tuple[Input, ...]
    is_named: bool
    """True if it takes its inputs as keyword arguments."""
    mode: str = "append"
    sink: SinkMaker | None = None

    def on(self, frames: Sequence["DataFrame"]) -> "DataFrame":
        """Call the job; raise :class:`JobProblem` if it fails or returns no frame."""
        from pyspark.sql import DataFrame

        try:
            if self.is_named:
                names = [each.name for each in self.inputs]
                found = self.function(**dict(zip(names, frames, strict=True)))
            else:
                found = self.function(*frames)
        except (Exception, SystemExit) as error:
            raise JobProblem(f"the job raised {describe(error)}") from error
        if not isinstance(found, DataFrame):
            raise JobProblem(f"the job returned {type(found).__name__}, and not a DataFrame")
        return found


def opened(sink: SinkMaker) -> tuple[Write, Callable[[], Any]]:
    """Call the factory of a sink; raise :class:`JobProblem` if it returns anything but a pair."""
    try:
        write, read = sink()
    except (Exception, SystemExit) as error:
        raise JobProblem(f"the sink made no pair of write and read: {describe(error)}") from error
    return write, read


def rows_in(read: Callable[[], Any]) -> list[Answer]:
    """Return the rows that a sink has; raise :class:`JobProblem` if they cannot be read."""
    try:
        rows = read()
        return answers_of(rows.collect() if hasattr(rows, "collect") else rows)
    except (Exception, SystemExit) as error:
        raise JobProblem(f"read() of the sink raised {describe(error)}") from error


def describe(error: BaseException) -> str:
    """Return the name of an error and the first line of its message."""
    text = str(error)
    if type(error).__name__ == "StreamingQueryException":
        text = text.rpartition("Caused by: ")[2]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if re.match(r"[A-Za-z_.]+(?:Error|Exception): ", line)]
    if "Python worker" in text and causes:  # the last line of a traceback says what happened
        return causes[-1][:300]
    said = f"{type(error).__name__}: {lines[0][:300] if lines else 'without a message'}"
    return said + NTZ * ("EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE" in said and "_NTZ" in said)


@contextmanager
def quick(spark: "SparkSession") -> Iterator[None]:
    """Let micro-batches of a session be quick and quiet, and restore its settings."""
    from spark_impl.runtime.session import VERBOSE

    jvm: Any = spark._jvm
    root = jvm.org.apache.logging.log4j.LogManager.getRootLogger()
    level = root.getLevel().toString()
    with settings(spark, SETTINGS):
        if not os.environ.get(VERBOSE):
            spark.sparkContext.setLogLevel("OFF")  # of deaths that are planned
        contexts = logging.getLogger("DataFrameQueryContextLogger")  # of errors that are told
        was_disabled, contexts.disabled = contexts.disabled, True
        bridge = logging.getLogger("py4j.clientserver")
        bridge.addFilter(_is_unplanned)
        try:
            yield
        finally:
            contexts.disabled = was_disabled
            bridge.removeFilter(_is_unplanned)
            with suppress(Exception):  # the job may have stopped the session
                spark.sparkContext.setLogLevel(level)


@contextmanager
def settings(spark: "SparkSession", chosen: Mapping[str, str]) -> Iterator[None]:
    """Set settings of a session, and restore them."""
    before = {name: spark.conf.get(name, None) for name in chosen}
    for name, value in chosen.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        with suppress(Exception):  # the job may have stopped the session
            for name, old in before.items():
                spark.conf.unset(name) if old is None else spark.conf.set(name, old)


class Runner:
    """Runs a job in a session; threads may share it."""

    def __init__(self, spark: "SparkSession", job: Job) -> None:
        self.spark, self.job = spark, job
        self.frames = Frames(spark, job.inputs)
        self.is_selection = False
        """True if the sink keeps other rows than it is given, even if it is given all at once."""

    def batch(self, rows: Sequence[Row]) -> list[Answer]:
        """Return what the job answers to rows as a batch, from its sink if that selects rows."""
        frames = [
            self.frames.frame(n, [row for row in rows if row.source == n])
            for n in range(len(self.job.inputs))
        ]
        try:
            answers = self.job.on(frames)
            if self.job.sink is None or not self.is_selection:
                return answers_of(answers.collect())
            write, read = opened(self.job.sink)
            write(answers, 0)
        except JobProblem:
            raise
        except (Exception, SystemExit) as error:
            raise JobProblem(f"the job failed as a batch: {describe(error)}") from error
        return rows_in(read)

    def streaming(self) -> "DataFrame":
        """Return the streaming frame that the job makes."""
        before = {query.id for query in self.spark.streams.active}
        try:
            frame = self.job.on(Source(self.frames).frames())
        finally:
            own = [query for query in self.spark.streams.active if query.id not in before]
            for query in own:
                query.stop()
        if own:
            raise JobProblem("the job starts a query of its own; it must return a DataFrame alone")
        if not frame.isStreaming:
            raise JobProblem("the job returned a DataFrame that is not streaming")
        return frame

    def run(self, stream: Stream, flush: Sequence[Row] = ()) -> Run:
        """Run the job as a query over a stream, and over rows that move the watermark on."""
        where = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None
        folder = tempfile.mkdtemp(prefix="straggler-job-", dir=where)
        try:
            with closing(_Query(self, folder)) as query:
                try:
                    query.feed(stream, flush)
                except JobProblem as problem:
                    query.run.problem = str(problem)
                return query.run
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class _Query:
    """One query over one stream, restarted when a fault wants it."""

    def __init__(self, runner: Runner, folder: str) -> None:
        self.runner, self.folder, self.run = runner, folder, Run()
        self.source = Source(runner.frames)
        self.frame = runner.job.on(self.source.frames())
        self.run.columns = tuple(self.frame.columns)
        self.query: StreamingQuery | None = None
        self.data = 0
        self._due: Fault | None = None
        self._calls = 0
        self._answers: dict[int, MicroBatch] = {}
        self._sink = None if runner.job.sink is None else opened(runner.job.sink)
        self._died = False

    def feed(self, stream: Stream, flush: Sequence[Row]) -> None:
        """Feed a stream, and then the rows of a flush."""
        batches = [*stream.batches, *([tuple(flush)] if flush else [])]
        chunks = self.source.chunks(batches)
        self._start()
        for number, _ in enumerate(batches):
            self.data = number
            self._due = next((each for each in stream.faults if each.batch == number), None)
            self._calls = 0
            chunks(number)
            self._wait()
            if self._due is not None and self._due.kind == RESTART:
                self.run.happened.append(self._due)
                self._due = None
                self._restart()
                self._wait()
            self._due = None
        self.close()
        if self._sink is not None:
            self.run.read = rows_in(self._sink[1])
        self.run.batches = [self._answers[number] for number in sorted(self._answers)]

    def _wait(self) -> None:
        from pyspark.errors import StreamingQueryException

        while True:
            try:
                assert self.query is not None
                self.query.processAllAvailable()
                return
            except StreamingQueryException as error:
                if not self._died:
                    raise JobProblem(f"the query failed: {describe(error)}") from error
                self._died = False
                self._restart()

    def _restart(self) -> None:
        self.close()
        self._start()

    def _start(self) -> None:
        writer = self.frame.writeStream.foreachBatch(self._take)
        writer = writer.outputMode(self.runner.job.mode).option("checkpointLocation", self.folder)
        try:
            self.query = writer.start()
        except Exception as error:
            raise JobProblem(f"Spark refuses the job: {describe(error)}") from error

    def close(self) -> None:
        """Stop the query, if it runs."""
        if self.query is None:
            return
        self._note_progress()
        with suppress(Exception):
            self.query.stop()
        self.query = None

    def _take(self, frame: "DataFrame", number: int) -> None:
        """Take the answers of a micro-batch; die if a fault is due."""
        fault, nth = self._due, self._calls
        self._calls += 1
        is_due = fault is not None and fault.kind != RESTART and nth == fault.skips
        if is_due and fault is not None and fault.kind == KILLED:
            self._die(fault)
        if self._sink is None:
            answers = answers_of(frame.collect())
        else:
            kept = frame.persist()
            answers = answers_of(kept.collect())
            self._sink[0](kept, number)
            kept.unpersist()
        before = self._answers.get(number)
        if before is not None and Counter(before.answers) != Counter(answers):
            self.run.differing.append(
                f"micro-batch {number} was written twice, with other answers the second time"
            )
        data = self.data if before is None else before.data
        self._answers[number] = MicroBatch(number, data, answers)
        if is_due and fault is not None and fault.kind == LOST_COMMIT:
            self._die(fault)

    def _die(self, fault: Fault) -> None:
        self.run.happened.append(fault)
        self._due, self._died = None, True
        raise KilledError

    def _note_progress(self) -> None:
        """Note watermarks and states of the micro-batches that ended since the last start."""
        assert self.query is not None
        for each in self.query._jsq.recentProgress():
            found = json.loads(each.json())
            batch = self._answers.get(found["batchId"])
            if batch is None or "addBatch" not in found["durationMs"]:
                continue
            watermark = found.get("eventTime", {}).get("watermark")
            if watermark:
                batch.watermark_us = moment_us(watermark)
            batch.states = tuple(
                State(each["operatorName"], each["numRowsTotal"], each["numRowsRemoved"])
                for each in found["stateOperators"]
            )


def moment_us(text: str) -> int:
    """Return a moment as Spark writes it, in microseconds since the epoch."""
    return (dt.datetime.fromisoformat(text) - EPOCH) // dt.timedelta(microseconds=1)
