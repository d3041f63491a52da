"""Output of commands: help, files, and ``-`` for standard output.

Files are refused first, and never half-written.
"""

import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from spark_impl.runtime.packages import archive
from straggler.cli import diff, render, sim
from straggler.cli import main as cli
from straggler.cli.main import COMMANDS
from straggler.cli.outputs import with_texts
from straggler.errors import format_error
from straggler.rooms import room_names
from tests.straggler.command import Straggler, assert_refused


def breaks(*_: object) -> Any:
    raise LookupError("no\nidea")


@pytest.mark.parametrize("line", ["diff slack --json", "sim slack --json"])
def test_an_unwritable_output_is_refused_before_anything_runs(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str
) -> None:
    monkeypatch.setattr(diff, "columns_of", breaks)
    monkeypatch.setattr(sim, "find_room", breaks)
    for path in (".", "missing/dir/a", "/proc/x.json"):
        assert_refused(straggler(*line.split(), path), f"{line.split()[-1]} '{path}'")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("line", ["sim slack --set messages=200", "script explain x.script"])
def test_json_on_standard_output_leaves_the_rest_to_standard_error(
    straggler: Straggler, tmp_path: Path, line: str
) -> None:
    (tmp_path / "x.script").write_text('x = max("S", 10, 10)\n', encoding="utf-8")
    usual = straggler(*line.split())
    done = straggler(*line.split(), "--json", "-")
    assert done.code == usual.code
    assert json.loads(done.out, parse_constant=pytest.fail)
    assert len(done.err.splitlines()) == len(usual.out.splitlines())
    assert [path.name for path in tmp_path.iterdir()] == ["x.script"]


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

    for name in ("_gateway", "_active_spark_context"):  # as if no test had started Spark
        monkeypatch.setattr(SparkContext, name, None)
    monkeypatch.setenv("JAVA_HOME", "nowhere")
    (tmp_path / "s.csv").write_text("event_time,value\n1,1\n2,1\n", encoding="utf-8")
    assert_refused(straggler("diff", "slack", "--input", "s.csv"), "Java 17 or newer", "nowhere")


def test_without_a_terminal_lines_say_what_takes_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "TELL_S", 0.01)
    # What a thread writes while capsys is read may be lost.
    said = io.StringIO()
    monkeypatch.setattr("sys.stderr", said)
    with render.progress() as progress:
        progress.add_task("judging", total=3, completed=1)
        expected = re.compile(r"2 of 3: judging, \d+ s.*\n2 of 3: still at it, ")
        while not expected.search(said.getvalue()):
            time.sleep(0.001)


def test_times_are_told_from_values_and_identities() -> None:
    t = 1_772_355_615_000_000
    line = "r #{0} (at {1}, value {0}) of [{1}, {2}); 0.{0}; 'at {0}'; it is {0}; size_us={0}."
    first, second = "2026-03-01T09:00:15Z", "2026-03-01T09:00:15.500000Z"
    assert render.with_times([line.format(t, t, t + 500_000)]) == [line.format(t, first, second)]
    assert render.with_times([f"final start_us {t}, n {t}"]) == [f"final start {first}, n {t}"]
    assert render.with_times([f"There is no x = 1 at {t:,} us."]) == [
        f"There is no x = 1 at {first}."
    ]


@pytest.mark.parametrize(
    ("line", "unit", "written"),
    [
        ("final start_us 10000000, n 2", "s", "final start 10 s, n 2"),
        ("r #3 (at 500, key 'at 5 us', value 5)", "ms", "r #3 (at 0.5 ms, key 'at 5 us', value 5)"),
        ("[-5000000, 0) waits 1,500,000 us", "s", "[-5 s, 0 s) waits 1.5 s"),
        ("event time 3 us (batch 3)", "ns", "event time 3000 ns (batch 3)"),
        ("event time 3 us, size_us=3", "us", "event time 3 us, size_us=3"),
    ],
)
def test_times_have_the_unit_of_the_input(line: str, unit: str, written: str) -> None:
    assert render.with_times([line], unit) == [written]


STRANGE = st.text(
    st.sampled_from([*"ab[]/\\", "\x1b", "\x07", "\x9b", "\n", "\r", "\u202e", "\u2066", "\u2028"])
    | st.characters(exclude_categories=["Cs"]),
    max_size=12,
) | st.sampled_from(["\x1b[2J", "[red]x[/red]", "[/]", ":smile:", "\u202egnol si tahw", "<b>&"])


def controls(text: str) -> list[str]:
    """Return characters of a text, lines apart, that a terminal would not show as they are."""
    return [each for each in text if not each.isprintable() and each not in "\n\xa0\u3000"]


@given(text=STRANGE)
def test_errors_show_no_control_character(text: str) -> None:
    assert not controls(re.sub(r"\s", " ", format_error(text)))


@given(times_us=st.lists(st.none() | st.integers(-(10**16), 1 << 61)))
@example(times_us=[1_393_633_800_000_000, -1, None, 1 << 61])
def test_times_of_pairs_are_iso_8601_in_csv(times_us: list[int | None]) -> None:
    """NumPy writes all digits, and no sign of a year."""
    table = pa.table(
        {"r_id": [*range(len(times_us))], "s_at": pa.array(times_us, pa.timestamp("us", "UTC"))}
    )
    written = with_texts(table)
    assert written.column("r_id") == table.column("r_id")
    expected = []
    for each in times_us:
        text = str(np.datetime64(each or 0, "us")).rstrip("0").rstrip(".")
        expected.append(
            None if each is None else f"{'+' if each > 253402300799999999 else ''}{text}Z"
        )
    assert written.column("s_at").to_pylist() == expected


def test_help_of_all_commands(straggler: Straggler, snapshot: SnapshotAssertion) -> None:
    for command in ("", *COMMANDS):
        done = straggler(*command.split(), "--help")
        assert (done.code, done.err) == (0, "")
        assert done.out == snapshot(name=command or "straggler")
    assert straggler("judge", "--help-all").out == snapshot(name="judge, everything")
    assert straggler("--version").out.startswith("straggler ")


@pytest.mark.parametrize("room", room_names())
def test_help_on_a_room_fits_a_screen_and_is_about_that_room(
    straggler: Straggler, room: str
) -> None:
    for command in ("diff", "explore", "sim"):
        done = straggler(command, room, "--help")
        assert (done.code, done.err) == (0, "")
        assert len(done.out.splitlines()) <= 40
        others = set(room_names()) - {room}
        assert not [each for each in others if f"straggler {command} {each}" in done.out]
    few, every = (straggler("diff", room, option).out for option in ("--help", "--help-all"))
    assert len(every.splitlines()) > len(few.splitlines())


def test_the_version_is_printed_without_heavy_imports() -> None:
    """Ctrl-C is understood before anything heavy is imported."""
    program = (
        "import sys; from straggler.cli.main import main; main(['--version']);"
        "print(*{'numpy', 'rich', 'pandas', 'simpy'} & set(sys.modules), file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == "\n"
