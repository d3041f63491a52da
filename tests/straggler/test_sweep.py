"""``straggler sweep``: output, files and refusals; an interrupted sweep resumes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from socket import create_server
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sim.sweep.engine import Judged, Sweep
from sim.sweep.jobs import Done as Finished
from sim.sweep.jobs import Job, perform
from sim.sweep.reading import load
from sim.sweep.results import Results
from sim.sweep.store import Store
from straggler.cli import sweep as command
from straggler.sweeps.files import read_table, write_table
from straggler.sweeps.on_spark import refuse_silent
from tests.sim.experiments import SMALL
from tests.straggler.command import Done, Straggler, assert_refused

PATIENCE_S = 60


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
    done = sweep(straggler, "--json", "events.jsonl", "--junit", "junit.xml")
    assert done.code == 0, done
    assert done.err == "1 experiment, quick: 8 runs.\n"
    assert "small       quick      8       0  1 of 1  holds    reproduced" in done.out
    assert "1 experiment, 8 runs: every expectation is met" in done.out
    expected = sweep_here(tmp_path / "here", tmp_path / "small.toml")
    folder = tmp_path / "sweeps"
    assert {path.name for path in folder.iterdir()} == {
        *("small-quick.parquet", "small-quick.json", "runs", "times.jsonl")
    }
    table = pq.read_table(folder / "small-quick.parquet")
    assert table.to_pydict() == expected.columns
    types = dict(zip(table.column_names, table.schema.types, strict=True))
    assert types == {
        **dict.fromkeys(("experiment", "effort", "run", "policy", "scenario_name"), pa.string()),
        **dict.fromkeys(("slower", "share", "mean_rho"), pa.float64()),
        "seed": pa.int64(),
    }
    record = json.loads((folder / "small-quick.json").read_text(encoding="utf-8"))
    assert record["again"] == "straggler sweep small.toml --quick"
    assert record["rows"] == 8
    assert record["verdict"] == "reproduced"
    assert [cell["label"] for cell in record["expectations"][0]["cells"]] == [
        "slower 2.5, tag / shuffle"
    ]
    lines = Path("events.jsonl").read_text(encoding="utf-8").splitlines()
    kinds = [json.loads(line)["event"] for line in lines]
    assert kinds == ["started", *["run finished"] * 8, "judged", "ended"]
    suite = ElementTree.parse("junit.xml").getroot()[0]
    assert suite.attrib == {
        "name": "small",
        "tests": "1",
        "failures": "0",
        "errors": "0",
        "skipped": "0",
    }
    times = [json.loads(line) for line in (folder / "times.jsonl").read_text().splitlines()]
    assert all(each["seconds"] > 0 and each["peak_mb"] > 1 for each in times)


@pytest.mark.usefixtures("in_one_process")
def test_a_broken_expectation_and_a_failed_run_are_reported(straggler: Straggler) -> None:
    text = SMALL.replace("[full]", '0 = { faults = "explode worker-0 1 2" }\n[full]')
    text = text.replace("at_least = -1000", "at_most = -1000").replace('"*"', '"shuffle"')
    text = text.replace("however few seeds", r"however few \u001b seeds")  # XML has no such sign
    done = sweep(straggler, "--junit", "junit.xml", text=text)
    assert done.code == 1
    assert "failed, seed 1, load=backlog tuples=400" in done.err
    assert "policy=tag faults=explode worker-0 1 2: there is no fault 'explode'" in done.err
    assert "    again: straggler sim grouping --seed 1 --set load=backlog" in done.err
    assert "small, broken: TAG is not a thousand times slower" in done.out
    assert "; the ratio of share at slower 2.5, tag / shuffle is" in done.out
    assert "1 experiment, 8 runs, 4 failed: 1 broken" in done.out
    suite = ElementTree.parse("junit.xml").getroot()[0]
    assert [suite.attrib[each] for each in ("tests", "failures", "errors")] == ["5", "1", "4"]
    assert len(suite.findall("testcase/error")) == 4
    assert len(suite.findall("testcase/failure")) == 1


@pytest.mark.usefixtures("in_one_process")
def test_an_undetermined_expectation_is_no_success(straggler: Straggler) -> None:
    done = sweep(straggler, text=SMALL.replace("share = served_hz", "share = served"))
    assert done.code == 3
    assert "small: no run has the figure 'served'; did you mean 'served_hz'?" in done.out
    assert "is not known: some run has no value of it" in done.out


def test_the_catalogue_is_listed(straggler: Straggler) -> None:
    done = straggler("sweep", "--list")
    assert done.code == 0
    assert "grouping-speeds: Throughput over the inequality of the instances" in done.out
    assert not Path("sweeps").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], ["experiment is 'nothing'", "grouping-speeds"]),
        (["nothing.toml"], ["'nothing.toml' cannot be read: No such file or directory"]),
        (["--jobs", "0"], ["--jobs 0", "at least 1"]),
        (["--seed", "-1"], ["--seed -1", "at least 0"]),
        (["--quick", "--full"], ["not allowed with"]),
        (["--junit", "no/junit.xml"], ["--junit", "there is no such folder"]),
        (["--out", "small.toml"], ["--out 'small.toml'", "no file can be made there"]),
        (
            ["grouping-speeds", "--on", "moon"],
            ["--on 'moon' is neither processes nor a Spark master"],
        ),
        (
            ["grouping-speeds", "--on", "spark://127.0.0.1:1"],
            ["--on 'spark://127.0.0.1:1': there is no Spark master at 127.0.0.1:1 (connection"],
        ),
        (["grouping-speeds", "--on", "spark://name"], ["'name' is not HOST:PORT"]),
    ],
)
def test_impossible_options_are_refused(
    straggler: Straggler, arguments: list[str], words: list[str]
) -> None:
    Path("small.toml").write_text("", encoding="utf-8")
    assert_refused(straggler("sweep", *arguments), *words)
    assert not Path("sweeps").exists()


@pytest.mark.parametrize("name", ["small-quick.parquet", "small-quick.json", "times.jsonl"])
def test_a_folder_in_place_of_results_is_refused_before_anything_runs(
    straggler: Straggler, name: str
) -> None:
    Path("sweeps", name).mkdir(parents=True)
    Path("small.toml").write_text(SMALL, encoding="utf-8")
    assert_refused(straggler("sweep", "small.toml"), f"'sweeps/{name}' is a folder")
    assert [path.name for path in Path("sweeps").iterdir()] == [name]


@pytest.mark.usefixtures("in_one_process")
def test_a_full_disk_is_reported_and_stored_runs_are_kept(straggler: Straggler) -> None:
    done = sweep(straggler, "--junit", "/dev/full")
    expected = "'/dev/full' cannot be written: No space left on device; stored runs are kept"
    assert (done.code, done.out) == (2, "")
    assert expected in done.err
    assert expected in sweep(straggler, "--json", "/dev/full").err
    for record in list(Path("sweeps", "runs").iterdir())[:2]:
        record.write_text("{", encoding="utf-8")
    again = sweep(straggler)
    assert again.code == 0
    assert "8 runs, 6 of them stored already. 2 stored runs cannot be trusted" in again.err
    assert " and others.\n" in again.err


@pytest.mark.usefixtures("in_one_process")
def test_common_runs_of_two_experiments_run_once(straggler: Straggler) -> None:
    for name in ("small", "twin"):
        text = SMALL.replace('name = "small"', f'name = "{name}"')
        Path(f"{name}.toml").write_text(text, encoding="utf-8")
    done = straggler("sweep", "small.toml", "twin.toml")
    assert done.err == "2 experiments, quick: 16 runs, 8 of them in another experiment, too.\n"
    assert "2 experiments, 16 runs: every expectation is met" in done.out
    assert len(list(Path("sweeps", "runs").iterdir())) == 8


def test_one_master_that_answers_is_enough() -> None:
    with create_server(("127.0.0.1", 0)) as server:
        refuse_silent(f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}")


def test_two_experiments_of_one_name_are_refused(straggler: Straggler) -> None:
    for folder in ("a", "b"):
        Path(folder).mkdir()
        Path(folder, "small.toml").write_text(SMALL, encoding="utf-8")
    assert_refused(straggler("sweep", "a/small.toml", "b/small.toml"), "called 'small'")


def test_columns_without_values_have_their_kind(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    columns: Any = {"seed": [1], "slower": [1], "share": [None], "mean_rho": [1.0]}
    columns["scenario_name"] = [None]
    path = tmp_path / "table.parquet"
    write_table(path, columns, load(tmp_path / "small.toml"))
    schema = pq.read_schema(path)
    assert [schema.field(name).type for name in columns] == [
        *(pa.int64(), pa.int64(), pa.float64(), pa.float64(), pa.float64())
    ]
    assert read_table(path) == columns


# -------------------------------------------------------------------------------------- interrupts

MORE = SMALL.replace("seeds = 2", "seeds = 3")
RUNS = 12


def start(folder: Path, jobs: int) -> subprocess.Popen[str]:
    """Start a sweep in its own process, one run at a time, that waits after ``jobs`` runs."""
    temporary = folder / ("temporary" * 12)  # too long for the name of a socket
    temporary.mkdir(exist_ok=True)
    places = {"TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [str(jobs), "sweep", "small.toml", "--jobs", "1"]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.straggler.waiting_sweep", *arguments],
        cwd=folder,
        env={**os.environ, **places},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_runs(folder: Path, count: int) -> dict[Path, int]:
    """Wait for this number of finished runs; return them with their times of writing."""
    ends_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends_s:
        found = {path: path.stat().st_mtime_ns for path in folder.glob("sweeps/runs/*.json")}
        if len(found) == count:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not {count} runs were done in {PATIENCE_S} s")


def test_a_killed_sweep_resumes(straggler: Straggler, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(MORE, encoding="utf-8")
    with start(tmp_path, 1) as first:
        wait_for_runs(tmp_path, 1)
        first.kill()
    assert first.returncode == -signal.SIGKILL
    with start(tmp_path, 2) as second:
        kept = wait_for_runs(tmp_path, 3)
        os.killpg(second.pid, signal.SIGINT)  # as a terminal does
        _, err = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 130, err
    assert err.endswith("straggler: interrupted.\n")
    assert err.count("\n") == 2, err
    assert not list(tmp_path.glob("sweeps/*.parquet"))

    done = sweep(straggler, "--json", "events.jsonl", text=MORE)
    assert done.code == 0, done
    event = json.loads(Path("events.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert (event["runs"], event["stored"]) == (RUNS, 3)
    assert event["jobs"] == RUNS - 3
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    expected = sweep_here(tmp_path / "here", tmp_path / "small.toml")
    assert read_table(tmp_path / "sweeps" / "small-quick.parquet") == expected.columns
