"""A chain on a stand-in for Spark: its tasks are threads that talk over real connections.

Everything else is what runs on Spark: store, locks, meeting point, workers, files and commits.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from model.vocabulary.join import S
from spark_impl.join import chain, stage, task
from spark_impl.join.task import COLUMNS

HOST = "127.0.0.1"
_KINDS = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}
_ROWS = pa.schema(
    [("worker", pa.int32()), ("stream", pa.string())]
    + [(name, _KINDS[kind]) for name, kind in COLUMNS.items()]
)
_attempts = count()
_here = threading.local()


class ThreadSession:
    """The part of a Spark session that a chain uses. A DataFrame is a table of Arrow."""

    def __init__(self) -> None:
        settings = {"spark.driver.host": HOST}
        self.sparkContext = SimpleNamespace(
            master="local[8]", getConf=lambda: settings, pythonExec="python3", environment={}
        )

    def createDataFrame(self, rows: pa.Table) -> pa.Table:  # noqa: N802 (the name is Spark's)
        """Return the rows as they are."""
        return rows


class _Stage:
    """A barrier stage: the rows of every worker, and the function that the workers run."""

    def __init__(self, rows: pa.Table | None, workers: int) -> None:
        self._parts = [[_seat(number)] for number in range(workers)]
        # Spark's shuffle promises no order.
        for row in reversed([] if rows is None else rows.to_pylist()):
            number = workers - 1 if row["stream"] == S else 0
            self._parts[number].append({**row, "worker": number})

    def mapInArrow(  # noqa: N802 (the name is Spark's)
        self, run: Callable[..., Iterator[pa.RecordBatch]], schema: object, barrier: bool
    ) -> "_Stage":
        """Remember the function."""
        assert barrier
        self._run = run
        return self

    def repartition(self, partitions: int) -> "_Stage":
        """Return the stage: it has one output anyway."""
        assert partitions == 1
        return self

    def collect(self) -> list[Any]:
        """Run all workers at the same time; return what they yield."""
        with ThreadPoolExecutor(len(self._parts)) as pool:
            jobs = [pool.submit(self._work, number) for number in range(len(self._parts))]
        rows = [row for job in jobs for row in job.result()]
        return [SimpleNamespace(asDict=lambda row=row: row) for row in reversed(rows)]

    def _work(self, number: int) -> list[dict[str, object]]:
        infos = [SimpleNamespace(address=f"{HOST}:0") for _ in self._parts]
        _here.context = SimpleNamespace(
            partitionId=lambda: number,
            getTaskInfos=lambda: infos,
            taskAttemptId=lambda: next(_attempts),
        )
        given = pa.Table.from_pylist(self._parts[number], _ROWS).to_batches(max_chunksize=3)
        return [row for batch in self._run(given) for row in batch.to_pylist()]


def _seat(number: int) -> dict[str, object]:
    return {"worker": number}


@contextmanager
def chains_on_threads() -> Iterator[ThreadSession]:
    """Yield a session on which chains run without Spark."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain, "check_slots", lambda *_: None)
        patch.setattr(stage, "check_slots", lambda *_: None)
        patch.setattr(stage, "_place_rows", lambda _, rows, workers: _Stage(rows, workers))
        patch.setattr(task, "BarrierTaskContext", SimpleNamespace(get=lambda: _here.context))
        yield ThreadSession()
