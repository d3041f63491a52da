"""Refusals of the command line: it checks everything before it runs anything."""

import errno
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model.vocabulary import Event, SlackConfig, Trace, Workload
from model.vocabulary.settings import PlainData
from model.vocabulary.slack import WORDS
from model.vocabulary.trace import kind_of
from straggler.cli import diff, explore, sim
from straggler.cli import main as cli
from straggler.errors import UsageError
from straggler.inputs.tables import cuts_into
from straggler.judging.counterexamples import Counterexample
from straggler.judging.trial import Trial
from straggler.rooms import find_room
from tests.straggler.command import Done, assert_refused

MODEL = "model.slack:make_system"
CONFIG = SlackConfig(size_us=5_000_000, slide_us=1_000_000, aggregate="count", control="max")
WORKLOAD = Workload("slack", (Event(0, 1, "", 2_000_000, 0.1 + 0.2, 2_000_000),), CONFIG.to_json())


Straggler = Callable[[str], Done]


@pytest.fixture
def straggler(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Straggler:
    """Run the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def run(line: str) -> Done:
        code = cli.main(line.split())
        return Done(code, *capsys.readouterr())

    return run


# ------------------------------------------------------------------------------ where to write


def runs_too_early(*_: object) -> Any:
    raise AssertionError("something ran before what cannot be written was refused")


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("sweep mine.toml --json mine.toml", "--json"),
        ("sweep mine.toml --json out --junit ./out", "--json"),
        ("sim slack --plot link --json mine.toml", "--plot"),
        ("diff slack --input mine.toml --json link", "--json"),
        ("diff join --r mine.toml --s other --json mine.toml", "--json"),
        ("script explain mine.toml other --svg mine.toml", "--svg"),
    ],
)
def test_a_file_that_is_named_twice_is_not_overwritten(
    straggler: Straggler, tmp_path: Path, line: str, option: str
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("a day's work", encoding="utf-8")
    (tmp_path / "link").symlink_to(mine)
    assert_refused(straggler(line), option, "is named twice; it would be overwritten.")
    assert mine.read_text(encoding="utf-8") == "a day's work"


@pytest.mark.parametrize(
    "line", ["sweep --list --json sweep", "sweep --list --json /dev/null --junit /dev/null"]
)
def test_a_device_may_be_named_twice(straggler: Straggler, line: str) -> None:
    assert straggler(line).code == 0


@pytest.mark.parametrize(
    "line",
    [
        "diff slack --json",
        "diff slack --html",
        "explore slack --json",
        "sim slack --json",
        "sim slack --plot",
        "sim slack --html",
    ],
)
def test_an_unwritable_output_is_refused_before_anything_runs(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str
) -> None:
    monkeypatch.setattr(diff, "columns_of", runs_too_early)
    monkeypatch.setattr(explore, "find_room", runs_too_early)
    monkeypatch.setattr(sim, "find_room", runs_too_early)
    option = line.split()[-1]
    assert_refused(straggler(f"{line} ."), f"{option} '.' is a folder; it must be a file")
    missing = straggler(f"{line} missing/dir/a")
    assert_refused(missing, f"{option} 'missing/dir/a': there is no such folder")
    assert_refused(straggler(f"{line} /proc/x.json"), f"{option} '/proc/x.json' cannot be")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["diff slack", "sim slack"])
def test_a_page_in_a_folder_that_takes_no_new_file_is_refused_early(
    straggler: Straggler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """A page is complete or not there, so that it is written beside the old one first."""
    monkeypatch.setattr(diff, "columns_of", runs_too_early)
    monkeypatch.setattr(sim, "find_room", runs_too_early)
    (tmp_path / "old.html").touch()

    def refuse(**_: object) -> None:  # root may write into every folder
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    refused = straggler(f"{command} --html old.html")
    assert_refused(refused, "--html 'old.html' cannot be written: Permission denied")


def test_a_refused_run_leaves_files_as_they_were(straggler: Straggler, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("kept", encoding="utf-8")
    for name in ("old.json", "new.json"):
        assert straggler(f"diff slack --seed -1 --json {name} --counterexamples a/b").code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["old.json"]
    assert (tmp_path / "old.json").read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize("folder", ["file", "file/below", "/proc/below"])
def test_a_folder_that_cannot_be_made(straggler: Straggler, tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()
    done = straggler(f"diff slack --counterexamples {folder}")
    assert_refused(done, f"--counterexamples '{folder}': no file can be made there")


# -------------------------------------------------------------------------------------- replay


def edited(tmp_path: Path, **changes: Any) -> str:
    """Store a counterexample with some of its parts, or of its workload's, replaced."""
    kinds = tuple(kind_of(word) for word in WORDS)
    path = Counterexample(MODEL, WORKLOAD, kinds, ("what was seen",)).store(tmp_path)
    record = json.loads(path.read_text(encoding="utf-8"))
    for name, value in changes.items():
        where = record if name in record else record["workload"]
        where[name] = value
    path.write_text(json.dumps(record), encoding="utf-8")
    return path.name


ROW = [0, 1, "", 2_000_000, 1.0, 2_000_000]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workload": []}, "its workload is [], which is no object"),
        ({"kinds": [1]}, "kinds is [1]; it must be a list of texts"),
        ({"kinds": "final"}, "kinds is 'final'; it must be a list of texts"),
        ({"config": {"size_us": 0, "slide_us": 1}}, "size_us is 0; it must be an integer > 0"),
        ({"config": {"nope": 1}}, "unknown setting 'nope'"),
        ({"arrivals": [[0, 1]]}, "not a workload"),
        ({"arrivals": [[*ROW[:4], "x", 0]]}, "value of arrival 0 is 'x'; it must be a number"),
        ({"arrivals": [[*ROW[:3], 0.5, 1, 0]]}, "event_time_us of arrival 0 is 0.5; it must be"),
        ({"arrivals": [[0, 2**63, *ROW[2:]]]}, "it must be an integer of 64 bits"),
        ({"arrivals": [[0, 1, 7, *ROW[3:]]]}, "key of arrival 0 is 7; it must be a text"),
        ({"arrivals": [[3, *ROW[1:]]]}, "seq of arrival 0 is 3; it must be 0"),
        ({"arrivals": [ROW, [1, 2, "", 0, 1.0, 0]]}, "arrivals are not in order of arrival_us"),
        ({"faults": [["explode", 0]]}, "there is no fault 'explode', only restart, kill"),
        ({"faults": [["kill", "0"]]}, "a kill is at '0'; it must be the number of a batch"),
        ({"faults": [["kill", True]]}, "a kill is at True; it must be the number of a batch"),
        ({"faults": [["restart", -1]]}, "a restart is at -1; it must be the number of a batch"),
        ({"config": {"size_us": 10**6, "slide_us": 1}}, "put every tuple into 1,000,000 windows"),
        ({"config": {"size_us": 1, "slide_us": 1, "tasks": 10**9}}, "tasks is 1000000000; at most"),
    ],
)
def test_an_edited_counterexample_is_refused(
    straggler: Straggler, tmp_path: Path, changes: dict[str, PlainData], words: str
) -> None:
    name = edited(tmp_path, **changes)
    assert_refused(straggler(f"replay {name}"), name, words)


