"""A windowed query whose tasks kill their executors.

``python -m tests.harness.windows_executor_deaths FOLDER`` takes the folder of
:mod:`tests.harness.windows_driver` and runs the query on two executors, each in its own process.
Two tasks end their executor with SIGKILL, once each: one that has written its tables of
``FATAL_BATCH`` but has not reported it yet, and one of a correction that has read its part of the
history. Each writes the number of the ended process into the folder ``killed``.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from spark_impl.runtime.session import session
from spark_impl.windows import history, processor
from tests.harness import windows_driver
from tests.harness.driver_kills import end_executor_once

MASTER = "local-cluster[2,1,1024]"
FATAL_BATCH = 1
_Function = Callable[..., Any]


def main(folder: Path) -> None:
    """Run the query in ``folder`` to its end, through both deaths."""
    killed = folder / "killed"
    killed.mkdir(exist_ok=True)
    writer, reader = processor.table_writer, history.row_group_reader

    def fatal_writer(store: Any, settings: Any) -> processor.Write:
        write = writer(store, settings)

        def run(rows: Sequence[processor.OutputRow], batch: int, part: int) -> None:
            write(rows, batch, part)
            if batch == FATAL_BATCH:
                end_executor_once(killed / "micro-batch")

        return run

    def fatal_reader(*given: Any) -> _Function:
        read = reader(*given)

        def run(number: int) -> Any:
            pieces = list(read(number))
            end_executor_once(killed / "correction")
            return iter(pieces)

        return run

    processor.table_writer = fatal_writer
    history.row_group_reader = fatal_reader  # type: ignore[assignment]  # takes any arguments
    history.ROWS_ON_DRIVER = 0
    with session(MASTER) as spark:
        windows_driver.run(spark, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
