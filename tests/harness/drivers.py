"""Driver processes that tests kill: a landing, a windowed query, a chain, sensor scripts.

``python -m tests.harness.drivers KIND FOLDER`` resumes what is in a folder and runs it to its end,
flush included. It prints the lines that :mod:`tests.harness.driver_kills` waits for.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import Event, JoinConfig, ScriptConfig, Workload
from spark_impl.join import ChainJoin, ChainStream, from_history
from spark_impl.runtime.histories import append, files_of, history_schema
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.queries import Sink
from spark_impl.runtime.session import session
from spark_impl.runtime.storage import Address, Location, locate
from spark_impl.runtime.systems import CASE
from spark_impl.runtime.tables import TableWriter
from spark_impl.script import ScriptQuery
from spark_impl.slack.query import SLACK
from spark_impl.watermark.query import WATERMARK
from spark_impl.windows.query import WindowedQuery
from spark_impl.windows.room import WindowRoom
from tests.harness.announcements import announced, say

LANDING, WINDOWS, CHAIN, SCRIPTS = (
    f"tests.harness.drivers {kind}" for kind in ("landing", "windows", "chain", "scripts")
)
"""Programs, as :mod:`tests.harness.driver_kills` takes them."""
PIPELINES: Mapping[str, WindowRoom[Any]] = {room.name: room for room in (SLACK, WATERMARK)}
FILES = 9
ROWS = 60
"""Number of rows of a file to land; the first row of every file cannot be read."""


# ----------------------------------------- queries with a line before and after each micro-batch


class AnnouncedLanding(Landing):
    """The landing."""

    def _land(self, rows: DataFrame, batch: int) -> None:
        with announced(batch):
            super()._land(rows, batch)


class AnnouncedQuery(WindowedQuery[Any]):
    """The windowed query."""

    def _finish(self, answers: DataFrame, batch: int, writer: TableWriter) -> None:
        with announced(batch):
            super()._finish(answers, batch, writer)


class AnnouncedStream(ChainStream):
    """The join."""

    def _epoch(self, rows: DataFrame, batch: int) -> None:
        with announced(batch):
            super()._epoch(rows, batch)


class AnnouncedScripts(ScriptQuery):
    """The script query."""

    def _finish(self, answers: DataFrame, batch: int, writer: TableWriter) -> None:
        with announced(batch):
            super()._finish(answers, batch, writer)


# ------------------------------------------------------------------------- files that drivers read


def prepare(folder: Path, workload: Workload, place: Location | None = None) -> None:
    """Write the workload of windows or scripts, and its history; it may be at another place."""
    workload.write(folder / "workload.json")
    if place is not None:
        (folder / "place").write_text(str(place), encoding="utf-8")
    for batch in workload.batches():
        rows = [{CASE: workload.name, **event._asdict()} for event in batch]
        append(place_of(folder) / "history", pa.Table.from_pylist(rows))


def prepare_chain(folder: Path, workload: Workload) -> None:
    """Write the workload of a chain, and its history."""
    workload.write(folder / "workload.json")
    for batch in workload.batches():
        append(folder / "history", both_streams(batch))


def prepare_files(folder: Path) -> None:
    """Write the files to land, in order of time."""
    (folder / "in").mkdir()
    for number in range(FILES):
        path = folder / "in" / f"{number}.json"
        rows = [{"ts": number * ROWS + at, "v": at} for at in range(ROWS)]
        rows[0] = {"ts": 1 << 60, "v": number}  # beyond all calendars
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        os.utime(path, (1_000 + number, 1_000 + number))


def place_of(folder: Path) -> Location:
    """Return the folder that holds history and store."""
    elsewhere = folder / "place"
    return locate(elsewhere.read_text(encoding="utf-8") if elsewhere.exists() else folder)


def workload_in(folder: Path) -> Workload:
    """Read the workload of a folder."""
    return Workload.from_json(json.loads((folder / "workload.json").read_text(encoding="utf-8")))


def both_streams(events: tuple[Event, ...]) -> pa.Table:
    """Return a file of a history for :func:`spark_impl.join.from_history`."""
    schema = history_schema(pa.field("stream", pa.string()))
    return pa.Table.from_pylist([event._asdict() for event in events], schema)


def sink_to(folder: Path) -> Sink:
    """Return a sink that writes the pairs of each epoch into a file, and replaces that file."""
    folder.mkdir(exist_ok=True)

    def hand_on(rows: DataFrame, epoch: int) -> None:
        scratch = folder / f".{epoch}"
        scratch.write_text(json.dumps([list(row) for row in rows.collect()]), encoding="utf-8")
        scratch.replace(folder / f"{epoch}.json")

    return hand_on


def read_sink(folder: Path) -> list[tuple[str, int, int]]:
    """Return all pairs that the sink of a chain received, sorted by query."""
    files = (folder / "handed").glob("[0-9]*.json")
    rows = (row for path in files for row in json.loads(path.read_text(encoding="utf-8")))
    return sorted((query, r_id, s_id) for query, r_id, s_id, _ in rows)


# ------------------------------------------------------------------------------------------- runs


def land(spark: SparkSession, folder: Path) -> None:
    """Land each file of ``in`` as a micro-batch."""
    source = spark.readStream.schema("ts long, v double").option("maxFilesPerTrigger", 1)
    AnnouncedLanding(
        source.json(str(folder / "in")),
        folder / "history",
        folder / "checkpoint",
        event_time="ts",
        value="v",
        time_unit="us",
    ).run_available()


def open_windows(spark: SparkSession, folder: Path, store: Address) -> AnnouncedQuery:
    """Open the query of the workload in ``folder``; Spark's own files stay on this machine."""
    workload, history = workload_in(folder), place_of(folder) / "history"
    room = PIPELINES[workload.room]
    config, checkpoint = room.read(workload.config), folder / "checkpoint"
    return AnnouncedQuery(spark, config, history, store, [CASE], checkpoint=checkpoint, room=room)