def test_an_unedited_counterexample_is_run(straggler: Straggler, tmp_path: Path) -> None:
    assert straggler(f"replay --trust {edited(tmp_path)}").code == 0


# -------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("diff slack --window 999999999d", "'999999999d' is longer than"),
        ("diff slack --gamma 99999999999999999999999999999s", "the longest duration there is"),
        ("diff slack --input umts --window 1s --slide 99us", "every tuple into 10,102 windows"),
        ("diff slack --input umts --slide 1us", "--window 5s and --slide 1us put every tuple"),
        ("sim slack --set slide_us=1", "size_us 10s and slide_us 1us put every tuple"),
        ("sim slack --set size_us=999999999d", "--set size_us: '999999999d' is longer than"),
        ("sim slack --set gamma_us=9223372036854775808", "must be at most 9223372036854775807"),
        ("diff slack --input umts --tasks 0", "--tasks is 0; it must be an integer > 0."),
        ("diff watermark --input umts --window -5s", "--window is -5s; it must be a duration > 0."),
        ("diff slack --input umts --slide 0ms", "--slide is 0s; it must be a duration > 0."),
        (
            "diff join --input january --lateness -1500ms",
            "--lateness is -1500ms; it must be a duration >=",
        ),
        ("diff slack --method permuted", "--method is 'permuted'; it must be one of normal, perm"),
        ("diff slack --sampling any", "--sampling is 'any'; it must be one of exchangeable, adv"),
        ("diff slack --aggregate avg --method permutation", "--method 'permutation' is for sum, n"),
        ("diff slack --methd normal", "'--methd'; did you mean '--method'?"),
        ("sim slack --set sampling=any", "sampling is 'any'; it must be one of exchangeable, adv"),
        ("diff slack --input umts --tasks 10001", "--tasks is 10001; at most 10,000 are allowed."),
        ("sim slack --set tasks=10001", "tasks is 10001; at most 10,000 are allowed."),
        ("sim slack --set messages=100001", "messages is 100001; at most 100,000 of each source"),
        ("sim slack --set slide=1", "there is no setting 'slide'; did you mean 'slide_us'?"),
    ],
)
def test_settings_that_would_run_forever_are_refused(
    straggler: Straggler, line: str, words: str
) -> None:
    assert_refused(straggler(line), words)


