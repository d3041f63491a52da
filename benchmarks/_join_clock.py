"""Clocks inside the workers of a chain: how long each part of a task takes."""

import json
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pyarrow as pa

from spark_impl.join import task
from spark_impl.join.admission import Intake
from spark_impl.join.index import Index
from spark_impl.join.rendezvous import Place
from spark_impl.join.side import Side
from spark_impl.join.store import ChainStore
from spark_impl.join.task import Plan, run_task
from spark_impl.join.transport import Links
from spark_impl.join.worker import Worker
from spark_impl.runtime.histories import RowFile

INPUT, WAITING, REST = "input from Spark", "waiting for neighbours", "loop, and the rest"
PARTS: dict[str, list[tuple[Any, str]]] = {
    "decoding of inputs": [(task, "_read_arrivals")],
    "state, read and written": [(task, "_make_worker"), (task, "encode_state")],
    "rendezvous": [(task, "meet_neighbours")],
    "admission": [(Intake, "admit")],
    "messages": [(Links, "exchange"), (Links, "part"), (Links, "close")],
    "index": [(Index, "update"), (Index, "renumber")],
    "finding pairs": [(Side, "probe")],
    "stores": [
        (Side, name)
        for name in ("append", "send_oldest", "release", "drop_below", "oldest_with", "least_ts")
    ],
    "protocol": [(Worker, name) for name in ("admit", "receive", "work", "arrivals_to_admit")],
    "files": [(RowFile, "write"), (RowFile, "__exit__"), (ChainStore, "write")],
}
"""Functions of each part; time counts for the innermost part."""


class Spent(NamedTuple):
    """Seconds that one task took; moments are seconds since 1970."""

    epoch: int
    begun: float
    ended: float
    wall: dict[str, float]
    """Wall-clock time, by part."""
    cpu: dict[str, float]
    """Processor time, by part."""


class _Clocks:
    """Wall-clock and processor time of the innermost part that is open."""

    def __init__(self) -> None:
        self.wall: defaultdict[str, float] = defaultdict(float)
        self.cpu: defaultdict[str, float] = defaultdict(float)
        self._open = [REST]
        self._since = time.perf_counter(), time.process_time()

    def turn(self) -> None:
        """Book the time since the last call."""
        now = time.perf_counter(), time.process_time()
        self.wall[self._open[-1]] += now[0] - self._since[0]
        self.cpu[self._open[-1]] += now[1] - self._since[1]
        self._since = now

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the time of a block for a part."""
        self.turn()
        self._open.append(name)
        try:
            yield
        finally:
            self.turn()
            self._open.pop()

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its time counted for a part."""

        @wraps(function)
        def call(*given: Any, **named: Any) -> Any:  # whatever the function takes and returns
            with self.part(name):
                return function(*given, **named)

        return call

    def pull(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what Spark delivers."""
        rest = iter(batches)
        while True:
            with self.part(INPUT):
                batch = next(rest, None)
            if batch is None:
                return
            yield batch


def run_timed(
    batches: Iterable[pa.RecordBatch], plan: Plan, place: Place, into: str
) -> Iterator[pa.RecordBatch]:
    """Run a task as :func:`spark_impl.join.task.run_task` does, and note its times in a file."""
    begun = time.time()
    clocks = _Clocks()
    opened = Links.__init__

    def open_links(self: Links, *given: Any) -> None:
        opened(self, *given)
        selector = self._selector
        selector.select = clocks.timed(WAITING, selector.select)  # type: ignore[method-assign]  # clocked

    with ExitStack() as stack:
        for name, functions in PARTS.items():
            for owner, function in functions:
                timed = clocks.timed(name, getattr(owner, function))
                stack.enter_context(patch.object(owner, function, timed))
        stack.enter_context(patch.object(Links, "__init__", open_links))
        summaries = list(run_task(clocks.pull(batches), plan, place))
    clocks.turn()
    spent = Spent(plan.epoch, begun, time.time(), dict(clocks.wall), dict(clocks.cpu))
    (Path(into) / f"{uuid.uuid4().hex}.json").write_text(json.dumps(spent), "utf-8")
    yield from summaries


def read_spent(folder: Path) -> dict[int, list[Spent]]:
    """Return what the tasks noted, by epoch."""
    found: dict[int, list[Spent]] = {}
    for file in folder.iterdir():
        spent = Spent(*json.loads(file.read_text("utf-8")))
        found.setdefault(spent.epoch, []).append(spent)
    return found
