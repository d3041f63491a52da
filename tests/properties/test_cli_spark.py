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
    """``straggler`` in that folder; what it keeps for the time being goes below it."""
    (folder / "scratch").mkdir()
    environment = {"TMPDIR": str(folder / "scratch"), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-m", "properties.cli", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def write_stream(folder: Path) -> None:
    """Two keys; every fourth tuple is late."""
    rows = [
        f"{time_s if time_s % 4 else time_s - 9},{time_s % 7},{'ab'[time_s % 2]}"
        for time_s in range(20, 120)
    ]
    text = "seconds,value,key\n" + "\n".join(rows) + "\n"
    (folder / "stream.csv").write_text(text, encoding="utf-8")


def write_two(folder: Path) -> None:
    """Two streams that meet all the time; every fourth tuple is late."""
    for name in ("r", "s"):
        rows = [f"{n if n % 4 else n - 900},{n % 7},{'ab'[n % 2]}" for n in range(1_000, 4_000)]
        text = "millis,value,key\n" + "\n".join(rows) + "\n"
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")


ASK = ("diff", "slack", "--input", "stream.csv", "--event-time", "seconds", "--time-unit", "s")


FILES = ("--r", "r.csv", "--s", "s.csv", "--event-time", "millis", "--time-unit", "ms")
JOIN = ("diff", "join", *FILES, "--workers", "4", "--on", "key", "--on", "value apart 3")


@pytest.mark.timeout(PATIENCE_S)
def test_diff_runs_a_users_file_through_spark(tmp_path: Path) -> None:
    write_stream(tmp_path)
    options = ("--control", "fixed", "--aggregate", "avg", "--per", "key", "--json", "verdict.json")
    with start(tmp_path, *ASK, *options, "--batches", "3") as straggler:
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
def test_diff_runs_two_files_through_a_chain(tmp_path: Path) -> None:
    write_two(tmp_path)
    options = ("--window", "20ms", "--lateness", "500ms", "--batches", "2", "--json", "v.json")
    with start(tmp_path, *JOIN, *options) as straggler:
        out, err = straggler.communicate(timeout=PATIENCE_S)
    assert (straggler.returncode, err) == (0, ""), (out, err)
    assert "1 comparison, none broken: the Spark pipeline agrees with the reference" in out
    assert " steps of 4 workers are a behaviour of the protocol." in out
    (row,) = json.loads((tmp_path / "v.json").read_text(encoding="utf-8"))
    assert row["verdict"] == "holds"
    assert min(row["matches"], row["rejected"], row["blocks"], row["copies"]) > 0
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.timeout(PATIENCE_S)
def test_fewer_slots_than_workers_are_one_sentence(tmp_path: Path) -> None:
    write_two(tmp_path)
    with start(tmp_path, *JOIN, "--master", "local[2]") as straggler:
        out, err = straggler.communicate(timeout=PATIENCE_S)
    assert (straggler.returncode, out) == (2, "")
    sentence = "a chain of 4 workers needs 4 task slots at the same time and local[2] has 2"
    assert err == f"straggler: {sentence}.\n"
    assert not (tmp_path / "counterexamples").exists()


@pytest.mark.timeout(PATIENCE_S)
@pytest.mark.parametrize("room", ["slack", "join"])
def test_ctrl_c_is_one_line_and_leaves_nothing(tmp_path: Path, room: str) -> None:
    write_stream(tmp_path)
    write_two(tmp_path)
    with start(tmp_path, *{"slack": ASK, "join": JOIN}[room]) as straggler:
        ends_s = time.monotonic() + PATIENCE_S
        # A pipeline's working folder: the first query is under way.
        while not list((tmp_path / "scratch").glob(f"straggler-{room}-*/*")):
            assert straggler.poll() is None, straggler.communicate()
            assert time.monotonic() < ends_s
            time.sleep(0.05)
        os.killpg(straggler.pid, signal.SIGINT)
        out, err = straggler.communicate(timeout=PATIENCE_S)
    assert (straggler.returncode, out, err) == (130, "", "straggler: interrupted.\n")
    assert not list((tmp_path / "scratch").iterdir())
    assert not (tmp_path / "counterexamples").exists()
