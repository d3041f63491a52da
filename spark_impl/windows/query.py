"""The streaming query over windows: whatever says how long to wait, the rest is the same."""

import os
from collections.abc import Callable, Collection
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Generic

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from spark_impl.runtime.histories import either
from spark_impl.runtime.queries import Run, paths
from spark_impl.windows import sink
from spark_impl.windows.blocks import block_schema, pack_files
from spark_impl.windows.correction import Corrections
from spark_impl.windows.history import History, check_source
from spark_impl.windows.processor import WindowProcessor
from spark_impl.windows.room import ConfigT, Room
from spark_impl.windows.shares import PATH, Shares
from spark_impl.windows.slots import SLOT, slots
from spark_impl.windows.store import Store, open_store
from spark_impl.windows.tables import tables

FEW_TASKS = 16
"""So many may read a file, each for itself; arrivals of more tasks travel."""


class WindowedQuery(Generic[ConfigT]):
    """Windows over a history that wait as long as the rule of a room says.

    ``source`` is a history: a folder of Parquet files, one micro-batch each, in the order of their
    modification times (``runtime.histories`` writes such folders). ``store`` is the folder for
    what the query finds; whoever opens it again goes on where the query stopped. Both have to be
    reachable under the same path from the driver and from all workers.

    ``group_columns`` are further columns of the history; every combination of their values is a
    query of its own.

    Raises :class:`InputProblem` with one sentence, and writes nothing, when the
    source cannot be read or the store belongs to another query; and when it is to run while another
    query, here or elsewhere, writes the same store.
    """

    def __init__(
        self,
        spark: SparkSession,
        room: Room[ConfigT],
        config: ConfigT,
        source: str | Path,
        store: str | Path,
        group_columns: Collection[str] = (),
    ) -> None:
        self._spark = spark
        self._room = room
        self._config = config
        self._asked = room.asked(config)
        self._source = _as_spark_has_it(source)
        taken = set(chain.from_iterable(tables(room).values()))
        groups = check_source(self._source, taken, group_columns)
        self._store = open_store(_as_spark_has_it(store), room, config, groups)
        self._history = History(spark, self._asked, self._source, groups)
        self._reached: int | None = None
        self._corrections = Corrections(self._asked, self._store, self._history)
        self._run = Run(spark)

    @property
    def store(self) -> Store:
        """Where the answers are."""
        return self._store

    def run_available(self) -> None:
        """Process everything that is in the source now, one file a micro-batch."""
        self._run.to_the_end(self._store.root, partial(self._begin, availableNow=True))

    def start(self, interval: str = "0 seconds") -> StreamingQuery:
        """Start the query and leave it running; files are taken as they come."""
        begin = partial(self._begin, processingTime=interval)
        return self._run.alone(self._store.root, begin)[0]

    def flush(self, wanted: Callable[[tuple[Any, ...]], bool] | None = None) -> None:
        """Process what is in the source, then close all windows and correct what is pending.

        ``wanted`` chooses among the combinations of the grouping columns' values. The request is
        durable: a flush that was interrupted is carried out, once, by the next run.
        """
        self.run_available()
        known = self._store.known_tasks()
        rows = [who for who in known if wanted is None or wanted(who[:-1])]
        if rows:
            self._store.request_flush(rows)
            self.run_available()

    def _begin(self, held: BinaryIO, **trigger: Any) -> StreamingQuery:
        # Only now is it sure that nobody else makes a store of it, or adds to it.
        open_store(self._store.root, self._room, self._config, self._store.groups)
        self._corrections = Corrections(self._asked, self._store, self._history)
        checkpoint = self._store.checkpoint
        return self._run.begin(held, self._answers(), checkpoint, self._finish, **trigger)

    def _answers(self) -> DataFrame:
        """The stream part: where tasks stand after a micro-batch; the rest they have written."""
        asked, store = self._asked, self._store
        travel = bool(store.groups) or asked.tasks > FEW_TASKS
        processor = WindowProcessor(
            self._room,
            self._config,
            store.by[:-1],
            None if travel else Shares(asked, store.control),
            sink.writer(store, asked),
        )
        # One source, for Spark takes its time to look into each.
        return (
            (self._blocks() if travel else self._slots())
            .groupBy(*store.by[:-1], SLOT)
            .transformWithState(
                processor,
                outputStructType=from_arrow_schema(store.schema("progress")),
                outputMode="append",
                timeMode="none",
            )
        )

    def _slots(self) -> DataFrame:
        """A row for every task and file."""
        every = F.explode(F.lit([*slots(self._asked.tasks)]))
        return self._paths().select(every.alias(SLOT), PATH)

    def _blocks(self) -> DataFrame:
        """A row for every task and file that has arrivals for it, and these arrivals."""
        store = self._store
        pack = partial(
            pack_files,
            control=store.control,
            groups=store.groups,
            asked=self._asked,
            slots=slots(self._asked.tasks),
        )
        return self._paths().mapInArrow(pack, from_arrow_schema(block_schema(store.groups)))

    def _paths(self) -> DataFrame:
        """One source, for Spark takes its time to look into each."""
        return paths(self._spark, either(self._source, self._store.control))

    def _finish(self, answers: DataFrame, batch: int) -> None:
        """Everything that a micro-batch writes; Spark calls for it, again after a crash."""
        self._history.refuse_empty()
        if self._reached is not None and self._asked.corrects:
            self._history.read_ahead(self._reached)
        self._store.begin(batch)
        progress = answers.toArrow().cast(self._store.schema("progress"))
        self._corrections.run(batch, progress)
        self._reached = pc.max(progress.column("seq")).as_py()


def _as_spark_has_it(path: str | Path) -> Path:
    """The absolute path without ``..``, which Spark takes out of the names of files."""
    return Path(os.path.abspath(path))
