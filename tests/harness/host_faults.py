"""A command of ``straggler`` on a cluster, during which something happens to one of its hosts.

``python -m tests.harness.host_faults FOLDER MOMENT COMMAND ...`` runs the command. When a task
reaches the moment on any host but the first, it writes the name of its host into ``FOLDER/struck``
and waits until the test has acted and written ``FOLDER/over``. A task on a host that is killed
waits until then. So the test certainly acts in the middle of that task. Only the first task that
reaches the moment waits.
"""

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from spark_impl.grouping import tasks
from spark_impl.join import system
from spark_impl.join.chain import Chain
from spark_impl.join.task import Options
from spark_impl.join.transport import Links
from spark_impl.runtime import operators
from spark_impl.windows import history
from straggler.cli.main import main as straggler
from tests.harness.hosts import NAMES

STRUCK, OVER = "struck", "over"
"""Files: the host whose task waits, and that the test has acted."""
WAIT_S = 240
Strike = Callable[[object], None]


def striker(folder: Path) -> Strike:
    """Return a function that a task calls at the moment; it takes and ignores one argument.

    Workers get the function itself, because they cannot import this module.
    """
    first = NAMES[0]
    struck, over, wait_s = folder / STRUCK, folder / OVER, WAIT_S

    def strike(_moment: object = None) -> None:
        host = socket.gethostname()
        if host == first or struck.exists():
            return
        scratch = folder / f".{host}-{os.getpid()}"
        scratch.write_text(host, encoding="ascii")
        try:
            os.link(scratch, struck)  # appears with its content, and only once
        except FileExistsError:
            return
        ends_s = time.monotonic() + wait_s
        while not over.exists():
            if time.monotonic() > ends_s:
                msg = f"nothing has happened to {host}"
                raise RuntimeError(msg)
            time.sleep(0.02)

    return strike


def in_epoch(strike: Strike) -> None:
    """Strike a worker of a chain in the middle of epoch 1."""

    def links(number: int, epoch: int, *given: Any) -> Links:
        if epoch == 1:
            strike(None)
        return Links(number, epoch, *given)

    def chain(spark: Any, config: Any, store: Any, options: Options) -> Chain:
        return Chain(spark, config, store, options=options._replace(links=links))

    setattr(system, "Chain", chain)  # noqa: B010 (mypy protects it)


def in_routing(strike: Strike) -> None:
    """Strike a sender of room ``grouping`` that has routed and written its micro-batch 1."""
    run = tasks._run_sender

    def run_sender(*given: Any, **named: Any) -> Iterator[Any]:
        yield from run(*given, **named)
        part, _sender = named["senders"][0]
        if part.standing.batch == 1:
            strike(None)

    tasks._run_sender = run_sender


def in_micro_batch(strike: Strike) -> None:
    """Strike a task of windows or scripts that has written its tables of micro-batch 1."""
    writer = operators.table_writer

    def table_writer(store: Any, tables_of: Any) -> operators.Write:
        write = writer(store, tables_of)

        def run(outputs: Sequence[Any], batch: int, name: str) -> None:
            write(outputs, batch, name)
            if batch == 1:
                strike(None)

        return run

    operators.table_writer = table_writer


def in_correction(strike: Strike) -> None:
    """Strike a task of a correction that has read its part of the history."""
    right = history.row_group_reader

    def row_group_reader(reader: Any, groups: Any, times: Any) -> Callable[[int], Iterator[Any]]:
        read = right(reader, groups, times)

        def run(number: int) -> Iterator[Any]:
            found = list(read(number))
            strike(None)
            return iter(found)

        return run

    history.row_group_reader = row_group_reader
    history.ROWS_ON_DRIVER = 0


MOMENTS: Mapping[str, Callable[[Strike], None]] = {
    each.__name__: each for each in (in_epoch, in_routing, in_micro_batch, in_correction)
}


def main(folder: Path, moment: str, command: list[str]) -> int:
    """Run a command of ``straggler`` and return its exit code."""
    MOMENTS[moment](striker(folder))
    return straggler(command)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
