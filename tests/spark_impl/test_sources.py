"""The source of queries: every file once and in order, every request when it is due.

Most tests run without Spark. The machine does what Spark does with a source: it asks for the next
micro-batch, notes its end, commits it, and after a crash asks again for the last one that it noted.
"""

import json
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from spark_impl.runtime import histories
from spark_impl.runtime.histories import compact, file_of, next_number, write_parquet
from spark_impl.runtime.sources import HistoryReader, Offset, _register
from spark_impl.runtime.storage import locate

ROWS = pa.table({"seq": [1]})
STEPS = 30
FEW = 2
"""Number of files that become one."""


class Spark(RuleBasedStateMachine):
    """A query that resumes after every crash, while its history and its requests grow."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="straggler-source-")
        self.history = locate(Path(self.folder.name, "history"))
        self.requests = locate(Path(self.folder.name, "control"))
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(histories, "MERGED", FEW)

    @initialize(
        files=st.integers(1, 3),
        is_mixed=st.booleans(),
        first=st.sampled_from([0, 1, 7]),
        is_empty=st.booleans(),
    )
    def begin(self, files: int, is_mixed: bool, first: int, is_empty: bool) -> None:
        self.files, self.is_mixed = files, is_mixed
        self.first = self.next = first
        self.requested: dict[str, int] = {}
        if not is_empty:
            self.files_come(1)
        self.batches: list[list[str]] = []
        self.committed = 0
        self.reader = self.open_reader()
        self.log = [self.reader.initialOffset()]
        self.end: int | None = None

    def open_reader(self) -> HistoryReader:
        return HistoryReader(self.history, self.requests, self.files, is_mixed=self.is_mixed)

    @rule(count=st.integers(1, 3))
    def files_come(self, count: int) -> None:
        for _ in range(count):
            write_parquet(ROWS, file_of(self.history, self.next))
            self.next += 1

    @rule(ahead=st.integers(0, 2))
    def request_comes(self, ahead: int) -> None:
        number = next_number(self.history) + ahead
        name = f"{number:08d}-{len(self.requested)}.parquet"
        (self.requests / name).write_bytes(b"")
        self.requested[name] = number

    @rule()
    def files_are_merged(self) -> None:
        compact(self.history)

    @precondition(lambda self: self.committed == len(self.batches))
    @rule()
    def plan(self) -> None:
        """Ask for the next micro-batch."""
        start = self.log[-1]
        rows, end = self.reader.read(start)
        paths = [path for (path,) in rows]
        self.require_spent()
        due = sorted(name for name in self.requested if self.is_due(name, start))
        last = self.next if self.end is None else min(self.next, self.end)
        first = self.next_file(start)
        files = range(first, min(last, first + self.files))
        if due and not self.is_mixed:
            files = range(0)
        wanted = [file_of(self.history, number) for number in files]
        assert paths == [str(each) for each in [*wanted, *(self.requests / name for name in due)]]
        if paths:
            self.log.append(json.loads(json.dumps(end)))
            self.batches.append(paths)
            self.require_repeatable()
        else:
            assert end == start

    def next_file(self, start: Offset) -> int:
        """Return the number of the file that follows an offset; the first may be any."""
        return self.first if start["next"] < 0 else int(start["next"])

    def is_due(self, name: str, start: Offset) -> bool:
        known = str(self.requests / name) in (path for batch in self.batches for path in batch)
        next_file = self.next_file(start) if next_number(self.history) else 0
        return not known and self.requested[name] <= next_file

    def require_spent(self) -> None:
        """Assert that requests are gone once the micro-batch after theirs was committed."""
        spent = {Path(path).name for batch in self.batches[:-1] for path in batch}
        assert not spent & {file.name for file in self.requests.children()}

    @precondition(lambda self: self.committed < len(self.batches))
    @rule()
    def commit(self) -> None:
        self.committed += 1

    @rule(loses_commit=st.booleans(), is_available_now=st.booleans())
    def restart(self, loses_commit: bool, is_available_now: bool) -> None:
        if loses_commit and self.batches:
            self.committed = len(self.batches) - 1
        self.reader, self.end = self.open_reader(), None
        if is_available_now:
            self.reader.prepareForTriggerAvailableNow()
            self.end = self.next
        self.require_repeatable()

    def require_repeatable(self) -> None:
        """Assert that the last micro-batch can be repeated, whether or not it was committed."""
        if self.batches:
            again = [path for (path,) in self.reader.readBetweenOffsets(*self.log[-2:])]
            assert again == self.batches[-1]
            assert all(locate(path).exists() for path in again if "control" in path)

    def teardown(self) -> None:
        try:
            if hasattr(self, "log"):
                self.require_everything()
        finally:
            self.patch.undo()
            self.folder.cleanup()

    def require_everything(self) -> None:
        """Assert that the query reads its whole history, and all requests up to its end."""
        self.restart(loses_commit=False, is_available_now=True)
        self.committed = -1
        while self.committed < len(self.batches):
            self.committed = len(self.batches)
            self.plan()
        names = [Path(path).name for batch in self.batches for path in batch]
        files = [file_of(self.history, number).name for number in range(self.first, self.next)]
        assert [name for name in names if name not in self.requested] == files
        due = [
            name for name, number in self.requested.items() if number <= next_number(self.history)
        ]
        assert sorted(name for name in names if name in self.requested) == sorted(due)


def test_every_file_comes_once_and_in_order() -> None:
    run_state_machine_as_test(Spark, settings=settings(stateful_step_count=STEPS))


@pytest.mark.parametrize("before", [None, "the user's"])
def test_the_active_session_stays_that_of_the_user(before: str | None) -> None:
    active, seen = [before], list[str | None]()
    sessions = SimpleNamespace(
        getActiveSession=lambda: Option(active[-1]),
        setActiveSession=active.append,
        clearActiveSession=lambda: active.append(None),
    )
    spark: Any = SimpleNamespace(
        _jsparkSession="the query's",
        dataSource=SimpleNamespace(register=lambda _: seen.append(active[-1])),
        _jvm=namespace_of("org.apache.spark.sql.classic.SparkSession", sessions),
    )
    _register(spark)
    assert seen == ["the query's"]
    assert active[-1] == before


class Option(NamedTuple):
    """An option of Scala."""

    value: str | None

    def isDefined(self) -> bool:  # noqa: N802 (the name is Scala's)
        """Return whether there is a value."""
        return self.value is not None

    def get(self) -> str | None:
        """Return the value."""
        return self.value


def namespace_of(path: str, value: object) -> object:
    """Return an object whose attributes lead to a value."""
    for name in reversed(path.split(".")):
        value = SimpleNamespace(**{name: value})
    return value
