"""The command that judges a job, and the one that shows again what broke."""

import json
import shlex
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from benchmarks.recording import PICTURE, first_check, record
from model.checking.claims import Outcome, Verdict
from straggler.cli.check import A_JOB, load_job
from straggler.cli.main import main
from straggler.errors import UsageError
from straggler.jobs.api import inputs_of
from straggler.jobs.plans import EXACT
from straggler.jobs.report import JobReport
from straggler.jobs.rows import recorded_rows
from straggler.jobs.verdicts import WEAK
from straggler.judging.systems import load_function
from tests.house.repository import ROOT
from tests.straggler.test_pages import CODES, File, assert_shown, steps_of

JOBS = """
    from pyspark.sql import functions as F

    def opening(readings, function=F.first):
        windows = readings.withWatermark("at", "10 seconds").groupBy(F.window("at", "1 minute"))
        return windows.agg(function("watts").alias("watts"))

    def lowest(readings):
        return opening(readings, F.min)
"""
ASKED = ["--schema", "device string, at timestamp, watts double", "--event-time", "at"]


def test_what_breaks_a_job_is_stored_and_shown_again(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("spark_impl.runtime.session.session", lambda _: nullcontext(spark))
    (tmp_path / "jobs_of_a_user.py").write_text(textwrap.dedent(JOBS), encoding="utf-8")
    assert main(["check", "jobs_of_a_user:opening", *ASKED, "--streams", "8"]) == 1
    (stored,) = (tmp_path / "counterexamples").iterdir()
    path = str(stored.relative_to(tmp_path))
    shown = capsys.readouterr().out
    assert f"Stored in {path}; run it again with: straggler replay {path} --trust" in shown
    assert json.loads(stored.read_text(encoding="utf-8"))["job"] == "jobs_of_a_user:opening"
    assert main(["replay", path]) == 2
    assert "'jobs_of_a_user:opening'; replay runs what a file names" in capsys.readouterr().err
    assert main(["replay", path, "--trust"]) == 1
    *again, last = capsys.readouterr().out.splitlines()
    assert "\n".join(again) in shown
    assert last.startswith("It still fails: '")
    assert last.endswith("' is broken.")
    assert main(["replay", path, "--system", "jobs_of_a_user:lowest"]) == 0
    assert "does not fail any more" in capsys.readouterr().out


def test_each_input_may_have_an_event_time_of_its_own(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(*_: object, schema: object, event_time: object, **__: object) -> None:
        raise UsageError(f"{schema} {event_time}")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spark_impl.runtime.session.session", lambda _: nullcontext(spark))
    monkeypatch.setattr("straggler.jobs.api.judge_job", refuse)
    words = ["--schema", "orders=at timestamp", "--schema", "trades=paid timestamp"]
    words += ["--event-time", "orders=at", "--event-time", "trades=paid"]
    assert main(["check", "json:dumps", *words]) == 2
    given = "{'orders': 'at timestamp', 'trades': 'paid timestamp'}"
    assert f"{given} {{'orders': 'at', 'trades': 'paid'}}" in capsys.readouterr().err


def test_each_input_may_have_a_file_of_its_own(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: dict[str, Any] = {}

    def judge(*_: object, **given: object) -> None:
        asked.update(given)
        raise UsageError("that is enough")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spark_impl.runtime.session.session", lambda _: nullcontext(spark))
    monkeypatch.setattr("straggler.jobs.api.judge_job", judge)
    for name in ("at", "paid"):
        table = pa.table({name: pa.array([0], pa.timestamp("us", "UTC")), "id": [1]})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    files = [f"orders={tmp_path}/at.parquet", f"trades={tmp_path}/paid.parquet"]
    words = ["--input", files[0], "--input", files[1]]
    words += ["--event-time", "orders=at", "--event-time", "trades=paid"]
    assert main(["check", "json:dumps", *words]) == 2
    assert asked["schema"] == {
        "orders": "at TIMESTAMP,id BIGINT",
        "trades": "paid TIMESTAMP,id BIGINT",
    }
    inputs = inputs_of(asked["schema"], asked["event_time"])
    rows, _ = recorded_rows(spark, inputs, asked["rows"])
    assert [[each.values for each in of] for of in rows] == [[(1,)], [(1,)]]
    assert main(["check", "json:dumps", *words, "--json", "at.parquet"]) == 2
    assert "--json 'at.parquet' is named twice" in capsys.readouterr().err


def test_a_printed_report_names_options(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    note = "rows are copies, unless redelivered= names what else identifies a row"
    report = JobReport("job", (Verdict(EXACT, Outcome.UNDETERMINED, WEAK),), 0, 1, (note,))
    monkeypatch.setattr("spark_impl.runtime.session.session", lambda _: nullcontext(spark))
    monkeypatch.setattr("straggler.jobs.api.judge_job", lambda *_, **__: report)
    assert main(["check", "json:dumps", *ASKED]) == 3
    shown = capsys.readouterr().out
    assert "unless --upsert names the columns" in shown
    assert "unless --redelivered names what else" in shown


def test_a_module_that_exits_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "program_of_a_user.py").write_text("import sys\nsys.exit(3)\n", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be imported: it exits with 3"):
        load_function("program_of_a_user:minutes", A_JOB, "function")


def test_a_module_is_imported_while_the_session_runs(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Functions and columns at its top need a session, and some modules get one of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "module_with_a_session.py").write_text(
        "import os\nfrom pyspark.sql import SparkSession, functions\n"
        "SESSION = os.environ['SESSION'], SparkSession.builder.getOrCreate()\n"
        "half = functions.udf(lambda cell: cell / 2, 'double')\nJOB = 3\n",
        encoding="utf-8",
    )

    @contextmanager
    def session(_: object) -> Iterator[SparkSession]:
        monkeypatch.setenv("SESSION", "it runs")
        yield spark

    monkeypatch.setattr("spark_impl.runtime.session.session", session)
    assert main(["check", "module_with_a_session:JOB", *ASKED]) == 2
    assert "is not a function, because it cannot be called" in capsys.readouterr().err
    assert ("it runs", spark) == sys.modules["module_with_a_session"].SESSION


def test_a_module_that_stops_the_session_is_refused() -> None:
    stopped: Any = SimpleNamespace(_jsc=None)
    with pytest.raises(UsageError, match="importing 'json' stops the Spark session"):
        load_job("json:dumps", stopped)


@pytest.mark.parametrize(
    ("name", "said"),
    [("jobz", "'jobz'; did you mean 'jobs'?"), ("jobs.py", "'jobs.py'; did you mean 'jobs'?")],
)
def test_a_module_that_is_not_there_is_refused_before_spark_starts(
    name: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.py").write_text("raise SystemExit\n", encoding="utf-8")
    monkeypatch.setattr("straggler.judging.systems.open_session", None)
    assert main(["check", f"{name}:minutes", *ASKED]) == 2
    assert f"there is no module {said}" in capsys.readouterr().err


@pytest.mark.long
def test_the_command_and_the_test_do_what_the_page_shows(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("spark_impl.runtime.session.session", lambda _: nullcontext(spark))
    _, shown = first_check((ROOT / "README.md").read_text(encoding="utf-8"))
    for step in steps_of((ROOT / "docs" / "your-job.md").read_text(encoding="utf-8")):
        if isinstance(step, File):
            (tmp_path / step.name).write_text(step.text, encoding="utf-8")
        else:
            assert main(shlex.split(step.line)[1:]) in CODES
            said = capsys.readouterr().out
            assert_shown(step.shown, said)
            if step.line == shown:
                assert PICTURE.read_text(encoding="utf-8") == record(step.line, said)
    names: dict[str, Any] = {}
    exec((tmp_path / "test_jobs.py").read_text(encoding="utf-8"), names)
    names["test_minutes"]()
