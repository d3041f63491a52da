"""A driver process of a chain over two streams that tests kill.

``python -m tests.harness.join_driver FOLDER`` resumes the chain in a folder and runs it to its end,
flush included. Every start gives the chain another number of workers. The driver prints the lines
that :mod:`tests.harness.driver_kills` waits for.
"""

import json
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from model.vocabulary import Event, JoinConfig, Workload
from spark_impl.join import ChainJoin, ChainStream, from_history
from spark_impl.join.query import Sink
from spark_impl.runtime.histories import append, history_schema
from spark_impl.runtime.session import session
from tests.harness.announcements import announced, say

MASTER = "local[3,2]"


class AnnouncedStream(ChainStream):
    """The join, with a line before and after each micro-batch."""

    def _epoch(self, rows: DataFrame, batch: int) -> None:
        with announced(batch):
            super()._epoch(rows, batch)


def prepare(folder: Path, workload: Workload) -> None:
    """Write what :func:`main` reads: the workload, and its arrivals by micro-batch."""
    workload.write(folder / "workload.json")
    for batch in workload.batches():
        append(folder / "history", both_streams(batch))


def both_streams(events: tuple[Event, ...]) -> pa.Table:
    """Return a file of a history for :func:`spark_impl.join.from_history`."""
    schema = history_schema(pa.field("stream", pa.string()))
    return pa.Table.from_pylist([event._asdict() for event in events], schema)


def workload_in(folder: Path) -> Workload:
    """Read the workload that :func:`prepare` wrote."""
    return Workload.from_json(json.loads((folder / "workload.json").read_text(encoding="utf-8")))


def main(folder: Path) -> None:
    """Resume the join in ``folder`` and run it to its end."""
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
    with session(MASTER) as spark:
        plain = join.stream(*from_history(spark, folder / "history"), folder / "store")
        stream = AnnouncedStream(
            plain._chain, plain._rows, sink_to(folder / "handed"), plain._checkpoint
        )
        say("started")
        stream.run_available()
        stream.flush()
        say("done")


def sink_to(folder: Path) -> Sink:
    """Return a sink that writes the pairs of each epoch into a file, and replaces that file."""
    folder.mkdir(exist_ok=True)

    def hand_on(rows: DataFrame, epoch: int) -> None:
        scratch = folder / f".{epoch}"
        scratch.write_text(json.dumps([list(row) for row in rows.collect()]), encoding="utf-8")
        scratch.replace(folder / f"{epoch}.json")

    return hand_on


def read_sink(folder: Path) -> list[tuple[str, int, int]]:
    """Return all pairs that the sink received, sorted by query."""
    files = (folder / "handed").glob("[0-9]*.json")
    rows = (row for path in files for row in json.loads(path.read_text(encoding="utf-8")))
    return sorted((query, r_id, s_id) for query, r_id, s_id, _ in rows)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
