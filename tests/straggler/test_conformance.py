"""``straggler conformance`` judges an engine by its answers, and writes what it has found.

The engine is windows in plain Python, with a mistake if asked for.
"""

import json
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from model.vocabulary import Workload
from straggler.conformance import trials
from straggler.conformance.draws import draw_workloads
from straggler.conformance.engines import Asked
from straggler.conformance.promises import PROMISES
from tests.straggler.command import Done, Straggler, assert_refused

PACKAGE = "xxhash"
"""Distribution in the place of an engine, which every environment of ours has."""
ADAPTER = """\
import json
import sys

MISTAKE = {mistake!r}


def windows(config, arrivals):
    size, slide, wait = config["size_us"], config["slide_us"], config["fixed_slack_us"]
    found, seen, latest = {{}}, set(), None
    for _, source_id, key, at, value, _, _ in arrivals:
        latest = at if latest is None else max(latest, at)
        if source_id in seen and MISTAKE != "twice":
            continue
        seen.add(source_id)
        for index in range((at - size) // slide + 1, at // slide + 1):
            is_late = index * slide + size <= latest - wait
            if is_late and MISTAKE in ("", "drops at the watermark"):
                continue
            if is_late and MISTAKE == "counts some" and source_id % 2:
                continue
            if MISTAKE == "drops at the watermark" and at <= latest - wait and at < latest:
                continue
            found.setdefault((index * slide, key if config["keyed"] else ""), []).append(value)
    for (start, key), values in found.items():
        answer = {{"task": 0, "start_us": start, "key": key, "value": sum(values)}}
        yield {{"kind": "final", **answer, "n": len(values)}}


for line in sys.stdin:
    workload = json.loads(line)
    if MISTAKE == "refuses":
        sys.exit("it cannot express this")
    steps = list(windows(workload["config"], workload["arrivals"]))
    for row in [{{"trace": 1, "producer": "fake"}}, *steps, {{"end": len(steps)}}]:
        print(json.dumps(row))
    sys.stdout.flush()
"""
CASES = """
[unasked]
late-reported = "Nobody asks."
pairs-once = "Nobody asks."
pairs-in-time = "Nobody asks."
balance = "Nobody asks."

[[case]]
promise = "windows-exact"
how = "In plain Python."
[case.settings]
aggregate = ["sum"]

[[case]]
promise = "in-time"
how = "In plain Python."
[case.settings]
aggregate = ["sum"]
[case.stream]
redeliveries = true
"""
FINDING = """
[[finding]]
promise = "{promise}"
sentence = "It has a mistake."
script = "mistake.py"
says = "Its documentation says nothing."
address = "https://example.org"
{how}
"""


def write_engine(
    folder: Path,
    mistake: str = "",
    *,
    found_in: str = "",
    explains: str = "",
    exit_code: int = 0,
    pinned: str | None = None,
    more: str = "",
    name: str = "fake",
) -> None:
    """Write an engine and its environment into ``folder``."""
    home = folder / "engines" / name
    (home / "trails").mkdir(parents=True)
    (folder / "environments" / name / "bin").mkdir(parents=True)
    python = folder / "environments" / name / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    head = {
        "title": "Fake",
        "package": PACKAGE,
        "version": pinned or version(PACKAGE),
        "homepage": "https://example.org",
        "about": "No engine.",
    }
    lines = [f'{field} = "{value}"' for field, value in head.items()]
    how = f"how = {explains!r}" if explains else ""
    finding = FINDING.format(promise=found_in, how=how) if found_in else ""
    text = "\n".join([*lines, CASES, finding, more])
    (home / "engine.toml").write_text(text, encoding="utf-8")
    (home / "adapter.py").write_text(ADAPTER.format(mistake=mistake), encoding="utf-8")
    script = f'print("what came")\nraise SystemExit({exit_code})\n'
    (home / "trails" / "mistake.py").write_text(script, encoding="utf-8")


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
    places = ("--folder", str(folder / "engines"), "--environments", str(folder / "environments"))
    number = () if "--stored" in more else ("--workloads", str(WORKLOADS))
    return straggler("conformance", *places, *number, *more)


def results_of(folder: Path) -> Path:
    return folder / "engines" / "fake" / "results.json"


def stored_cases(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(results_of(folder).read_text("utf-8"))["cases"]
    return found


def stored_promises(folder: Path) -> list[str]:
    return [case["promise"] for case in stored_cases(folder)]


def verdicts(done: Done) -> dict[str, str]:
    """Return the verdict of each promise, as the command prints it."""
    assert (done.code, done.err) == (0, "")
    return {
        name: line.strip().removeprefix(promise.title).strip()
        for line in done.out.splitlines()[1:]
        for name, promise in PROMISES.items()
        if line.strip().startswith(promise.title)
    }


FOUND, FOUND_LATE = {"found_in": "windows-exact"}, {"found_in": "in-time"}
HOW = "In plain Python."


@pytest.mark.parametrize(
    ("mistake", "about", "promise", "verdict", "words"),
    [
        ("", {}, "in-time", "holds", f"**holds** ({WORKLOADS} streams)"),
        ("counts some", {}, "in-time", "undetermined", "tuples, and nobody says which."),
        ("drops at the watermark", FOUND_LATE, "in-time", "broken", "    what came"),
        ("twice", FOUND_LATE, "windows-exact", "not reproduced", "not reproduced"),
        ("twice", FOUND, "windows-exact", "broken", "broken"),
        ("twice", {**FOUND, "exit_code": 1}, "windows-exact", "not reproduced", "not reproduced"),
        ("refuses", {**FOUND, "explains": HOW}, "windows-exact", "broken", "broken"),
        pytest.param(
            *("refuses", {}, "in-time", "failed", "exit code 1 (it cannot express this)"),
            marks=pytest.mark.long,
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
    if mistake == "twice":  # the smallest counterexample
        broken = [each["workload"]["arrivals"] for each in stored_cases(tmp_path) if each["broken"]]
        assert [*map(len, broken)] == [2, 2]


def test_an_interrupted_rerun_loses_no_result(
    straggler: Straggler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_engine(tmp_path, found_in="in-time")
    assert judge(straggler, tmp_path).code == 0
    before = stored_promises(tmp_path)

    def interrupt(*_: object) -> None:
        assert stored_promises(tmp_path) == before
        raise KeyboardInterrupt

    monkeypatch.setattr("straggler.conformance.trials.judge_case", interrupt)
    for seed in ("0", "1"):
        assert judge(straggler, tmp_path, "--seed", seed).code == 130
        assert stored_promises(tmp_path) == before


def test_an_engine_that_cannot_be_judged_does_not_keep_others_from_it(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path)
    write_engine(tmp_path, pinned="0.0.1", name="outdated")
    done = judge(straggler, tmp_path)
    assert (done.code, done.out.splitlines()[1].split()[-1]) == (2, "holds")
    assert re.fullmatch("straggler: .*engine.toml of outdated says 0.0.1.*\n", done.err)
    assert stored_promises(tmp_path) == ["windows-exact", "in-time"]
    assert_refused(judge(straggler, tmp_path, "fak"), "there is no engine 'fak'")
    assert_refused(judge(straggler, tmp_path, "--stored", "--workloads", "3"), "judges nothing")
