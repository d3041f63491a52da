"""One running query at a time on a store: locks of the operating system, and leases."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from spark_impl.runtime import locks
from spark_impl.runtime.locks import LOCK, Lease
from spark_impl.runtime.storage import InputProblem, Location
from spark_impl.slack import SlackQuery
from tests.spark_impl.test_slack_query import FIRST, FIXED, LATE, answers, history

HOLDER = """
import sys, time
from spark_impl.runtime.locks import lock
from spark_impl.runtime.storage import locate
held = lock(locate(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
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


def refuse_locks(monkeypatch: pytest.MonkeyPatch, reason: int) -> None:
    """Let the operating system refuse locks, as some file systems do."""

    def refuse(*_: object) -> None:
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(fcntl, "flock", refuse)


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


@pytest.mark.long
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


@pytest.mark.long
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