def run_windows(spark: SparkSession, folder: Path) -> None:
    """Run a windowed query, whose room the workload names."""
    open_windows(spark, folder, place_of(folder) / "store").flush()


def run_chain(spark: SparkSession, folder: Path) -> None:
    """Run a chain, which has another number of workers at every start."""
    config = JoinConfig.from_json(workload_in(folder).config)
    with (folder / "starts").open("a+", encoding="utf-8") as starts:
        starts.write("started\n")
        starts.seek(0)
        workers = 1 + len(starts.readlines()) % 3
    join = ChainJoin(
        workers,
        config.window_us,
        dict(config.queries),
        block_size=config.block_size,
        lateness_us=config.lateness_us,
    )
    plain = join.stream(*from_history(spark, folder / "history"), folder / "store")
    sink = sink_to(folder / "handed")
    stream = AnnouncedStream(plain._chain, plain._rows, sink, plain._checkpoint)
    stream.run_available()
    stream.flush()


def run_scripts(spark: SparkSession, folder: Path) -> None:
    """Run sensor scripts."""
    config = ScriptConfig.from_json(workload_in(folder).config)
    AnnouncedScripts(spark, config, folder / "history", folder / "store", [CASE]).flush()


RUNS: Mapping[str, Callable[[SparkSession, Path], None]] = {
    "landing": land,
    "windows": run_windows,
    "chain": run_chain,
    "scripts": run_scripts,
}


def main(kind: str, folder: Path) -> None:
    """Run what is in ``folder`` in a session of its own."""
    with session("local[3,2]" if kind == "chain" else None) as spark:
        RUNS[kind](spark, folder)
        say("done")


def counts_of(made: Landing) -> tuple[int, int]:
    """Return the number of rows that have landed, and of rows of ``rejected``."""
    footers = [pq.read_metadata(file.path) for file in files_of(made._history)]
    return sum(each.num_rows for each in footers), made.rejected().count()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
