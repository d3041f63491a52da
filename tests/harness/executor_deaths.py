"""Queries whose tasks end their executors with SIGKILL, each once.

``python -m tests.harness.executor_deaths KIND FOLDER`` runs a query of
:mod:`tests.harness.drivers` on executors that are processes of their own. A note in
``FOLDER/killed`` holds the number of each ended process.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from model.vocabulary import JoinConfig
from spark_impl.join.chain import Chain
from spark_impl.join.messages import Block
from spark_impl.join.store import STATE, ChainStore
from spark_impl.join.system import rows_of
from spark_impl.join.task import Options
from spark_impl.join.transport import Links
from spark_impl.runtime.session import session
from spark_impl.runtime.storage import Location
from spark_impl.windows import history, processor
from tests.harness import drivers
from tests.harness.announcements import say
from tests.harness.driver_kills import end_executor_once

WINDOWS, CHAIN = (f"tests.harness.executor_deaths {kind}" for kind in ("windows", "chain"))
"""Programs, as :mod:`tests.harness.driver_kills` takes them."""
FATAL_BATCH = 1
IN_WINDOWS = ("correction", "micro-batch")
"""Notes: a task that has read its part of the history, and one that has written its tables of
``FATAL_BATCH`` but has not reported it yet."""
IN_CHAIN = ("in the middle", "while writing")
"""Notes: in the middle of the protocol in epoch 1, after half of the writing in epoch 2."""
WORKERS = 3
EPOCHS = len(IN_CHAIN) + 1
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


def run_windows(folder: Path, killed: Path) -> None:
    """Run a windowed query on two executors."""
    processor.table_writer = fatal_writer(killed, end_executor_once)
    history.row_group_reader = fatal_reader(killed, end_executor_once)
    history.ROWS_ON_DRIVER = 0
    with session("local-cluster[2,1,1024]") as spark:
        drivers.run_windows(spark, folder)


class DeadlyStore(ChainStore):
    """A store in which a worker dies between writing its results and writing its state."""

    def write(self, kind: str, batch: int, rows: pa.Table, name: str = "") -> Location:
        """Write some rows, or die instead."""
        if (kind, batch) == (STATE, 2) and rows.column("number").to_pylist() == [WORKERS - 1]:
            end_executor_once(Path(self.root.parent.path, "killed", IN_CHAIN[1]))
        return super().write(kind, batch, rows, name)


def run_chain(folder: Path, killed: Path) -> None:
    """Run all epochs of a chain on three executors, then the flush."""

    class DeadlyLinks(Links):
        """Connections of a worker that dies as it sends the first block of epoch 1."""

        def exchange(self, outgoing: Any, wait_s: float) -> Any:
            if (self.number, self.epoch) == (1, 1) and any(
                isinstance(m, Block) for _, m in outgoing
            ):
                end_executor_once(killed / IN_CHAIN[0])
            return super().exchange(outgoing, wait_s)

    workload = drivers.workload_in(folder)
    config = JoinConfig.from_json(workload.config)
    with session(f"local-cluster[{WORKERS},1,1024]") as spark:
        options = Options(recording=True, links=DeadlyLinks)
        chain = Chain(spark, config, folder / "store", options=options)
        chain.store = DeadlyStore(chain.store.root)
        for events in workload.batches():
            chain.advance(rows_of(spark, events))
        chain.advance(None)


def main(kind: str, folder: Path) -> None:
    """Run what is in ``folder`` to its end, through all deaths."""
    killed = folder / "killed"
    killed.mkdir(exist_ok=True)
    {"windows": run_windows, "chain": run_chain}[kind](folder, killed)
    say("done")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
