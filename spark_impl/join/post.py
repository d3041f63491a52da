"""The post of a worker in a stage: its connections with the driver, neighbours, and bringers.

The first epoch of a stage gets its rows from Spark, as the input of the task. The rows of later
epochs are brought to the workers by the tasks of a short Spark job.

Rules of this file:

* The driver says what the next epoch is, and which rows have been brought completely. Others, of a
  task that Spark ran again, count for nothing.
* A worker ends if the driver's connection is closed, or if nothing is announced for too long.
* Whoever brings rows shows the token of the attempt.
"""

import logging
import select
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import BarrierTaskContext, TaskContext

from model.vocabulary.join import R, S
from model.vocabulary.settings import JsonObject
from spark_impl.join.messages import FrameProblem, encode_json
from spark_impl.join.rendezvous import (
    Meeting,
    Place,
    host_of_worker,
    join_neighbours,
    meet,
    token_of,
)
from spark_impl.join.transport import GREETING_S, Address, Door, greet, listen, read_json

IDLE_S = 60.0
"""Time without an epoch after which the driver starts another stage."""
_ALONE_S = 2 * IDLE_S
"""Time after which a worker for which no epoch is announced ends by itself."""
_ALIVE_S = 60
"""Silence after which the operating system asks whether the driver's machine is still there."""
BROUGHT = pa.schema([(name, pa.int64()) for name in ("part", "task", "r", "s")])
"""Output of a task that brings rows: its part of them, its run, and its rows of each stream."""
log = logging.getLogger("straggler.join")


class Brought(NamedTuple):
    """Rows that a task has brought to a worker."""

    task: int
    """The number that Spark gave to this run of the task."""
    rows: int


class Post:
    """The post of one worker."""

    def __init__(
        self,
        attempt: str,
        driver: socket.socket,
        neighbours: Mapping[int, socket.socket],
        door: Door,
        patience_s: float,
    ) -> None:
        self.attempt = attempt
        self.neighbours = neighbours
        self._driver = driver
        self._door = door
        self._patience_s = patience_s
        self._brought: dict[int, pa.Table] = {}
        """Rows that were brought since the last order, by task."""

    def report(self, summary: JsonObject) -> None:
        """Tell the driver about an epoch; it notices by itself if that fails."""
        self._driver.settimeout(self._patience_s)
        with suppress(OSError):
            self._driver.sendall(encode_json(summary))

    def next_order(self, *, is_idle: bool = False) -> JsonObject | None:
        """Wait for the order of the next epoch; return ``None`` if none will come.

        A worker that ``is_idle``, while others work, ends with its left neighbour.
        Rows that are brought meanwhile are there for :meth:`take_brought`.
        """
        end = float("inf") if is_idle else time.monotonic() + _ALONE_S
        watched: list[socket.socket | Door] = [self._driver, self._door]
        left = [self.neighbours[min(self.neighbours)]] if is_idle else []
        watched += left
        while (left_s := end - time.monotonic()) > 0:
            ready, _, _ = select.select(watched, [], [], min(left_s, GREETING_S))
            if self._driver in ready:
                try:
                    order = read_json(self._driver, time.monotonic() + GREETING_S)
                except (OSError, FrameProblem):  # the driver needs no worker any more
                    return None
                if "epoch" in order:
                    return order
                end = float("inf")  # rows are on their way
            elif any(each in ready for each in left):
                return None
            for connection, greeting in self._door.wait(0.0):
                with connection:
                    self._accept(connection, greeting.get("task"))
        return None

    def take_brought(self, wanted: Iterable[Brought], nothing: pa.Table) -> pa.Table:
        """Return the rows that the driver wants; ``nothing`` has their columns.

        Raise ``RuntimeError`` if some are missing.
        """
        found = [nothing]
        brought, self._brought = self._brought, {}
        for task, rows in wanted:
            own = brought.get(task, nothing)
            if own.num_rows != rows:
                msg = f"task {task} has brought {own.num_rows} of {rows} rows"
                raise RuntimeError(msg)
            found.append(own.select(nothing.column_names).cast(nothing.schema))
        return pa.concat_tables(found)

    def _accept(self, connection: socket.socket, task: object) -> None:
        """Take the rows of a task, which are complete or count for nothing."""
        connection.settimeout(self._patience_s)
        try:
            connection.sendall(encode_json({}))
            with connection.makefile("rb") as file, pa.ipc.open_stream(file) as rows:
                table = rows.read_all()
            if isinstance(task, int):
                self._brought[task] = table
            connection.sendall(encode_json({}))
        except (OSError, pa.ArrowInvalid) as error:
            log.warning("rows of task %r are refused: %s", task, error)


