"""``straggler conformance`` judges an engine by its answers, and writes what it has found."""

import json
from contextlib import suppress
from pathlib import Path

import pytest

from model.vocabulary import Workload
from straggler.conformance import trials
from straggler.conformance.draws import draw_workloads
from straggler.conformance.engines import Asked
from straggler.conformance.promises import PROMISES
from tests.straggler.command import Done, Straggler, assert_refused
from tests.straggler.fake_engine import write_engine

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


def test_a_right_engine_holds_and_says_on_how_many_streams(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path)
    page = tmp_path / "page.md"
    found = verdicts(judge(straggler, tmp_path, "--markdown", str(page)))
    assert (found["windows-exact"], found["in-time"]) == ("holds", "holds")
    assert found["pairs-once"] == "not asked"
    assert f"**holds** ({WORKLOADS} streams)" in page.read_text(encoding="utf-8")


def test_an_engine_may_count_what_comes_later_than_allowed(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path, "counts everything")
    assert verdicts(judge(straggler, tmp_path))["in-time"] == "holds"


def test_nobody_says_which_late_tuples_an_engine_counts(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path, "counts some")
    page = tmp_path / "page.md"
    found = verdicts(judge(straggler, tmp_path, "--markdown", str(page)))
    assert found["in-time"] == "undetermined"
    assert "tuples, and nobody says which." in page.read_text("utf-8")


def test_an_engine_that_hangs_is_asked_twice_in_a_case(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path, "hangs")
    found = verdicts(judge(straggler, tmp_path, "--promise", "in-time"))
    assert found["in-time"] == "failed"
    (case,) = json.loads(results_of(tmp_path).read_text("utf-8"))["cases"]
    assert (case["counts"]["workloads"], case["broken"]) == (2, 2)
    assert "did not answer in 1 s" in case["failure"]


def test_an_engine_may_not_drop_a_tuple_whose_window_is_open(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path, "drops at the watermark", found_in="in-time")
    page = tmp_path / "page.md"
    found = verdicts(judge(straggler, tmp_path, "--markdown", str(page)))
    assert found["in-time"] == "broken"
    text = page.read_text(encoding="utf-8")
    assert "tuples that came in time." in text  # the counterexample
    assert "    what came" in text  # the output of the script


def test_a_broken_promise_without_a_script_that_shows_it_does_not_count(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path, "twice", found_in="in-time")
    assert verdicts(judge(straggler, tmp_path))["windows-exact"] == "not reproduced"


@pytest.mark.parametrize(("exit_code", "verdict"), [(0, "broken"), (1, "not reproduced")])
def test_a_script_that_does_not_reproduce_the_defect_takes_the_verdict_back(
    exit_code: int, verdict: str, straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path, "twice", found_in="windows-exact", exit_code=exit_code)
    assert verdicts(judge(straggler, tmp_path))["windows-exact"] == verdict


def test_a_counterexample_is_small_and_stored(straggler: Straggler, tmp_path: Path) -> None:
    write_engine(tmp_path, "twice")
    assert judge(straggler, tmp_path).code == 0
    results = json.loads((tmp_path / "engines" / "fake" / "results.json").read_text("utf-8"))
    case = next(each for each in results["cases"] if each["broken"])
    first, second = case["workload"]["arrivals"]
    assert first[1] == second[1]  # two deliveries of one tuple
    story = " ".join(case["counterexample"])
    assert f"event time {first[3]} us" in story
    assert "revision" not in story  # no part of an answer


def test_one_promise_is_judged_again_and_the_rest_is_kept(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path, "twice")
    assert verdicts(judge(straggler, tmp_path))["in-time"] == "not reproduced"
    path = tmp_path / "engines" / "fake" / "adapter.py"
    path.write_text(path.read_text("utf-8").replace("'twice'", "''"), encoding="utf-8")
    found = verdicts(judge(straggler, tmp_path, "--promise", "in-time"))
    assert (found["windows-exact"], found["in-time"]) == ("not reproduced", "holds")
    assert_refused(judge(straggler, tmp_path, "--promise", "in-time", "--seed", "1"), "seed 0")


def test_a_case_that_was_not_run_is_called_not_judged(straggler: Straggler, tmp_path: Path) -> None:
    write_engine(tmp_path)
    assert judge(straggler, tmp_path).code == 0
    path = tmp_path / "engines" / "fake" / "results.json"
    stored = json.loads(path.read_text("utf-8"))
    stored["cases"].pop()
    path.write_text(json.dumps(stored), encoding="utf-8")
    found = verdicts(judge(straggler, tmp_path, "--stored"))
    assert (found["windows-exact"], found["in-time"]) == ("holds", "not judged")


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


def test_a_case_that_is_asked_no_more_is_not_on_the_page(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path)
    assert judge(straggler, tmp_path).code == 0
    stored = json.loads(results_of(tmp_path).read_text("utf-8"))
    stored["cases"].append({**stored["cases"][0], "how": "As it once was."})
    results_of(tmp_path).write_text(json.dumps(stored), encoding="utf-8")
    page = tmp_path / "page.md"
    assert judge(straggler, tmp_path, "--stored", "--markdown", str(page)).code == 0
    assert "As it once was." not in page.read_text("utf-8")
    assert f"**holds** ({WORKLOADS} streams)" in page.read_text("utf-8")


@pytest.mark.parametrize(("explains", "verdict"), [("", "failed"), ("In plain Python.", "broken")])
def test_a_failure_of_the_adapter_counts_only_if_a_finding_names_the_case(
    explains: str, verdict: str, straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path, "refuses", found_in="windows-exact", explains=explains)
    page = tmp_path / "page.md"
    found = verdicts(judge(straggler, tmp_path, "--markdown", str(page)))
    assert (found["windows-exact"], found["in-time"]) == (verdict, "failed")
    said = "which does not count: the adapter ended with exit code 1 (it cannot express this)"
    assert page.read_text("utf-8").count(said) == (2 if verdict == "failed" else 1)


