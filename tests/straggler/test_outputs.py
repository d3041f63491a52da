"""Files that commands write: refused first, never half-written, and ``-`` for standard output."""

import json
from pathlib import Path
from typing import Any

import pytest

from spark_impl.runtime.packages import archive
from straggler.cli import diff, explore, sim
from straggler.cli import main as cli
from tests.straggler.command import Straggler, assert_refused

SLACK = ("--time-unit", "s", "--control", "fixed", "--per", "key", "--aggregate", "sum")


def breaks(*_: object) -> Any:
    raise LookupError("no\nidea")


@pytest.mark.parametrize(
    "line",
    [
        *(f"diff slack --{kind}" for kind in ("json", "html", "junit")),
        "explore slack --json",
        *(f"sim slack --{kind}" for kind in ("json", "plot", "html")),
    ],
)
def test_an_unwritable_output_is_refused_before_anything_runs(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str
) -> None:
    monkeypatch.setattr(diff, "columns_of", breaks)
    monkeypatch.setattr(explore, "find_room", breaks)
    monkeypatch.setattr(sim, "find_room", breaks)
    option = line.split()[-1]
    for path, why in (
        (".", "'.' is a folder; it must be a file"),
        ("missing/dir/a", "'missing/dir/a': there is no such folder"),
        ("/proc/x.json", "'/proc/x.json' cannot be"),
    ):
        assert_refused(straggler(*line.split(), path), f"{option} {why}")
    assert not list(tmp_path.iterdir())


def test_a_refused_run_leaves_files_as_they_were(straggler: Straggler, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("kept", encoding="utf-8")
    (tmp_path / "link").symlink_to("old.json")
    for name in ("old.json", "new.json"):
        seed = ("--seed", "-1", "--json", name, "--counterexamples", "a/b")
        assert straggler("diff", "slack", *seed).code == 2
    linked = straggler("sim", "slack", "--plot", "link", "--json", "old.json")
    assert_refused(linked, "--plot", "is named twice; it would be overwritten.")
    assert {path.name for path in tmp_path.iterdir()} == {"old.json", "link"}
    assert (tmp_path / "old.json").read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize(
    "line",
    [
        "sim slack --set messages=200",
        "explore slack --scope conformal --variant lost_update",
        "errata slack --only lost-update",
        f"diff slack --input stream.csv {' '.join(SLACK)} --system model.slack:make_system",
        "plan join --rate 100 --window 10s --latency 1min",
        "script explain x.script",
        "judge w.jsonl t.jsonl",
    ],
)
def test_json_on_standard_output_leaves_the_rest_to_standard_error(
    straggler: Straggler, tmp_path: Path, line: str
) -> None:
    rows = "".join(f"{time},1\n" for time in (1, 2, 9, 3, 12, 30, 11, 40))
    (tmp_path / "stream.csv").write_text(f"event_time,value\n{rows}", encoding="utf-8")
    (tmp_path / "x.script").write_text('x = max("S", 10, 10)\n', encoding="utf-8")
    work = ("--input", "stream.csv", *SLACK, "--output", "w.jsonl")
    assert straggler("workload", "slack", *work).code == 0
    (tmp_path / "t.jsonl").write_text('{"trace":1}\n{"end":0}\n', encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    usual = straggler(*line.split())
    done = straggler(*line.split(), "--json", "-")
    assert done.code == usual.code
    assert json.loads(done.out, parse_constant=pytest.fail)
    assert len(done.err.splitlines()) == len(usual.out.splitlines())
    left = {path.name for path in set(tmp_path.iterdir()) - set(before)}
    assert left <= {"counterexamples"}


def test_package_writes_the_archive_and_says_how_to_submit_it(
    straggler: Straggler, tmp_path: Path
) -> None:
    for _ in range(2):  # an archive may be replaced
        done = straggler("package", "--output", "my job.zip")
        assert (done.code, done.err) == (0, "")
        assert done.out.endswith("  spark-submit --py-files 'my job.zip' JOB.py\n")
        assert (tmp_path / "my job.zip").read_bytes() == archive()
    assert [path.name for path in tmp_path.iterdir()] == ["my job.zip"]


def test_an_unexpected_error_is_one_sentence(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sim, "find_room", breaks)
    monkeypatch.delenv(cli.TRACEBACK_VARIABLE, raising=False)
    done = straggler("sim", "slack")
    assert_refused(done, "unexpected error LookupError: no idea; set STRAGGLER_TRACEBACK=1 to see")
    monkeypatch.setenv(cli.TRACEBACK_VARIABLE, "1")
    assert "in breaks" in straggler("sim", "slack").err


def test_missing_java_is_one_sentence(
    straggler: Straggler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark import SparkContext

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setenv("JAVA_HOME", "nowhere")
    (tmp_path / "s.csv").write_text("event_time,value\n1,1\n2,1\n", encoding="utf-8")
    assert_refused(straggler("diff", "slack", "--input", "s.csv"), "Java 17 or newer", "nowhere")
