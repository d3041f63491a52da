"""A driver process of a windowed query that tests kill.

``python -m tests.harness.windows_driver FOLDER`` takes a folder with ``workload.json`` and
``history``, and runs the query to its end, flush included. History and store are elsewhere if the
file ``place`` says so. The workload names the room. The driver prints its progress, one line per
step: ``started``; ``begin 3`` and ``end 3`` around ``foreachBatch`` of micro-batch 3; ``done``.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import Workload
from spark_impl.runtime.histories import append
from spark_impl.runtime.session import session
from spark_impl.runtime.storage import Address, Location, locate
from spark_impl.runtime.systems import CASE
from spark_impl.runtime.tables import TableWriter
from spark_impl.slack.query import SLACK
from spark_impl.watermark.query import WATERMARK
from spark_impl.windows.query import WindowedQuery
from spark_impl.windows.room import WindowRoom
from tests.harness.announcements import announced, say

PIPELINES: Mapping[str, WindowRoom[Any]] = {room.name: room for room in (SLACK, WATERMARK)}


class AnnouncedQuery(WindowedQuery[Any]):
    """The windowed query, with a line before and after each micro-batch."""

    def _finish(self, answers: DataFrame, batch: int, writer: TableWriter) -> None:
        with announced(batch):
            super()._finish(answers, batch, writer)


def prepare(folder: Path, workload: Workload, place: Location | None = None) -> None:
    """Write the files that :func:`main` reads: the workload, and its history by micro-batch."""
    workload.write(folder / "workload.json")
    if place is not None:
        (folder / "place").write_text(str(place), encoding="utf-8")
    for batch in workload.batches():
        rows = [{CASE: workload.name, **event._asdict()} for event in batch]
        append(place_of(folder) / "history", pa.Table.from_pylist(rows))


def place_of(folder: Path) -> Location:
    """Return the folder that holds history and store."""
    elsewhere = folder / "place"
    return locate(elsewhere.read_text(encoding="utf-8") if elsewhere.exists() else folder)


def workload_in(folder: Path) -> Workload:
    """Read the workload that :func:`prepare` wrote."""
    return Workload.from_json(json.loads((folder / "workload.json").read_text(encoding="utf-8")))


def main(folder: Path) -> None:
    """Resume the query in ``folder`` in a session of its own, and run it to its end."""
    with session() as spark:
        run(spark, folder)


def run(spark: SparkSession, folder: Path) -> None:
    """Resume the query in ``folder`` in a running session."""
    query = opened(spark, folder, place_of(folder) / "store")
    say("started")
    query.flush()
    say("done")


def opened(spark: SparkSession, folder: Path, store: Address) -> AnnouncedQuery:
    """Open the query of the workload in ``folder``; Spark's own files stay on this machine."""
    workload, history = workload_in(folder), place_of(folder) / "history"
    room = PIPELINES[workload.room]
    config, checkpoint = room.read(workload.config), folder / "checkpoint"
    return AnnouncedQuery(spark, config, history, store, [CASE], checkpoint=checkpoint, room=room)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
