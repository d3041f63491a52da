"""``straggler conformance`` judges an engine by its answers, and writes what it has found."""

import json
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from model.vocabulary import Workload
from straggler.conformance import trials
from straggler.conformance.draws import draw_workloads
from straggler.conformance.engines import Asked
from straggler.conformance.promises import PROMISES
from tests.straggler.command import Done, Straggler, assert_refused
from tests.straggler.fake_engine import PACKAGE, write_engine

WORKLOADS = 12
DRAWN: dict[tuple[str, int, int], list[Workload]] = {}


@pytest.fixture(autouse=True)
def drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tests share the streams of equal cases, which take longer to draw than to judge."""

    def draw(asked: Asked, number: int, seed: int) -> list[Workload]:
        key = repr(asked), number, seed
        if key not in DRAWN:
            DRAWN[key] = draw_workloads(asked, number, seed)
        return DRAWN[key]

    monkeypatch.setattr(trials, "_draw", draw)


def judge(straggler: Straggler, folder: Path, *more: str) -> Done:
    number = () if "--stored" in more else ("--workloads", str(WORKLOADS))
    return straggler(
        "conformance",
        "--folder",
        str(folder / "engines"),
        "--environments",
        str(folder / "environments"),
        *number,
        *more,
    )


def results_of(folder: Path) -> Path:
    return folder / "engines" / "fake" / "results.json"


def stored_promises(folder: Path) -> list[str]:
    stored = json.loads(results_of(folder).read_text("utf-8"))
    return [case["promise"] for case in stored["cases"]]


def verdicts(done: Done) -> dict[str, str]:
    """Return the verdict of each promise, as the command prints it."""
    assert (done.code, done.err) == (0, "")
    titles = {promise.title: name for name, promise in PROMISES.items()}
    lines = [line.strip() for line in done.out.splitlines()[1:]]
    return {
        name: line.removeprefix(title).strip()
        for line in lines
        for title, name in titles.items()
        if line.startswith(title)
    }


# ------------------------------------------------------------------------------------- verdicts


@pytest.mark.parametrize(
    ("mistake", "about", "promise", "verdict", "words"),
    [
        ("", {}, "in-time", "holds", f"**holds** ({WORKLOADS} streams)"),
        ("counts everything", {}, "in-time", "holds", "**holds**"),
        ("counts some", {}, "in-time", "undetermined", "tuples, and nobody says which."),
        # The counterexample, and the output of the script.
        (
            "drops at the watermark",
            {"found_in": "in-time"},
            "in-time",
            "broken",
            "that came in time.",
        ),
        ("drops at the watermark", {"found_in": "in-time"}, "in-time", "broken", "    what came"),
        ("twice", {"found_in": "in-time"}, "windows-exact", "not reproduced", "not reproduced"),
        ("twice", {"found_in": "windows-exact"}, "windows-exact", "broken", "broken"),
        (
            "twice",
            {"found_in": "windows-exact", "exit_code": 1},
            "windows-exact",
            "not reproduced",
            "not reproduced",
        ),
        ("refuses", {}, "in-time", "failed", "exit code 1 (it cannot express this)"),
        (
            "refuses",
            {"found_in": "windows-exact", "explains": "In plain Python."},
            "windows-exact",
            "broken",
            "broken",
        ),
    ],
)
def test_an_engine_gets_the_verdict_that_its_answers_and_scripts_support(
    straggler: Straggler,
    tmp_path: Path,
    mistake: str,
    about: dict[str, Any],
    promise: str,
    verdict: str,
    words: str,
) -> None:
    write_engine(tmp_path, mistake, **about)
    found = verdicts(judge(straggler, tmp_path, "--markdown", "page.md"))
    assert (found[promise], found["pairs-once"]) == (verdict, "not asked")
    assert words in Path("page.md").read_text("utf-8")


ANOTHER_WAY = """
[[case]]
promise = "windows-exact"
how = "In another way."
[case.settings]
aggregate = ["sum"]
"""


def test_a_promise_holds_only_if_all_ways_were_run(straggler: Straggler, tmp_path: Path) -> None:
    write_engine(tmp_path, more=ANOTHER_WAY)
    assert judge(straggler, tmp_path).code == 0
    stored = json.loads(results_of(tmp_path).read_text("utf-8"))
    stored["cases"] = [each for each in stored["cases"] if each["how"] != "In another way."]
    results_of(tmp_path).write_text(json.dumps(stored), encoding="utf-8")
    page = tmp_path / "page.md"
    found = verdicts(judge(straggler, tmp_path, "--stored", "--markdown", str(page)))
    assert found["windows-exact"] == "holds (1 of 2 ways judged)"
    text = page.read_text("utf-8")
    assert f"**holds** (1 of 2 ways judged, {WORKLOADS} streams)" in text
    assert "*not judged*: In another way. It was not run yet." in text


@pytest.mark.parametrize("seed", [0, 1])
def test_an_interrupted_rerun_loses_no_result(
    seed: int, straggler: Straggler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_engine(tmp_path, found_in="in-time")
    assert judge(straggler, tmp_path).code == 0
    before = stored_promises(tmp_path)

    def interrupt(*_: object) -> None:
        assert stored_promises(tmp_path) == before  # a finding was tried, and reported
        raise KeyboardInterrupt

    monkeypatch.setattr("straggler.conformance.trials.judge_case", interrupt)
    with suppress(KeyboardInterrupt):
        judge(straggler, tmp_path, "--seed", str(seed))
    assert stored_promises(tmp_path) == before


# -------------------------------------------------------------------------------------- refusals


def test_an_engine_that_cannot_be_judged_does_not_keep_others_from_it(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path)
    write_engine(tmp_path, pinned="0.0.1", name="outdated")
    done = judge(straggler, tmp_path)
    assert (done.code, done.out.splitlines()[1].split()[-1]) == (2, "holds")
    assert done.err.count("\n") == 1
    assert done.err.startswith("straggler: ")
    assert "engine.toml of outdated says 0.0.1." in done.err
    assert stored_promises(tmp_path) == ["windows-exact", "in-time"]


IN_TIME = '[[case]]\npromise = "in-time"\nhow = "?"\n'
WRONG = (
    '[[case]]\npromise = "windows"\nhow = "?"',
    '[[case]]\npromise = "in-time"',
    f"{IN_TIME}kind = 1",
    f"{IN_TIME}[case.stream]\nbatch = true",
    f"{IN_TIME}[case.settings]\nkeyed = true",
    f"{IN_TIME}[case.settings]\nkeyd = [true]",
    '[[case]]\npromise = "balance"\nhow = "?"',
    f"{IN_TIME}settings = 3",
    f"{IN_TIME}stream = 3",
    f"{IN_TIME}late_by = 3",
    f"{IN_TIME}[case.stream]\ntime_factor = 0",
    "[finding]\n",
    "[[case",
)


def test_a_wrong_description_of_an_engine_is_refused(
    straggler: Straggler, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    said = []
    for number, more in enumerate(WRONG):
        write_engine(tmp_path / str(number), more=more)
        done = judge(straggler, tmp_path / str(number))
        assert_refused(done)
        assert not results_of(tmp_path / str(number)).exists()
        sentence = done.err.replace(f"{tmp_path}/{number}/", "").rstrip()
        said += [*more.splitlines(), f"    {sentence}"]
    assert "\n".join(said) == snapshot


def spoil_version(folder: Path) -> None:
    path = folder / "engines" / "fake" / "engine.toml"
    text = path.read_text("utf-8").replace(f'version = "{version(PACKAGE)}"', 'version = "0.0.1"')
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (spoil_version, "engine.toml of fake says 0.0.1"),
        (lambda f: (f / "environments/fake/bin/python").chmod(0o644), "cannot be run: Permission"),
        (lambda f: (f / "engines/fake/adapter.py").unlink(), "there is no script"),
        (lambda f: (f / "engines/fake/trails/mistake.py").unlink(), "there is no script"),
    ],
)
def test_an_engine_that_cannot_be_run_is_refused(
    spoil: Callable[[Path], object], words: str, straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path, found_in="in-time")
    spoil(tmp_path)
    assert_refused(judge(straggler, tmp_path), words)
    assert not results_of(tmp_path).exists()