def test_a_finding_that_names_no_case_is_refused(straggler: Straggler, tmp_path: Path) -> None:
    write_engine(tmp_path, found_in="windows-exact", explains="In no way.")
    assert_refused(judge(straggler, tmp_path), "how is 'In no way.'", "windows-exact")


def test_a_cell_says_that_its_streams_had_no_redeliveries(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path, redeliveries=False)
    page = tmp_path / "page.md"
    assert judge(straggler, tmp_path, "--markdown", str(page)).code == 0
    text = page.read_text("utf-8")
    assert f"**holds** ({WORKLOADS} streams) | **holds** ({WORKLOADS} streams, no red" in text
    assert "imbalance stays O(1) |" not in text  # no column: nobody is asked
    assert "*imbalance stays O(1)* has no column, because no engine is asked for it" in text


def test_a_folder_may_have_a_space(straggler: Straggler, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    write_engine(folder)
    assert verdicts(judge(straggler, folder))["windows-exact"] == "holds"


def test_only_the_named_promise_is_judged_if_nothing_is_stored(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path)
    found = verdicts(judge(straggler, tmp_path, "--promise", "in-time"))
    assert (found["windows-exact"], found["in-time"]) == ("not judged", "holds")


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


@pytest.mark.parametrize(
    "more", [("--workloads", "3"), ("--seed", "0"), ("--promise", "in-time"), ("fake",)]
)
def test_stored_results_are_not_judged_again(
    more: tuple[str, ...], straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path)
    assert_refused(judge(straggler, tmp_path, "--stored", *more), "--stored judges nothing")


def test_another_version_than_the_pinned_one_is_refused(
    straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path, pinned="0.0.1")
    assert_refused(judge(straggler, tmp_path), "xxhash", "engine.toml of fake says 0.0.1")
    assert not (tmp_path / "engines" / "fake" / "results.json").exists()


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


def test_a_python_that_cannot_be_run_is_refused(straggler: Straggler, tmp_path: Path) -> None:
    write_engine(tmp_path)
    python = tmp_path / "environments" / "fake" / "bin" / "python"
    python.chmod(0o644)
    assert_refused(judge(straggler, tmp_path), f"{python} cannot be run: Permission denied")


@pytest.mark.parametrize("script", ["adapter.py", "trails/mistake.py"])
def test_a_missing_script_is_refused(script: str, straggler: Straggler, tmp_path: Path) -> None:
    write_engine(tmp_path, found_in="in-time")
    (tmp_path / "engines" / "fake" / script).unlink()
    assert_refused(judge(straggler, tmp_path), "engine.toml: there is no script", script)


IN_TIME = '[[case]]\npromise = "in-time"\nhow = "?"\n'


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('[[case]]\npromise = "windows"\nhow = "?"', ("promise is 'windows'", "windows-exact")),
        ('[[case]]\npromise = "in-time"', ("how is None",)),
        ('[[case]]\npromise = "in-time"\nhow = "?"\nkind = 1', ("'kind' is not a field",)),
        (
            '[[case]]\npromise = "in-time"\nhow = "?"\n[case.stream]\nbatch = true',
            ("batch is True", "int"),
        ),
        (
            '[[case]]\npromise = "in-time"\nhow = "?"\n[case.settings]\nkeyed = true',
            ("keyed is True", "list of values"),
        ),
        ('[[case]]\npromise = "balance"\nhow = "?"', ("'balance' has both",)),
        (f"{IN_TIME}settings = 3", ("settings is 3", "a table")),
        (f"{IN_TIME}stream = 3", ("stream is 3", "a table")),
        (f"{IN_TIME}late_by = 3", ("late_by is 3", "arrival, micro-batch")),
        (f"{IN_TIME}[case.stream]\ntime_factor = 0", ("time_factor is 0", "at least 1")),
        ("[finding]\n", ("finding is {}", "a list of tables")),
        ("[[case", ("cannot be read",)),
    ],
)
def test_a_wrong_description_of_an_engine_is_refused(
    more: str, words: tuple[str, ...], straggler: Straggler, tmp_path: Path
) -> None:
    write_engine(tmp_path, more=more)
    assert_refused(judge(straggler, tmp_path), "engine.toml", *words)


def test_a_setting_that_there_is_not_is_refused(straggler: Straggler, tmp_path: Path) -> None:
    unknown = '[[case]]\npromise = "in-time"\nhow = "?"\n[case.settings]\nkeyd = [true]'
    write_engine(tmp_path, more=unknown)
    done = judge(straggler, tmp_path)
    assert_refused(done, "there is no setting 'keyd'", "did you mean 'keyed'?")
    assert not (tmp_path / "engines" / "fake" / "results.json").exists()


def test_an_unknown_engine_is_refused(straggler: Straggler, tmp_path: Path) -> None:
    write_engine(tmp_path)
    assert_refused(judge(straggler, tmp_path, "fak"), "there is no engine 'fak'", "'fake'")


def test_results_of_another_version_are_refused(straggler: Straggler, tmp_path: Path) -> None:
    write_engine(tmp_path)
    stored = {"engine": "fake", "version": "0.0.1", "seed": 0, "cases": [], "trails": []}
    path = tmp_path / "engines" / "fake" / "results.json"
    path.write_text(json.dumps(stored), encoding="utf-8")
    assert_refused(judge(straggler, tmp_path, "--stored"), "0.0.1", "judge fake again")
