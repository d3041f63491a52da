"""Writers of one history lose and double nothing, whatever becomes of their locks.

Every writer does what a landing does with a micro-batch: it asks its lock, reads how far the
history is, writes a scratch file, asks again, and publishes. Between any two of these steps it may
stand still while the file of the lock is removed, and others go on.
"""

import shutil
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from spark_impl.runtime import locks
from spark_impl.runtime.histories import append, file_of, files_of, next_number, write_parquet
from spark_impl.runtime.locks import LOCK, Lease, Lock, require_held
from spark_impl.runtime.storage import InputProblem, Location, NameTaken, locate

WRITERS = 3
STEPS, EXAMPLES = 30, 30
TAKEN, UNLOCKED, REFUSED, TWO, OVER = (
    "another writer had the name",
    "a lock was lost before publishing",
    "a second writer was refused",
    "two writers took themselves for the only one, one after the other",
    "a lease ran out",
)
MET: Counter[str] = Counter()


class Writer:
    """A driver that lands rows."""

    def __init__(self) -> None:
        self.lock: Lock | None = None
        self.is_suspended = False
        self.planned: tuple[Location, Location] | None = None
        """Scratch file of a micro-batch, and the name that it is to get."""

    def stop(self) -> None:
        """Give the lock back, twice."""
        self.planned = None
        if self.lock is not None:
            self.lock.release()
            self.lock.release()
            self.lock = None


def require_sentence(problem: InputProblem, begin: str) -> None:
    """Require that a problem is one sentence with this beginning."""
    assert str(problem).startswith(begin)
    assert "\n" not in str(problem)


def is_busy(writer: Writer) -> bool:
    """Return whether a writer has a micro-batch to publish."""
    return writer.planned is not None