def test_no_more_batches_than_rows() -> None:
    assert cuts_into(3, 10**11) == cuts_into(3, 3) == (1, 2)
    assert cuts_into(0, 8) == ()
    assert cuts_into(10, 4) == (2, 5, 7)


# ----------------------------------------------------------------------------- whatever happens


def breaks(*_: object) -> Any:
    raise LookupError("no\nidea")


def test_an_unexpected_error_is_one_sentence(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sim, "find_room", breaks)
    monkeypatch.delenv(cli.TRACEBACK_VARIABLE, raising=False)
    assert_refused(
        straggler("sim slack"),
        "straggler: unexpected error LookupError: no idea;"
        " set STRAGGLER_TRACEBACK=1 to see where.\n",
    )
    monkeypatch.setenv(cli.TRACEBACK_VARIABLE, "1")
    done = straggler("sim slack")
    assert done.code == 2
    assert "Traceback" in done.err
    assert "in breaks" in done.err


def test_ctrl_c_while_commands_are_imported(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_name: str) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "import_module", interrupted)
    assert straggler("diff slack") == Done(130, "", "straggler: interrupted.\n")


def test_nothing_heavy_is_imported_before_ctrl_c_is_understood_or_for_the_version() -> None:
    heavy = "sorted({'numpy', 'rich', 'pandas', 'simpy'} & set(sys.modules))"
    program = (
        f"import sys; from straggler.cli.main import main; print({heavy});"
        f"assert main(['--version']) == 0; print({heavy})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.splitlines()[::2] == [b"[]", b"[]"]


def test_characters_that_a_terminal_cannot_show_are_escaped(
    straggler: Straggler, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(raw, encoding="ascii"))
    assert straggler("replay b\u00e4d.json").code == 2
    sys.stderr.flush()
    assert raw.getvalue() == b"straggler: there is no file 'b\\xe4d.json'.\n"


# ------------------------------------------------------------------------------- what is printed


def test_a_counterexample_shows_values_as_they_are(tmp_path: Path) -> None:
    slack = find_room("slack")

    def breaks_on_this_alone(workload: Workload) -> Trace:
        if workload.arrivals == WORKLOAD.arrivals:
            raise LookupError
        return slack.reference()(workload)

    trial = Trial(slack, breaks_on_this_alone, "test:breaks", slack.step_types)
    report = trial.report(WORKLOAD, tmp_path)
    assert any(line.startswith("It takes 1 arrival in 1 batch, with ") for line in report)
    assert any("value 0.30000000000000004 (batch 0)" in line for line in report)


def test_sim_says_what_its_comparison_shows(straggler: Straggler) -> None:
    done = straggler("sim slack --set messages=200")
    assert "Scheduling and batches changed no step: compared with the model run" in done.out
    assert "Compared with the reference" not in done.out


def test_a_file_without_a_workload_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"counterexample": 1}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"x.json is not a counterexample: no 'workload'"):
        Counterexample.load(path)


def test_a_misspelt_variant_is_suggested_by_its_name(straggler: Straggler) -> None:
    done = straggler("diff slack --system model.slack.variants:lost_updat")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("has no 'lost_updat'; did you mean 'lost_update'?\n")
