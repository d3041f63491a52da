"""The driver process of a query whose executors die: ``python -m properties.windows.cluster``.

Takes a folder as :mod:`properties.windows.driver` does and runs the query on two executors,
processes of their own. Two tasks take their executor with them, by SIGKILL, each once: one of
micro-batch ``FATAL_BATCH`` that has written its tables and has not said so yet, and one of a
correction that has read its part of the history. Each leaves a note in ``killed``: the number of
the process.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from properties.windows import driver
from spark_impl.runtime.session import session
from spark_impl.windows import history, sink
from tests.harness.driver_kills import end_executor_once

MASTER = "local-cluster[2,1,1024]"
FATAL_BATCH = 1
_Function = Callable[..., Any]


def main(folder: Path) -> None:
    """Run the query in ``folder`` to its end."""
    killed = folder / "killed"
    killed.mkdir(exist_ok=True)
    writer, reader = sink.writer, history._reader

    def fatal_writer(store: Any, asked: Any) -> sink.Write:
        write = writer(store, asked)

        def run(rows: Sequence[Mapping[str, Any]], batch: int, part: int) -> None:
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

    sink.writer = fatal_writer
    history._reader = fatal_reader  # type: ignore[assignment]
    history.ROWS_ON_DRIVER = 0
    with session(MASTER) as spark:
        driver.run(spark, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