class Publishing(RuleBasedStateMachine):
    """A history, its writers, and somebody who removes the file of the lock."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="straggler-publishing-"))
        self.history = locate(self.folder / "history")
        self.writers = [Writer() for _ in range(WRITERS)]
        self.published: dict[str, bytes] = {}
        self.rows = self.scratch = 0
        self.now_s = 0.0
        self.patch = pytest.MonkeyPatch()
        silent = SimpleNamespace(start=lambda: None)
        real = threading
        self.patch.setattr(
            locks,
            "threading",
            SimpleNamespace(Event=real.Event, Lock=real.Lock, Thread=lambda **_: silent),
        )
        clock = SimpleNamespace(monotonic=lambda: self.now_s, sleep=self.pass_time)
        self.patch.setattr(locks, "time", clock)
        self.patch.setattr(locks, "PATIENCE_S", 0)

    def teardown(self) -> None:
        """Remove everything."""
        for each in self.writers:
            each.stop()
        self.patch.undo()
        shutil.rmtree(self.folder)

    @initialize(is_leased=st.booleans())
    def choose_locks(self, is_leased: bool) -> None:
        """Lock with leases, or by the operating system."""
        (self.history / LOCK if is_leased else self.history).make()

    def pass_time(self, seconds: float) -> None:
        """Let time pass, in which leases are renewed."""
        self.now_s += seconds
        for each in self.writers:
            if isinstance(each.lock, Lease) and not each.is_suspended:
                each.lock._renew_once()

    @precondition(lambda self: not all(map(is_busy, self.writers)))
    @rule(data=st.data(), rows=st.integers(1, 3))
    def begin(self, data: st.DataObject, rows: int) -> None:
        """Begin a micro-batch of a writer, which starts if need be, and write the scratch file."""
        others = [each for each in self.writers if not is_busy(each)]
        writer = data.draw(st.sampled_from(others))
        writer.is_suspended = False
        if writer.lock is None:
            self.start(writer)
        if writer.lock is None or not self.may_go_on(writer):
            return
        self.scratch += 1
        file = self.history / "_scratch" / f"{self.scratch}.parquet"
        write_parquet(self.table(rows), file)
        writer.planned = file, file_of(self.history, next_number(self.history))

    def start(self, writer: Writer) -> None:
        """Start a writer, unless another one holds the lock."""
        others = any(each.lock is not None for each in self.writers)
        try:
            writer.lock = locks.lock(self.history)
            if others:
                MET[TWO] += 1
        except InputProblem as problem:
            MET[REFUSED] += 1
            require_sentence(problem, f"{self.history} is being written by")

    def table(self, rows: int) -> pa.Table:
        """Return the next rows of a history, by what is in it now."""
        first = sum(pq.read_metadata(each.path).num_rows for each in files_of(self.history))
        return pa.table({"seq": [*range(first, first + rows)]})

    def may_go_on(self, writer: Writer) -> bool:
        """Return whether a writer holds its lock; stop it otherwise."""
        assert writer.lock is not None
        try:
            require_held(writer.lock, "micro-batch 1")
        except InputProblem as problem:
            require_sentence(problem, f"{self.history} is not locked any more by the query")
            if writer.planned is not None:
                MET[UNLOCKED] += 1
            writer.stop()
            return False
        return True

    @precondition(lambda self: any(map(is_busy, self.writers)))
    @rule(data=st.data(), has_asked=st.booleans())
    def publish(self, data: st.DataObject, has_asked: bool) -> None:
        """End a micro-batch; if its writer has asked before, it stood still since."""
        writer = data.draw(st.sampled_from([each for each in self.writers if is_busy(each)]))
        writer.is_suspended = False
        if not has_asked and not self.may_go_on(writer):
            return
        assert writer.planned is not None
        file, target = writer.planned
        try:
            file.publish(target)
        except NameTaken as problem:
            MET[TAKEN] += 1
            require_sentence(problem, f"{target} is there already: another process has")
            writer.stop()
        else:
            writer.planned = None
            self.note(target)

    @rule(rows=st.integers(1, 2))
    def add(self, rows: int) -> None:
        """Add a file by hand, without a lock."""
        self.note(append(self.history, self.table(rows)))

    def note(self, file: Location) -> None:
        """Note a file that was published."""
        assert file.name not in self.published
        self.published[file.name] = file.read_bytes()
        self.rows += pq.read_metadata(file.path).num_rows

    @rule(who=st.integers(0, WRITERS - 1))
    def stop(self, who: int) -> None:
        """Stop a writer in order."""
        self.writers[who].stop()

    @rule(suspended=st.sampled_from([[True] * WRITERS, [False] * WRITERS, [True, False, True]]))
    def wait(self, suspended: list[bool]) -> None:
        """Let some writers stand still until their leases run out."""
        for each, is_suspended in zip(self.writers, suspended, strict=True):
            each.is_suspended = is_suspended
        for _ in range(8):
            self.pass_time(locks.RENEWED_S)
        if any(isinstance(w.lock, Lease) and not w.lock.is_held for w in self.writers):
            MET[OVER] += 1

    @precondition(lambda self: any(map(is_busy, self.writers)))
    @rule(again=st.sampled_from(["nothing", "file", "folder"]))
    def remove_lock(self, again: str) -> None:
        """Remove what stands for the lock; perhaps put something else there."""
        lock = self.history / LOCK
        lock.remove()
        if again == "folder":
            lock.make()
        elif again == "file":
            lock.write_bytes(b"")

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        """Assert that every published file is as it was, and that rows are numbered through."""
        files = files_of(self.history)
        assert {each.name: each.read_bytes() for each in files} == self.published
        seqs = [seq for each in files for seq in pq.read_table(each.path)["seq"].to_pylist()]
        assert seqs == [*range(self.rows)]

    @invariant()
    def one_writer_at_most_holds_its_lock(self) -> None:
        """Assert that locks exclude each other, whatever happened to their files."""
        held = [each for each in self.writers if each.lock is not None and each.lock.is_held]
        assert len(held) <= 1


def test_writers_of_a_history_lose_and_double_nothing() -> None:
    MET.clear()
    effort = max(EXAMPLES, settings().max_examples)
    run_state_machine_as_test(
        Publishing, settings=settings(max_examples=effort, stateful_step_count=STEPS)
    )
    assert MET.keys() == {TAKEN, UNLOCKED, REFUSED, TWO, OVER}, f"undetermined: {dict(MET)}"
