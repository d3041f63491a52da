"""The command line with real Spark, in a process of its own, as a user runs it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PATIENCE_S = 240


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start ``straggler`` in ``folder``, which also gets its temporary files."""
    (folder / "scratch").mkdir()
    environment = {"TMPDIR": str(folder / "scratch"), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-m", "straggler.cli", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def write_stream(folder: Path) -> None:
    """Write a stream of two keys in which every fourth tuple is late."""
    rows = [
        f"{time_s if time_s % 4 else time_s - 9},{time_s % 7},{'ab'[time_s % 2]}"
        for time_s in range(20, 120)
    ]
    text = "seconds,value,key\n" + "\n".join(rows) + "\n"
    (folder / "stream.csv").write_text(text, encoding="utf-8")


ASK = ("diff", "slack", "--input", "stream.csv", "--event-time", "seconds", "--time-unit", "s")


@pytest.mark.timeout(PATIENCE_S)
def test_diff_runs_a_users_file_through_spark(tmp_path: Path) -> None:
    write_stream(tmp_path)
    options = ("--control", "fixed", "--aggregate", "avg", "--per", "key", "--json", "verdict.json")
    with start(tmp_path, *ASK, *options, "--batches", "2") as straggler:
        out, err = straggler.communicate(timeout=PATIENCE_S)
    assert (straggler.returncode, err) == (0, ""), (out, err)
    assert "1 comparison, none broken: the Spark pipeline agrees with the reference" in out
    (row,) = json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))
    assert row["verdict"] == "holds"
    assert row["late"] > 0
    assert row["corrections"] > 0
    assert row["digest_expected"] == row["digest_observed"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "scratch",
        "stream.csv",
        "verdict.json",
    ]
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.timeout(PATIENCE_S)
def test_ctrl_c_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    write_stream(tmp_path)
    with start(tmp_path, *ASK) as straggler:
        ends_s = time.monotonic() + PATIENCE_S
        # A pipeline's working folder: the first query is under way.
        while not list((tmp_path / "scratch").glob("straggler-slack-*/store")):
            assert straggler.poll() is None, straggler.communicate()
            assert time.monotonic() < ends_s
            time.sleep(0.05)
        os.killpg(straggler.pid, signal.SIGINT)
        out, err = straggler.communicate(timeout=PATIENCE_S)
    assert (straggler.returncode, out, err) == (130, "", "straggler: interrupted.\n")
    assert not list((tmp_path / "scratch").iterdir())
    assert not (tmp_path / "counterexamples").exists()
