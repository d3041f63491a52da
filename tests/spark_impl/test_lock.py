"""One running query at a time on a store."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from spark_impl.runtime import stores
from spark_impl.runtime.failures import wait_for
from spark_impl.runtime.histories import InputProblem, append
from spark_impl.slack import QueryProblem, SlackQuery, results
from tests.spark_impl.test_query import FIRST, FIXED, LATE, answers, history

HOLDER = """
import sys, time
from pathlib import Path
from spark_impl.runtime import stores
held = stores.lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""
FORKED = """
import os, sys
from pathlib import Path
from spark_impl.runtime import stores
store = Path(sys.argv[1])
held = stores.lock(store)
told, tell = os.pipe()
child = os.fork()
if child == 0:
    os.close(tell)
    os.read(told, 1)
    os._exit(0)
stores.unlock(held)
stores.PATIENCE_S = 0
try:
    stores.lock(store)
finally:
    os.close(tell)
    os.waitpid(child, 0)
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "PATIENCE_S", 0)


def test_other_process_is_named_and_its_death_lets_go(tmp_path: Path) -> None:
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
            stores.lock(tmp_path)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    stores.unlock(stores.lock(tmp_path))
    stores.unlock(stores.lock(tmp_path))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_forked_child_does_not_keep_what_was_let_go(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(InputProblem, match=r"cannot be locked against other .* No locks available"):
        stores.lock(tmp_path)


def test_run_that_is_over_has_let_go(spark: SparkSession, tmp_path: Path) -> None:
    source, store = history(tmp_path / "h", FIRST), tmp_path / "s"
    for _ in range(3):
        SlackQuery(spark, FIXED, source, store).run_available()
    append(source, pq.read_table(next(source.glob("*.parquet"))))
    for _ in range(3):
        with pytest.raises(QueryProblem, match="arrival number 0 comes after 2"):
            SlackQuery(spark, FIXED, source, store).run_available()
    stores.unlock(stores.lock(store))


def test_nothing_is_written_without_the_lock(spark: SparkSession, tmp_path: Path) -> None:
    query = SlackQuery(spark, FIXED, history(tmp_path / "h", FIRST), tmp_path / "s")
    held = stores.lock(query.store.root)
    stores.unlock(held)  # as when Java ends between its call and the first thing that we write
    with pytest.raises(QueryProblem, match="the query that was to write micro-batch 0 has ended"):
        wait_for(query._start(held, availableNow=True), QueryProblem)
    assert not (tmp_path / "s" / "progress").exists()
    query.run_available()
    assert query.store.committed() == 0


def test_two_queries_in_one_process(
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
    monkeypatch.setattr(stores, "PATIENCE_S", 60)  # Spark's stop() knows nothing of the lock
    second.flush()
    monkeypatch.setattr(stores, "PATIENCE_S", 0)
    assert answers(spark, store)[10] == (26.0, 3, 1, 1 / 3, "exact")
    # one after the other they may take turns: revisions go on where the other one stopped
    history(source, [(16, 32.0)])
    first.flush()
    history(source, [(17, 64.0)])
    second.flush()
    assert answers(spark, store)[10] == (122.0, 5, 3, 1 / 5, "exact")
    assert results(spark, store).where("state <> 'exact'").count() == 0
