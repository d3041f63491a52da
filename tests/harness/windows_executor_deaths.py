"""A windowed query whose tasks end their processes, and a driver whose executors die that way.

``python -m tests.harness.windows_executor_deaths FOLDER`` takes the folder of
:mod:`tests.harness.windows_driver` and runs the query on two executors, each in its own process.
Two tasks end their executor with SIGKILL, once each: one that has written its tables of
``FATAL_BATCH`` but has not reported it yet, and one of a correction that has read its part of the
history. Each writes the number of the ended process into the folder ``killed``.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from spark_impl.runtime.session import session
from spark_impl.windows import history, processor
from tests.harness import windows_driver
from tests.harness.driver_kills import end_executor_once

MASTER = "local-cluster[2,1,1024]"
FATAL_BATCH = 1
DEATHS = ("correction", "micro-batch")
"""Notes of the two deaths."""
_Function: TypeAlias = Callable[..., Any]


def fatal_writer(killed: Path, end: Callable[[Path], None]) -> _Function:
    """Return a ``table_writer`` whose tasks end once, when they have written ``FATAL_BATCH``."""
    writer = processor.table_writer

    def make(store: Any, settings: Any) -> processor.Write:
        write = writer(store, settings)

        def run(rows: Sequence[processor.TaskOutput], batch: int, name: str) -> None:
            write(rows, batch, name)
            if batch == FATAL_BATCH:
                end(killed / "micro-batch")

        return run

    return make


def fatal_reader(killed: Path, end: Callable[[Path], None]) -> _Function:
    """Return a ``row_group_reader`` whose tasks end once, when they have read a row group."""
    reader = history.row_group_reader

    def make(*given: Any) -> _Function:
        read = reader(*given)

        def run(number: int) -> Any:
            pieces = list(read(number))
            end(killed / "correction")
            return iter(pieces)

        return run

    return make


def main(folder: Path) -> None:
    """Run the query in ``folder`` to its end, through both deaths."""
    killed = folder / "killed"
    killed.mkdir(exist_ok=True)
    processor.table_writer = fatal_writer(killed, end_executor_once)
    history.row_group_reader = fatal_reader(killed, end_executor_once)
    history.ROWS_ON_DRIVER = 0
    with session(MASTER) as spark:
        windows_driver.run(spark, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
