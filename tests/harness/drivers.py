"""Queries that announce their micro-batches, and a driver of a windowed one that tests kill.

``python -m tests.harness.drivers FOLDER`` resumes what is in a folder and runs it to its end, flush
included. It announces micro-batches, and prints ``done`` at its end.
"""

import json
import os
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from model.vocabulary import Event, SlackConfig, WatermarkConfig, Workload
from model.vocabulary.windows import Late
from sim.kernel.log import simulate_arrivals
from sim.scenarios import umts
from spark_impl.join import ChainStream
from spark_impl.runtime.histories import append, files_of, history_schema
from spark_impl.runtime.landing import Landing
from spark_impl.runtime.session import session
from spark_impl.runtime.storage import Location, locate
from spark_impl.runtime.systems import CASE
from spark_impl.runtime.tables import TableWriter
from spark_impl.script import ScriptQuery
from spark_impl.slack import SLACK
from spark_impl.watermark import WATERMARK
from spark_impl.windows.query import WindowedQuery
from spark_impl.windows.room import WindowRoom
from straggler.rooms import find_room
from tests.harness.announcements import announced, say

PIPELINES: Mapping[str, WindowRoom[Any]] = {room.name: room for room in (SLACK, WATERMARK)}
FILES = 9
ROWS = 60
"""Number of rows of a file to land; the first row of every file cannot be read."""
BATCHES = 4
GAMMA: dict[str, Any] = {"tasks": 2, "gamma_us": 1_000_000}
MEDIAN: dict[str, Any] = {"aggregate": "median", "keyed": False, "corrections": True}
QUERIES = {
    "slack": SlackConfig(1_000_000, 200_000, max_slack_us=20_000, **GAMMA),
    "watermark": WatermarkConfig(500_000, 200_000, 100_000, k=8, **MEDIAN, **GAMMA),
}
"""Windowed query of each room."""


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
    """Write the workload of windows, and its history; it may be at another place."""
    workload.write(folder / "workload.json")
    if place is not None:
        (folder / "place").write_text(str(place), encoding="utf-8")
    for batch in workload.batches():
        rows = [{CASE: workload.name, **event._asdict()} for event in batch]
        for row in rows:
            del row["more"]
        append(place_of(folder) / "history", pa.Table.from_pylist(rows))


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


def both_streams(events: tuple[Event, ...]) -> pa.Table:
    """Return a file of a history for :func:`spark_impl.join.from_history`."""
    schema = history_schema(pa.field("stream", pa.string()))
    return pa.Table.from_pylist([event._asdict() for event in events], schema)


def windows_workload(room: str, seed: int) -> Workload:
    """Return a windowed query of a few phones for half a minute.

    Some tuples are late: other phones are taken until they are.
    """
    for more in count():
        events = simulate_arrivals(umts(seed + more, messages=60), seed).events
        cuts = tuple(len(events) * batch // BATCHES for batch in range(1, BATCHES))
        config = QUERIES[room].to_json()
        workload = Workload(room, events, config, cuts, seed=seed, name=f"query of {room}")
        if find_room(room).reference()(workload).of(Late):
            break
    return workload


# ------------------------------------------------------------------------------------------- runs


def main(folder: Path) -> None:
    """Run the query of ``folder`` in a session of its own; Spark's files stay on this machine."""
    text, place = (folder / "workload.json").read_text(encoding="utf-8"), place_of(folder)
    workload, checkpoint = Workload.from_json(json.loads(text)), folder / "checkpoint"
    room = PIPELINES[workload.room]
    places = place / "history", place / "store"
    with session() as spark:
        AnnouncedQuery(
            spark, room.read(workload.config), *places, [CASE], checkpoint=checkpoint, room=room
        ).flush()
        say("done")


def counts_of(made: Landing) -> tuple[int, int]:
    """Return the number of rows that have landed, and of rows of ``rejected``."""
    footers = [pq.read_metadata(file.path) for file in files_of(made._history)]
    return sum(each.num_rows for each in footers), made.rejected().count()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
