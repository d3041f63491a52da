"""One running query at a time on a store."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_impl.slack import SlackQuery, lock, results
from spark_impl.streams import InputProblem
from tests.spark_impl.test_query import FIRST, FIXED, LATE, answers, history

HOLDER = """
import sys, time
from pathlib import Path
from spark_impl.slack import lock
held = lock.hold(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "PATIENCE_S", 0.2)


def test_other_process_is_named_and_its_death_lets_go(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        sentence = (
            f"^{tmp_path} is being written by process {process.pid} on .+ since .+; it takes "
        )
        with pytest.raises(InputProblem, match=sentence):
            lock.hold(tmp_path)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    lock.hold(tmp_path).close()
    lock.hold(tmp_path).close()


def test_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(InputProblem, match=r"cannot be locked against other .* No locks available"):
        lock.hold(tmp_path)


def test_two_queries_in_one_process(spark: SparkSession, tmp_path: Path) -> None:
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
    second.flush()
    assert answers(spark, store)[10] == (26.0, 3, 1, 1 / 3, "exact")
    # one after the other they may take turns: revisions go on where the other one stopped
    history(source, [(16, 32.0)])
    first.flush()
    history(source, [(17, 64.0)])
    second.flush()
    assert answers(spark, store)[10] == (122.0, 5, 3, 1 / 5, "exact")
    assert results(spark, store).where("state <> 'exact'").count() == 0
