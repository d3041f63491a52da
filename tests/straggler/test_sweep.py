"""``straggler sweep``: output, files and refusals; an interrupted sweep resumes."""

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sim.sweep.engine import Judged, Sweep
from sim.sweep.jobs import Done as Finished
from sim.sweep.jobs import Job, perform
from sim.sweep.reading import find_file, load
from sim.sweep.results import Results
from sim.sweep.store import Store, WriteFailed
from straggler.cli import sweep as command
from straggler.sweeps.files import read_table
from tests.sim.experiments import SMALL
from tests.straggler.command import PATIENCE_S, Done, Straggler, start


@pytest.fixture
def in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run jobs in this process, because other processes are slow to start."""

    def here(jobs: Sequence[Job], processes: int) -> Iterator[Finished]:
        return map(perform, jobs)

    monkeypatch.setattr(command, "run_on_processes", here)


def sweep(straggler: Straggler, *arguments: str, text: str = SMALL) -> Done:
    Path("small.toml").write_text(text, encoding="utf-8")
    return straggler("sweep", "small.toml", "--jobs", "2", *arguments)


def sweep_here(folder: Path, toml: Path) -> Results:
    """Run the sweep in this process, without command line, processes or interrupts."""
    folder.mkdir()
    events = Sweep([load(toml)], "quick", Store(folder), lambda jobs: map(perform, jobs)).events()
    (results,) = [event.results for event in events if isinstance(event, Judged)]
    return results


def test_a_sweep_leaves_its_documented_files(straggler: Straggler, tmp_path: Path) -> None:
    done = sweep(straggler)
    assert done.code == 0, done
    assert done.err == "1 experiment, quick: 8 runs.\n"
    assert "1 experiment, 8 runs: every expectation is met" in done.out
    expected = sweep_here(tmp_path / "here", tmp_path / "small.toml")
    folder = tmp_path / "sweeps"
    assert {path.name for path in folder.iterdir()} == {
        *("small-quick.parquet", "small-quick.json", "runs")
    }
    table = pq.read_table(folder / "small-quick.parquet")
    assert table.to_pydict() == expected.columns
    record = json.loads((folder / "small-quick.json").read_text(encoding="utf-8"))
    assert record["again"] == "straggler sweep small.toml --quick"
    assert (record["rows"], record["verdict"]) == (8, "reproduced")


@pytest.mark.usefixtures("in_one_process")
def test_a_broken_expectation_and_a_failed_run_are_reported(straggler: Straggler) -> None:
    text = SMALL.replace("[full]", '0 = { faults = "explode worker-0 1 2" }\n[full]')
    text = text.replace("at_least = -1000", "at_most = -1000").replace('"*"', '"shuffle"')
    done = sweep(straggler, text=text)
    assert done.code == 1
    record = json.loads(Path("sweeps/small-quick.json").read_text(encoding="utf-8"))
    failed = [each["settings"]["faults"] for each in record["failed"]]
    assert failed == ["explode worker-0 1 2"] * 4
    assert "policy=tag faults=explode worker-0 1 2: there is no fault 'explode'" in done.err
    assert "small, broken: TAG is not a thousand times slower" in done.out
    assert "1 experiment, 8 runs, 4 failed: 1 broken" in done.out
    again = "straggler sim grouping --seed 1 --set scenario=steady --set load=backlog"
    again += " --set policies=all"
    assert f"    again: {again}" in done.err


@pytest.mark.usefixtures("in_one_process")
def test_an_undetermined_expectation_is_no_success(straggler: Straggler) -> None:
    done = sweep(straggler, text=SMALL.replace("share = served_hz", "share = served"))
    assert done.code == 3
    assert "small: no run has the figure 'served'; did you mean 'served_hz'?" in done.out
    assert ": some run has no value of it" in done.out


def test_show_prints_the_file_of_an_experiment(straggler: Straggler) -> None:
    done = straggler("sweep", "--show", "grouping-speeds")
    assert (done.code, done.err) == (0, "")
    assert done.out == find_file("grouping-speeds").read_text(encoding="utf-8")
    listed = straggler("sweep", "--list")
    assert "grouping-speeds: Throughput over the inequality of the instances" in listed.out
    assert not Path("sweeps").exists()


@pytest.mark.usefixtures("in_one_process")
def test_a_full_disk_is_reported_and_stored_runs_are_kept(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(results: Results, folder: Path) -> None:
        msg = "the table cannot be written: No space left on device"
        raise WriteFailed(msg)

    with monkeypatch.context() as full:
        full.setattr(command, "write", write)
        done = sweep(straggler)
    expected = "cannot be written: No space left on device; stored runs are kept"
    assert (done.code, done.out) == (2, "")
    assert expected in done.err
    for record in list(Path("sweeps", "runs").iterdir())[:2]:
        record.write_text("{", encoding="utf-8")
    again = sweep(straggler)
    assert again.code == 0
    assert "8 runs, 6 of them stored already." in again.err


@pytest.mark.usefixtures("in_one_process")
def test_a_sweep_runs_with_other_settings_and_seeds(straggler: Straggler) -> None:
    Path("my-small.toml").write_text(SMALL.replace('"small"', '"my-small"'), encoding="utf-8")
    usual = straggler("sweep", "my-small.toml", "--out", "usual")
    changes = ("--set", "keys=5", "--set", "tuples=200", "--seeds", "7,1")
    done = straggler("sweep", "my-small.toml", *changes)
    assert (usual.code, done.code) == (0, 0), done
    columns = read_table(Path("sweeps/my-small-quick.parquet"))
    before = read_table(Path("usual/my-small-quick.parquet"))
    assert set(columns["seed"]) == {1, 7}
    assert columns["policy"] == before["policy"]
    assert columns["share"] != before["share"]
    record = json.loads(Path("sweeps/my-small-quick.json").read_text(encoding="utf-8"))
    again = "straggler sweep my-small.toml --quick --seeds 7,1 --set keys=5 --set tuples=200"
    assert record["again"] == again
    assert straggler(*again.split()[1:]).err.startswith("1 experiment, quick: 8 runs, 8 of them")


MANY = SMALL.replace("seeds = 2", "seeds = 15").replace("tuples = 400", "tuples = 2000")
"""An experiment that is not over before it is ended."""
RUNS = 60


def wait_for_runs(folder: Path, count: int) -> dict[Path, int]:
    """Wait for so many finished runs; return all there are with their times of writing."""
    ends_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends_s:
        found = {path: path.stat().st_mtime_ns for path in folder.glob("sweeps/runs/*.json")}
        if len(found) >= count:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not {count} runs were done in {PATIENCE_S} s")


@pytest.mark.long  # by day a full disk leaves runs that are resumed
@pytest.mark.usefixtures("heard")
def test_a_killed_sweep_resumes(straggler: Straggler, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(MANY, encoding="utf-8")
    # The folder of temporary files is too long for the name of a socket.
    ask = ("sweep", "small.toml", "--jobs", "1")
    with start(tmp_path, *ask, scratch="temporary" * 12) as first:
        killed = wait_for_runs(tmp_path, 1)
        first.kill()
    assert first.returncode == -signal.SIGKILL
    with start(tmp_path, *ask, scratch="temporary" * 12) as second:
        wait_for_runs(tmp_path, len(killed) + 3)
        os.killpg(second.pid, signal.SIGINT)  # as a terminal does
        _, err = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 130, err
    assert err.endswith("straggler: interrupted.\n")
    assert err.count("\n") == 2, err
    assert not list(tmp_path.glob("sweeps/*.parquet"))
    kept = wait_for_runs(tmp_path, 1)

    done = sweep(straggler, text=MANY)
    assert done.code == 0, done
    assert f"{RUNS} runs, {len(kept)} of them stored already." in done.err
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    expected = sweep_here(tmp_path / "here", tmp_path / "small.toml")
    assert read_table(tmp_path / "sweeps" / "small-quick.parquet") == expected.columns