@contextmanager
def take_post(
    place: Place, context: BarrierTaskContext, patience_s: float, *, stays: bool
) -> Iterator[Post]:
    """Meet the driver and the other workers; close all connections at the end.

    Errors are those of :func:`spark_impl.join.rendezvous.meet` and
    :func:`spark_impl.join.rendezvous.join_neighbours`.
    """
    number = context.partitionId()
    host = host_of_worker(place, context.getTaskInfos()[number].address)
    with listen(host) as listener:
        address = listener.getsockname()[:2]
        meeting, driver = meet(place, number, context.taskAttemptId(), address)
        neighbours: dict[int, socket.socket] = {}
        door = Door(listener, token_of(place, meeting))
        try:
            driver.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if hasattr(socket, "TCP_KEEPIDLE"):
                driver.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _ALIVE_S)
            neighbours |= join_neighbours(door, number, meeting, place)
            if not stays:
                door.close()
            yield Post(meeting.attempt, driver, neighbours, door, patience_s)
        finally:
            for connection in (driver, *neighbours.values()):
                connection.close()
            door.close()


def bring_rows(
    batches: Iterable[pa.RecordBatch], meeting: Meeting, place: Place, workers: int
) -> Iterator[pa.RecordBatch]:
    """Bring the rows of a part of an epoch to those of its workers where their streams enter."""
    context = TaskContext.get()
    assert context is not None
    parts = [*batches]
    if not parts:
        return
    rows, task = pa.Table.from_batches(parts), context.taskAttemptId()
    streams: dict[Address, list[str]] = {}
    for stream, number in ((R, 0), (S, workers - 1)):
        streams.setdefault(meeting.addresses[number], []).append(stream)
    for address, names in streams.items():
        own = rows.filter(pc.is_in(rows.column("stream"), pa.array(names, pa.string())))
        if own.num_rows:
            _bring(own, task, address, token_of(place, meeting), place.timeout_s)
    counts = [pc.sum(pc.equal(rows.column("stream"), each)).as_py() or 0 for each in (R, S)]
    told = dict(zip(BROUGHT.names, [context.partitionId(), task, *counts], strict=True))
    yield pa.RecordBatch.from_pylist([told], BROUGHT)


def _bring(rows: pa.Table, task: int, address: Address, token: str, timeout_s: float) -> None:
    """Bring rows to a worker. Raise ``ConnectionError`` unless it says that it has them."""
    deadline = time.monotonic() + timeout_s
    try:
        with greet(address, {"token": token, "task": task}, timeout_s) as connection:
            read_json(connection, deadline)
            with connection.makefile("wb") as file, pa.ipc.new_stream(file, rows.schema) as out:
                out.write_table(rows)
            read_json(connection, deadline)
    except (OSError, FrameProblem) as error:
        msg = f"a worker takes no rows: {error}"
        raise ConnectionError(msg) from error


def wanted_by(brought: Sequence[tuple[int, ...]], number: int, workers: int) -> list[Brought]:
    """Return what tasks have brought to a worker, in the order of the parts, from their output."""
    found = []
    for _, task, r, s in sorted(brought):
        rows = r * (number == 0) + s * (number == workers - 1)
        if rows:
            found.append(Brought(task, rows))
    return found
