"""One running query at a time on a store."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from spark_impl.runtime import locks
from spark_impl.runtime.failures import wait_for
from spark_impl.runtime.histories import append
from spark_impl.runtime.locks import LOCK, FileLock, Lease, Lock
from spark_impl.runtime.storage import InputProblem, Location, locate
from spark_impl.slack import QueryProblem, SlackQuery, results
from tests.spark_impl.test_query import FIRST, FIXED, LATE, answers, history

HOLDER = """
import sys, time
from spark_impl.runtime.locks import lock
from spark_impl.runtime.storage import locate
held = lock(locate(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""
FORKED = """
import os, sys
from spark_impl.runtime import locks
from spark_impl.runtime.storage import locate
store = locate(sys.argv[1])
held = locks.lock(store)
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    os.close(writing)
    os.read(reading, 1)
    os._exit(0)
held.release()
locks.PATIENCE_S = 0
try:
    locks.lock(store)
finally:
    os.close(writing)
    os.waitpid(child, 0)
"""
LEASE_S, RENEWED_S = 4.0, 1.0
PATIENCE_S = 60
LEASED = f"""
import sys, time
from spark_impl.runtime import locks
from spark_impl.runtime.storage import locate
locks.LEASE_S, locks.RENEWED_S = {LEASE_S}, {RENEWED_S}
held = locks.lock(locate(sys.argv[1]))
print(held.is_held, flush=True)
for line in sys.stdin:
    print(held.is_held, flush=True)
    time.sleep(2 * locks.RENEWED_S)
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE_S", 0)


def test_the_holder_is_named_and_its_death_releases_the_lock(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        sentence = (
            f"^{tmp_path} is being written by process {process.pid} on .+ since .+; it takes "
        )
        with pytest.raises(InputProblem, match=sentence):
            locks.lock(tmp_path)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    locks.lock(tmp_path).release()
    locks.lock(tmp_path).release()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_forked_child_does_not_keep_a_released_lock(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def refuse_locks(monkeypatch: pytest.MonkeyPatch, reason: int) -> None:
    """Let the operating system refuse locks, as some file systems do."""

    def refuse(*_: object) -> None:
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(fcntl, "flock", refuse)


def test_a_failure_of_the_lock_itself_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_locks(monkeypatch, errno.EIO)
    with pytest.raises(InputProblem, match=r"cannot be locked against other .* Input/output error"):
        locks.lock(tmp_path)


def test_file_system_without_locks_gets_a_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short_leases: None
) -> None:
    with monkeypatch.context() as patch:
        refuse_locks(patch, errno.ENOLCK)
        held = locks.lock(tmp_path)
    assert isinstance(held, Lease)
    assert held.is_held
    with pytest.raises(InputProblem, match=f"is being written by process {os.getpid()} on .+ sin"):
        locks.lock(tmp_path)  # although the operating system would grant this lock
    held.release()
    assert not held.is_held
    locks.lock(tmp_path).release()


def test_local_folder_is_locked_by_the_operating_system(tmp_path: Path) -> None:
    held = locks.lock(locate(tmp_path))
    assert isinstance(held, FileLock)
    assert held.is_held
    held.release()
    assert not held.is_held
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [LOCK]


@pytest.fixture
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "LEASE_S", LEASE_S)
    monkeypatch.setattr(locks, "RENEWED_S", RENEWED_S)


@pytest.fixture
def leased(place: Location, short_leases: None) -> Location:
    """Return a folder that is leased, not locked."""
    if place.is_local:
        (place / LOCK).make()
    return place


@pytest.mark.parametrize("is_leased", [False, True])
def test_releasing_a_lock_again_does_nothing(tmp_path: Path, is_leased: bool) -> None:
    if is_leased:
        (tmp_path / LOCK).mkdir()
    before = locks.lock(tmp_path)
    before.release()
    held = locks.lock(tmp_path)
    before.release()
    with pytest.raises(InputProblem, match="is being written by"):
        locks.lock(tmp_path)
    assert held.is_held
    held.release()


def test_second_lease_is_refused(leased: Location) -> None:
    held = locks.lock(leased)
    assert held.is_held
    sentence = f"is being written by process {os.getpid()} on .+ since .+; it takes one running qu"
    for _ in range(2):
        with pytest.raises(InputProblem, match=sentence):
            locks.lock(leased)
    assert held.is_held
    held.release()
    assert not held.is_held
    locks.lock(leased).release()
    assert (leased / LOCK).children() == []


def test_at_most_one_of_simultaneous_leases_is_granted(leased: Location) -> None:
    for _ in range(3):
        granted: list[Lease] = []

        def take() -> None:
            try:
                granted.append(Lease(leased))  # noqa: B023  # the loop waits for all calls
            except InputProblem:
                return

        takers = [threading.Thread(target=take) for _ in range(3)]
        for each in takers:
            each.start()
        for each in takers:
            each.join()
        assert len(granted) <= 1
        for held in granted:
            held.release()


@pytest.fixture
def holder(leased: Location) -> Iterator["subprocess.Popen[str]"]:
    """Yield a process with a lease; for each line of input it prints whether it has the lease."""
    with subprocess.Popen(
        [sys.executable, "-c", LEASED, str(leased)],
        env={**os.environ, **ENVIRONMENT},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "True\n"
            yield process
        finally:
            process.kill()


def test_the_lease_of_a_killed_process_is_taken_over(
    leased: Location, holder: "subprocess.Popen[str]"
) -> None:
    holder.kill()
    held = locks.lock(leased)
    assert held.is_held
    assert len((leased / LOCK).children()) == 1
    held.release()


def test_a_holder_that_was_suspended_for_too_long_loses_its_lease(
    leased: Location, holder: "subprocess.Popen[str]"
) -> None:
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.send_signal(signal.SIGSTOP)
    held = locks.lock(leased)
    holder.send_signal(signal.SIGCONT)
    for _ in range(3):
        holder.stdin.write("?\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "False\n"
    assert held.is_held
    assert len((leased / LOCK).children()) == 1
    held.release()


def test_lease_that_is_renewed_too_late_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock_s, write = [0.0], Location.write_bytes
    monkeypatch.setattr(locks, "time", SimpleNamespace(monotonic=lambda: clock_s[0]))
    monkeypatch.setattr(locks, "RENEWED_S", 0.01)
    held = Lease(locate(tmp_path))
    assert held.is_held

    def write_slowly(file: Location, data: bytes) -> None:
        write(file, data)
        clock_s[0] += locks.LEASE_S

    monkeypatch.setattr(Location, "write_bytes", write_slowly)
    assert held._over.wait(PATIENCE_S)
    monkeypatch.setattr(Location, "write_bytes", write)
    clock_s[0] = 0.0
    assert not held.is_held, "the lost lease came back"
    held.release()


def test_lease_whose_file_was_removed_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process is suspended between writing its file and looking for other leases."""
    write, written = Location.write_bytes, list[Location]()

    def write_and_lose(file: Location, data: bytes) -> None:
        write(file, data)
        written.append(file)
        if len(written) == 1:
            file.remove()

    monkeypatch.setattr(Location, "write_bytes", write_and_lose)
    held = Lease(locate(tmp_path))
    assert held.is_held
    assert (locate(tmp_path) / LOCK).children() == written[:1] == written[1:]
    held.release()


def test_dead_lease_of_a_clock_that_was_ahead_is_taken_over(
    leased: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of a file server is put back after a driver was killed."""
    if not leased.is_local:
        pytest.skip("the clock of an object store cannot be put back here")
    left = leased / LOCK / "left"
    left.write_bytes(b"process 1")
    ahead_s = time.time() + 3600
    os.utime(left.path, (ahead_s, ahead_s))
    monkeypatch.setattr(locks, "RENEWED_S", 0.1)
    monkeypatch.setattr(locks, "LEASE_S", 0.5)
    taken: list[Lock] = []
    taking = threading.Thread(target=lambda: taken.append(locks.lock(leased)), daemon=True)
    taking.start()
    taking.join(PATIENCE_S)
    assert taken, "the lease is waited for until the clock gets there"
    taken[0].release()


@pytest.mark.fails_tasks
def test_a_finished_run_has_released_its_lock(spark: SparkSession, tmp_path: Path) -> None:
    source, store = history(tmp_path / "h", FIRST), tmp_path / "s"
    for _ in range(3):
        SlackQuery(spark, FIXED, source, store).run_available()
    append(source, pq.read_table(next(source.glob("*.parquet"))))
    for _ in range(3):
        with pytest.raises(QueryProblem, match="arrival number 0 comes after 2"):
            SlackQuery(spark, FIXED, source, store).run_available()
    locks.lock(store).release()


def test_nothing_is_written_without_the_lock(spark: SparkSession, tmp_path: Path) -> None:
    query = SlackQuery(spark, FIXED, history(tmp_path / "h", FIRST), tmp_path / "s")
    held = locks.lock(query.store.root)
    held.release()  # as if Java ended between calling Python and our first write
    with pytest.raises(
        QueryProblem,
        match="s is not locked any more by the query that was to write micro-batch 0: it",
    ):
        wait_for(query._start(held, availableNow=True), QueryProblem)
    assert not (tmp_path / "s" / "progress").exists()
    query.run_available()
    assert query.store.committed() == 0


@pytest.mark.fails_tasks
def test_a_query_whose_lock_file_was_removed_writes_nothing_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, store = history(tmp_path / "h", FIRST), tmp_path / "s"
    first, second = (SlackQuery(spark, FIXED, source, store) for _ in range(2))
    running = first.start()
    try:
        running.processAllAvailable()
        (store / LOCK).unlink()
        taken = locks.lock(store)
        history(source, LATE)
        with pytest.raises(StreamingQueryException, match="s is not locked any more by the query"):
            running.processAllAvailable()
        assert first.store.committed() == 0
        assert taken.is_held
        taken.release()
    finally:
        running.stop()
    second.flush()
    assert answers(spark, store)[10] == (26.0, 3, 1, 1 / 3, "exact")


def test_two_queries_of_one_process_take_turns(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, store = history(tmp_path / "h", FIRST), tmp_path / "s"
    first, second = (SlackQuery(spark, FIXED, source, store) for _ in range(2))
    running = first.start()
    try:
        running.processAllAvailable()
        for query in (first, second):
            with pytest.raises(InputProblem, match=f"being written by process {os.getpid()} on "):
                query.run_available()
        assert len(answers(spark, store)) == 4
        history(source, LATE)
        running.processAllAvailable()
    finally:
        running.stop()
    monkeypatch.setattr(locks, "PATIENCE_S", 60)  # Spark's stop() does not wait for the lock
    second.flush()
    monkeypatch.setattr(locks, "PATIENCE_S", 0)
    assert answers(spark, store)[10] == (26.0, 3, 1, 1 / 3, "exact")
    # queries may take turns: each continues the revisions of the other
    history(source, [(16, 32.0)])
    first.flush()
    history(source, [(17, 64.0)])
    second.flush()
    assert answers(spark, store)[10] == (122.0, 5, 3, 1 / 5, "exact")
    assert results(spark, store).where("state <> 'exact'").count() == 0
